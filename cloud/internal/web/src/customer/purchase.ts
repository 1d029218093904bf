// The purchase in progress in this tab, from the hold to the receipt. It is kept in the session storage of the tab, so it
// survives reloads and the detour to the payment provider, and ends with the tab.

import { type Minute, parseMinute, parseStoredEnd } from "../booking/time";
import type { Schemas } from "../core/interface";
import { staying } from "../core/router";
import { tabStore } from "../core/storage";
import * as service from "./service";

export interface Purchase {
  branch: string;
  room: string;
  start: Minute;
  end: Minute;
  name: string;
  mobile: string;
  email: string;
  /** The cash receipt that the customer wants for a deposit; no type: none. */
  receiptType?: Schemas["CashReceiptWish"]["type"] | "";
  receiptNumber?: string;
  /** The accepted consents. */
  consents: string[];
  /** Issued by the service once name and phone are known; the payment widget needs it. */
  orderId: string;
  /** The key page to return to, if the purchase extends a stay. */
  back?: string;
  /** The stay that the purchase replaces. */
  replaces?: number;
  /** The payment may have been captured: only an explicit cancellation may release the room. */
  confirming?: boolean;
}

const key = "purchase";

const blank = { branch: "", room: "", start: 0, end: 0, name: "", mobile: "", email: "", consents: [], orderId: "" };

/** The purchase of this tab. The key page stores the order and the way back only. */
export function purchase(): Purchase | null {
  try {
    const kept = JSON.parse(tabStore.get(key) ?? "null") as Partial<Purchase> | null;
    return kept && { ...blank, ...kept };
  } catch {
    return null;
  }
}

/** Keeps a change. Returns whether it survives the way to another document, such as the payment page. */
export function keep(change: Partial<Purchase>): boolean {
  return tabStore.set(key, JSON.stringify({ ...blank, ...purchase(), ...change }));
}

export function finish(): void {
  tabStore.remove(key);
}

type Stay = Pick<Purchase, "branch" | "room" | "start" | "end">;

let begun = 0; // holds that were asked for

/**
 * Holds the room for the purchase and returns true. If the customer has left the screen meanwhile, it releases the room, unless
 * another one was chosen since, and returns false.
 */
export async function begin(branch: string, room: string, start: Minute, end: Minute): Promise<boolean> {
  const still = staying();
  const mine = ++begun;
  await service.hold(branch, room, start, end);
  const stay = { branch, room, start, end };
  if (still()) keep({ ...stay, orderId: "", back: "", replaces: 0, confirming: false });
  else if (mine === begun) void service.release((held) => holds(held, stay));
  return still();
}

/** Registers the payer of the held room and returns the order. */
export async function register(held: service.Hold, p: Purchase): Promise<string> {
  const { legalVersion } = await service.getSite();
  const wish = p.receiptType ? { type: p.receiptType, number: p.receiptNumber ?? "" } : null;
  return (await service.register(held, legalVersion, p, wish)).orderId;
}

/** Whether a hold is that of a stay. A purchase of an extension may not know its branch. */
const holds = (held: service.Hold, p: Stay): boolean =>
  (!p.branch || held.branch === p.branch) &&
  held.roomNo === p.room &&
  parseMinute(held.startDateTime) === p.start &&
  parseStoredEnd(held.endDateTime) === p.end;

/** Whether this tab holds a room: one that was chosen, or more time of a stay. */
export function buying(): boolean {
  const p = purchase();
  return Boolean(p?.branch || p?.back);
}

/**
 * Releases the room because the customer returned to choosing, unless its payment is being confirmed or another tab has replaced
 * the hold. The contact is kept for the next choice in this tab.
 */
export async function giveUp(): Promise<void> {
  const p = purchase();
  if (!p || !buying() || p.confirming) return;
  keep({ branch: "", room: "", start: 0, end: 0, orderId: "", back: "", replaces: 0 });
  await service.release((held) => !p.room || holds(held, p)); // without a room: an extension that was not shown yet
}

/** Releases the room and forgets the contact. */
export async function leave(): Promise<void> {
  keep({ confirming: false });
  const released = giveUp();
  finish();
  await released;
}

/** The address at which the room of the purchase is chosen. */
export const choosing = (p: Purchase | null): string => p?.back || (p?.branch ? `/b/${p.branch}` : "/");
