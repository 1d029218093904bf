// A day at a branch: its reservations by room, and the free times.

import { type Minute, parseMinute, slot } from "../../booking/time";
import { api } from "../../core/api";
import type { Schemas } from "../../core/interface";
import { type TextKey, t } from "../text";

export type Room = Schemas["TimelineRoom"];

type Quarantine = Schemas["Quarantine"];

export type Kind =
  | "paid"
  | "staff"
  | "partner"
  | "hold"
  | "waiting"
  | "canceling"
  | "over"
  | "quarantine"
  /** Kept from being sold, because it belongs to a conflict. */
  | "withheld"
  /** Sold by a partner although its time was taken; it occupies nothing. */
  | "conflict";

/** A reservation on the wire. Its end is the real one. */
export type Wire = Schemas["TimelineReservation"];

export interface Block {
  id: string;
  room: string;
  start: Minute;
  end: Minute;
  kind: Kind;
  name: string;
  mobile: string;
  method: string;
  source: Wire["source"] | "";
  /** Of a confirmed stay with its extensions, without what was returned. */
  amount: number;
  /** ms since 1970; 0: does not run out */
  expiresAt: number;
  version: number;
  /** Only of a time that is not sold; such a block is no reservation. */
  quarantine?: Quarantine;
  /** Only of withheld time, which is not a reservation either: that of the conflict. */
  conflict?: string;
}

export interface Span {
  start: Minute;
  end: Minute;
}

export interface Day {
  date: string;
  status: "available" | "closed" | "holiday";
  reason: string | null;
  rooms: Room[];
  blocks: Block[];
  canceled: Block[];
  closed: Span[];
  breaks: Span[];
}

const kindOf = (w: Wire): Kind => {
  switch (w.state) {
    case "HOLD":
      return w.source === "PARTNER" ? "withheld" : "hold";
    case "CONFIRMING":
      return "hold";
    case "WAITING_FOR_DEPOSIT":
      return "waiting";
    case "CANCELING":
      return "canceling";
    case "DONE":
      if (w.source === "PARTNER") return "partner";
      return w.method === "관리자" ? "staff" : "paid";
    case "CONFLICT":
      return "conflict";
  }
  return "over";
};

export const toBlock = (w: Wire): Block => ({
  id: w.id,
  room: w.roomNo,
  start: parseMinute(w.start),
  end: parseMinute(w.stayEnd),
  kind: kindOf(w),
  name: w.name ?? "",
  mobile: w.mobileNum ?? "",
  method: w.method ?? "",
  source: w.source,
  amount: w.stayBalance ?? w.amount,
  expiresAt: w.expiresAt ? Date.parse(w.expiresAt) : 0,
  version: w.version,
});

/** The holds of a partner keep the free time of its booking in conflict from being sold. */
const withheldBlock = (w: Wire): Block => ({ ...toBlock(w), expiresAt: 0, conflict: w.extends ?? "" });

/** Distinguishes a reservation from a time that is only kept from being sold. */
export const isReservation = (b: Block): boolean => b.kind !== "quarantine" && b.kind !== "withheld";

const quarantineBlock = (q: Quarantine): Block => ({
  id: `quarantine-${q.id}`,
  room: q.room,
  start: parseMinute(q.start),
  end: parseMinute(q.end),
  kind: "quarantine",
  name: "",
  mobile: "",
  method: "",
  source: "",
  amount: 0,
  expiresAt: 0,
  version: 0,
  quarantine: q,
});

const toSpan = (w: { start: string; end: string }): Span => ({ start: parseMinute(w.start), end: parseMinute(w.end) });

type WireDay = Omit<Day, "blocks" | "canceled" | "closed" | "breaks"> & {
  reservations: Wire[];
  canceled: Wire[];
  conflicts: Wire[];
  closed: { start: string; end: string }[];
  breaks: { start: string; end: string }[];
  quarantine: Quarantine[];
};

export async function fetchDay(branch: string, date: string): Promise<Day> {
  const { reservations, canceled, conflicts, closed, breaks, quarantine, ...rest } = await api.get<WireDay>(
    `/v2/admin/branches/${branch}/timeline`,
    {
      date,
    },
  );
  // A stay is one block with its confirmed extensions.
  const ids = new Set(reservations.map((r) => r.id));
  const blocks = reservations
    .filter((r) => !(r.state === "DONE" && r.extends && ids.has(r.extends)))
    .map((w) => (kindOf(w) === "withheld" ? withheldBlock(w) : toBlock(w)));
  blocks.push(...quarantine.map(quarantineBlock), ...conflicts.map(toBlock));
  return { ...rest, blocks, canceled: canceled.map(toBlock), closed: closed.map(toSpan), breaks: breaks.map(toSpan) };
}

export const longest = 5 * 60; // minutes, docs/specification.md, Limits 1

/** Returns the reason why a time cannot be reserved in a room, or undefined. except is the reservation that is being moved. */
export function obstacle(
  day: Day,
  roomNo: string,
  start: Minute,
  end: Minute,
  now: Minute,
  except?: Block,
): TextKey | undefined {
  const room = day.rooms.find((r) => r.roomNo === roomNo);
  if (!room) return "obstNoRoom";
  if (!room.enabled && room.roomNo !== except?.room) return "obstDisabled";
  // A partner's guest may have a longer stay, which keeps its length.
  if (end - start > Math.max(longest, except ? except.end - except.start : 0)) return "obstTooLong";
  if (start + slot <= now && start !== except?.start) return "obstPast";
  const overlaps = (s: Span, after = 0) => s.start < end + after && start < s.end + after;
  if (day.closed.some((s) => overlaps(s))) return "obstClosed";
  if (day.breaks.some((s) => overlaps(s))) return "obstBreak";
  // Reservations lie a margin apart: each keeps its room busy until the room is ready again.
  const own = (b: Block) => except !== undefined && (b.id === except.id || b.conflict === except.id);
  const occupies = (b: Block) => b.room === roomNo && !own(b) && b.kind !== "conflict";
  if (day.blocks.some((b) => occupies(b) && overlaps(b, room.turnoverMinutes))) return "obstTaken";
  return undefined;
}

export const kindText = (kind: Kind): string => t(`kind_${kind}`);
