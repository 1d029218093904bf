// Which slots of a room are free, and which reservations fit into them.

import type { Schemas } from "../core/interface";
import { price } from "./price";
import { type Minute, parseMinute, slot } from "./time";

export type Room = Schemas["Room"];
export type Lookup = Schemas["Availability"];

export type Blocked = "paid" | "booking" | "paidMargin" | "bookingMargin" | "breakTime" | "closedTime";

/** The state of a slot: free, past, or blocked for one of the interface's reasons. */
export type SlotState = "free" | "past" | Blocked;

export const longest = 300;

/** If a slot is in two lists, the later entry wins. */
const order: Blocked[] = ["bookingMargin", "paidMargin", "breakTime", "closedTime", "booking", "paid"];

export class Availability {
  private readonly blocked = new Map<string, Blocked>();
  readonly rooms: Room[];

  constructor(
    lookups: Lookup[],
    /** The window of the look-ups. Slots outside it are unknown. */
    readonly from: Minute,
    readonly to: Minute,
  ) {
    // Each look-up has the price lists of its own window.
    this.rooms = lookups[0]!.rooms.map((room) => {
      const changes = lookups.flatMap((l) => l.rooms.find((r) => r.roomNo === room.roomNo)?.pricingChanges ?? []);
      return changes.length > 0 ? { ...room, pricingChanges: changes } : room;
    });
    for (const state of order) {
      for (const lookup of lookups) for (const s of lookup.unavailableSlots[state]) this.blocked.set(slotKey(s), state);
    }
  }

  room(no: string): Room | undefined {
    return this.rooms.find((r) => r.roomNo === no);
  }

  /** Shows a reserved time as free. The margins around it stay: they may be those of another reservation, too. */
  release(room: string, start: Minute, end: Minute): void {
    for (let at = start; at < end; at += slot) this.blocked.delete(`${room}-${at}`);
  }

  state(room: string, at: Minute, now: Minute): SlotState {
    if (at + slot <= now) return "past"; // the current slot can still be reserved
    return this.blocked.get(`${room}-${at}`) ?? "free";
  }

  /** The minutes for which the room is free from start on, at most the longest reservation; 0 if start is not free. */
  freeFrom(room: string, start: Minute, now: Minute): number {
    return Math.min(this.freeSpan(room, start, now), longest);
  }

  /** The minutes for which the room is free from start on, as far as the look-ups reach. */
  private freeSpan(room: string, start: Minute, now: Minute): number {
    let at = start;
    while (at < this.to && this.state(room, at, now) === "free") at += slot;
    return at - start;
  }

  /** Whether a part of the time from a minute until another is reserved. */
  hasReservation(room: string, from: Minute, until: Minute): boolean {
    for (let at = from; at < until; at += slot) {
      const state = this.blocked.get(`${room}-${at}`);
      if (state && state !== "closedTime" && state !== "breakTime") return true;
    }
    return false;
  }

  /** The state of the slot that ends the free time beginning at start. */
  obstacle(room: string, start: Minute, now: Minute): SlotState {
    return this.state(room, start + this.freeFrom(room, start, now), now);
  }

  /** The lengths that can be reserved from start on, with prices. */
  lengths(room: Room, start: Minute, now: Minute): { minutes: number; won: number }[] {
    const list = [];
    for (let minutes = slot; minutes <= this.freeFrom(room.roomNo, start, now); minutes += slot) {
      const won = price(room, start, minutes);
      if (won !== null) list.push({ minutes, won });
    }
    return list;
  }

  /**
   * The first start at or after from at which the room can be reserved, and the minutes for which it is free from then
   * on. The current slot counts only while at least half of it is left.
   */
  firstFree(room: Room, from: Minute, until: Minute, now: Minute): { start: Minute; free: number } | null {
    for (let at = now - from > slot / 2 ? from + slot : from; at < until; at += slot) {
      if (this.lengths(room, at, now).length > 0) return { start: at, free: this.freeSpan(room.roomNo, at, now) };
    }
    return null;
  }
}

/** Converts 2-202611211500 to room and minute. A room number may contain a hyphen. */
function slotKey(text: string): string {
  const cut = text.lastIndexOf("-");
  return `${text.slice(0, cut)}-${parseMinute(text.slice(cut + 1))}`;
}
