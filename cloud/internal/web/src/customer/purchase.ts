// The purchase under way in this tab, from the hold to the receipt. It lives in the tab's session storage, so that it
// survives reloads and the way to the payment provider and back, and ends with the tab.

import type { Minute } from "../booking/time";
import * as service from "./service";

export interface Purchase {
  branch: string;
  room: string;
  start: Minute;
  end: Minute;
  name: string;
  mobile: string;
  email: string;
  /** Given by the service once name and phone are known; the payment widget needs it. */
  orderId: string;
}

const key = "purchase";

export function purchase(): Purchase | null {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null") as Purchase | null;
  } catch {
    return null;
  }
}

export function keep(change: Partial<Purchase>): void {
  const blank = { branch: "", room: "", start: 0, end: 0, name: "", mobile: "", email: "", orderId: "" };
  sessionStorage.setItem(key, JSON.stringify({ ...blank, ...purchase(), ...change }));
}

export function finish(): void {
  sessionStorage.removeItem(key);
}

/** Takes the room for the time of a purchase. */
export async function begin(branch: string, room: string, start: Minute, end: Minute): Promise<void> {
  await service.hold(branch, room, start, end);
  keep({ branch, room, start, end, orderId: "" });
}

/** Gives the room back: the customer has gone back to choosing, or away. */
export function giveUp(): void {
  if (!purchase()) return;
  finish();
  service.release();
}

/** Where the room of the purchase is chosen. */
export const choosing = (p: Purchase | null): string => (p ? `/b/${p.branch}` : "/");
