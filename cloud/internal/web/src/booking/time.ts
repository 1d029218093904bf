// Local times of a branch.
//
// A Minute counts minutes since 1970 as if the local clock were UTC. Arithmetic needs no time zone; only "now" does.
// The interface's stored ends lie ten minutes before the real ends; parseStoredEnd corrects them.

import { now } from "../core/clock";

export type Minute = number;

export const slot = 10;
export const day = 24 * 60;

/** Reads YYYYMMDDHHmm. */
export function parseMinute(text: string): Minute {
  const n = (from: number, to: number) => Number(text.slice(from, to));
  return Date.UTC(n(0, 4), n(4, 6) - 1, n(6, 8), n(8, 10), n(10, 12)) / 60_000;
}

/** Reads a stored end. */
export const parseStoredEnd = (text: string): Minute => parseMinute(text) + slot;

const iso = (m: Minute) => new Date(m * 60_000).toISOString(); // 2026-11-21T15:00:00.000Z

/** Writes YYYYMMDDHHmm. */
export const wire = (m: Minute): string => iso(m).slice(0, 16).replace(/\D/g, "");

/** YYYY-MM-DD */
export const dateOf = (m: Minute): string => iso(m).slice(0, 10);

/** 15:00 */
export const clockOf = (m: Minute): string => iso(m).slice(11, 16);

/** The first minute of YYYY-MM-DD, or NaN. */
export function parseDate(date: string): Minute {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return NaN;
  const minute = Date.parse(`${date}T00:00:00Z`) / 60_000;
  return !Number.isNaN(minute) && dateOf(minute) === date ? minute : NaN;
}

export const weekday = (m: Minute): number => new Date(m * 60_000).getUTCDay();

/** The local time of a zone at an instant, to the minute. */
export function inZone(zone: string, instant: number = now()): Minute {
  const parts: Record<string, string> = {};
  for (const { type, value } of zoned(zone).formatToParts(instant)) parts[type] = value;
  return Date.UTC(+parts.year!, +parts.month! - 1, +parts.day!, +parts.hour!, +parts.minute!) / 60_000;
}

const formats = new Map<string, Intl.DateTimeFormat>();

function zoned(zone: string): Intl.DateTimeFormat {
  let format = formats.get(zone);
  if (!format) {
    const numeric = { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" } as const;
    format = new Intl.DateTimeFormat("en-US", { ...numeric, timeZone: zone, hourCycle: "h23" });
    formats.set(zone, format);
  }
  return format;
}

/** The start of the slot that contains m. */
export const slotOf = (m: Minute): Minute => Math.floor(m / slot) * slot;
