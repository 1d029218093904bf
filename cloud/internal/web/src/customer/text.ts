// The texts of the customers' screens in the language of the page.

import { clockOf, dateOf, day, type Minute, weekday } from "../booking/time";
import { brandEn, brandKo } from "../core/brand";
import { type Language, language, speak, translator } from "../core/language";
import { ko, type Texts } from "../locales/ko";

const tables: Partial<Record<Language, Texts>> = { ko: { ...ko, brand: brandKo } };

/** Loads the texts of a language. Korean is part of the bundle. */
async function learn(next: Language): Promise<void> {
  if (next === "en") tables.en ??= { ...(await import("../locales/en")).en, brand: brandEn };
}

/** Switches the language of the page. If the texts cannot be loaded, the page keeps its language. */
export async function speakIn(next: Language): Promise<void> {
  try {
    await learn(next);
  } catch {
    next = "ko";
  }
  speak(next);
}

export const t = translator<keyof Texts>(() => tables[language.peek()] ?? ko);

const english = () => language.peek() === "en";

export const won = (amount: number): string => t("won", { n: amount.toLocaleString("en-US") });

/** 80분, 1시간 20분 */
export function span(minutes: number): string {
  const [h, m] = [Math.floor(minutes / 60), minutes % 60];
  if (h === 0) return t("minutes", { n: m });
  return m === 0 ? t("hours", { n: h }) : t("hoursMinutes", { h, m });
}

/** 9:05 until an instant */
export function countdown(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** 11월 22일 (일) */
export function dateText(m: Minute): string {
  const date = new Date(m * 60_000);
  if (english())
    return new Intl.DateTimeFormat("en-GB", {
      weekday: "short",
      day: "numeric",
      month: "short",
      timeZone: "UTC",
    }).format(date);
  return `${date.getUTCMonth() + 1}월 ${date.getUTCDate()}일 (${t("weekdays")[weekday(m)]})`;
}

export function monthText(m: Minute): string {
  const date = new Date(m * 60_000);
  if (english())
    return new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" }).format(date);
  return t("monthTitle", { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1 });
}

/** Short names of the weekdays from Sunday to Saturday. */
export const weekdayText = (n: number): string =>
  english() ? ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][n]! : t("weekdays")[n]!;

/** Formats a time range such as 15:00–16:20. An end on the next day is marked. */
export function timesText(start: Minute, end: Minute): string {
  return t("range", { from: clockOf(start), to: clockOnDay(end, start) });
}

/** A time relative to a day: 00:30 becomes "the next day 00:30". */
export function clockOnDay(at: Minute, from: Minute): string {
  const sameDay = dateOf(at) === dateOf(from);
  const midnight = at % day === 0 && at - from < day;
  if (sameDay) return clockOf(at);
  return midnight ? "24:00" : t("nextDay", { time: clockOf(at) });
}
