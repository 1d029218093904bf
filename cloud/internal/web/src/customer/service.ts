// Typed calls of the endpoints that the customers' screens use.

import { Availability, type Lookup } from "../booking/slots";
import { dateOf, day, inZone, type Minute, parseDate, parseMinute, parseStoredEnd, wire } from "../booking/time";
import { farewell, get, NetworkError, post } from "../core/api";
import { carried, dropCarried } from "../core/carried";
import type { Schemas } from "../core/interface";
import { english } from "../core/language";
import { localStore } from "../core/storage";

export type Branch = Schemas["Branch"];
export type Site = Schemas["Site"];
export type CalendarDay = Schemas["CalendarDay"];
export type Hold = Schemas["Hold"];
export type Confirmed = Schemas["Confirmed"];

/** A receipt. Its amount is null while only the answer of the confirmation is known. */
export type Receipt = Omit<Schemas["Receipt"], "amount"> & { amount: number | null };

export type PaymentRecord = Schemas["PaymentRecord"];
export type Key = Schemas["KeyLink"];
export type Bank = Schemas["Bank"];

export type LoginType = "mobile" | "email";

/** Caches a successful fetch. A failure is not cached. */
function once<T>(fetcher: () => Promise<T>): () => Promise<T> {
  let kept: Promise<T> | undefined;
  return () => {
    kept ??= fetcher().catch((error: unknown) => {
      kept = undefined;
      throw error;
    });
    return kept;
  };
}

export const getSite = once(() => get<Site>("/v2/site"));

/** A version of the terms and the privacy policy; "" is the current one. */
export const getLegal = (version: string) => get<Schemas["Legal"]>("/v2/legal", version ? { version } : {});

export const getBranches = once(async () => (await get<{ branches: Branch[] }>("/v2/branches")).branches);
export type BranchNow = Schemas["BranchNow"];

/** A search for branches: a part of their name or address, a place as latitude and longitude, the page. */
export interface BranchSearch {
  q: string;
  near?: string;
  cursor?: string | null;
}

/** One page of branches with their availability now. */
export const getBranchesNow = ({ q, near, cursor }: BranchSearch) =>
  get<Schemas["BranchesNow"]>("/v2/branches/now", {
    ...(q ? { q } : {}),
    ...(near ? { near } : {}),
    ...(cursor ? { cursor } : {}),
  });

export const getBanks = once(async () => (await get<{ banks: Bank[] }>("/v2/banks")).banks);

const branches = new Map<string, Promise<Branch | undefined>>();

/** The branch with that code, or undefined. */
export function getBranch(code: string): Promise<Branch | undefined> {
  const kept =
    branches.get(code) ??
    get<{ branches: Branch[] }>("/v2/branches", { branch: code }).then(({ branches: [found] }) => found);
  branches.set(code, kept);
  kept.catch(() => branches.delete(code));
  return kept;
}

export const branchName = (b: Pick<Branch, "nameKo" | "nameEn">): string => (english() && b.nameEn) || b.nameKo;

export const getCalendar = async (branch: string, yearMonth: string): Promise<CalendarDay[]> =>
  (await get<{ dates: CalendarDay[] }>(`/v2/branches/${branch}/calendar`, { yearMonth })).dates;

/** Waits for a pending release first; otherwise the released room would appear as taken. */
async function lookup(branch: string, date: string, baseHour: number, hours: number): Promise<Lookup> {
  await releasing;
  return get<Lookup>(`/v2/branches/${branch}/reservations`, { date, baseHour, hours });
}

/** The last day that is offered: on the next one, some times lie beyond the horizon. */
export const lastDay = (b: Branch, today: Minute): Minute => today + Math.max(0, b.bookingHorizonDays - 1) * day;

/** Hours past midnight that a reservation starting on a day may reach. */
const overnight = 5;

/**
 * The slots of a day and of the following night. The time that this browser holds is free, as after a tab was closed on the way:
 * choosing it again replaces the hold.
 */
export async function getDay(branch: string, date: string): Promise<Availability> {
  const start = parseDate(date);
  const [held, ...lookups] = await Promise.all([
    ownHold(),
    lookup(branch, date, 0, 24),
    lookup(branch, dateOf(start + day), 0, overnight),
  ]);
  const slots = new Availability(lookups, start, start + day + overnight * 60);
  if (held?.branch === branch)
    slots.release(held.roomNo, parseMinute(held.startDateTime), parseStoredEnd(held.endDateTime));
  return slots;
}

const heldKey = "held"; // set while this browser may hold a room; without it, no hold is asked for

async function ownHold(): Promise<Hold | null> {
  await releasing;
  if (!localStore.get(heldKey) && !carried("/v2/hold")) return null;
  return getHold().catch((error: unknown) => {
    if (!(error instanceof NetworkError)) localStore.remove(heldKey);
    return null;
  });
}

export async function hold(branch: string, room: string, start: Minute, end: Minute): Promise<void> {
  await releasing;
  const times = { startDateTime: wire(start), endDateTime: wire(end) };
  await post<null>("/reservation", { branch, room: Number(room), ...times });
  localStore.set(heldKey, "1");
}

/** Moves a paid stay at once if it costs the same at its new time; otherwise holds the new time. */
export async function exchangeStay(
  id: number,
  room: string,
  start: Minute,
  end: Minute,
  account: RefundAccount | null,
) {
  const times = { startDateTime: wire(start), endDateTime: wire(end) };
  const to = { room: Number(room), ...times, ...account };
  const answer = await post<Schemas["Exchange"]>(`/v2/my-reservations/${id}/exchange`, to);
  if (!answer.moved) localStore.set(heldKey, "1");
  return answer;
}

let releasing: Promise<unknown> = Promise.resolve();

/** Releases the room of this browser if the hold is the caller's. If a request is lost, the hold expires by itself. */
export function release(ours: (held: Hold) => boolean): Promise<unknown> {
  dropCarried(); // it shows the room as taken
  releasing = getHold()
    .then(async (held) => {
      if (!ours(held)) return;
      await farewell("/reservation");
      localStore.remove(heldKey);
    })
    .catch(() => undefined);
  return releasing;
}

export const getHold = () => get<Hold>("/v2/hold");

/** Registers the payer. The service refuses with 409 if the browser does not hold the given room and time. */
export const register = (
  held: Hold,
  consentVersion: string,
  { name, mobile, email }: Record<"name" | "mobile" | "email", string>,
  cashReceipt: Schemas["CashReceiptWish"] | null,
) =>
  post<Schemas["RegisteredPayment"]>("/payment", {
    amount: held.amount,
    branch: held.branch,
    room: Number(held.roomNo),
    startDateTime: held.startDateTime,
    endDateTime: wire(parseStoredEnd(held.endDateTime)),
    name,
    mobileNum: mobile,
    consentVersion,
    ...(email ? { email } : {}),
    ...(cashReceipt ? { cashReceipt } : {}),
  });
export const confirmPayment = (paymentKey: string, orderId: string, amount: number) =>
  post<Confirmed>("/payment/confirm", { paymentKey, orderId, amount });
export const getReceipt = () => get<Receipt>("/v2/receipt");
export const correctNumber = (orderId: string, mobileNum: string) =>
  post<null>("/v2/receipt/contact", { orderId, mobileNum });

/** How guests get from the street to a room of the branch. */
export const arrivalSteps = async (branch: string): Promise<Schemas["Arrival"]["steps"]> =>
  (await get<Schemas["Arrival"]>(`/v2/branches/${branch}/arrival`)).steps;

export const sendCode = (type: LoginType, id: string) => post<null>("/account/code", { type, id });
export const login = (type: LoginType, id: string, code: string) =>
  post<PaymentRecord[]>("/account/login", { type, id, code });
export const logout = () => post<null>("/account/logout");
export const getMine = () => get<PaymentRecord[]>("/my-reservations");
export const getKeys = async (): Promise<Key[]> => (await get<{ keys: Key[] }>("/v2/my-keys")).keys;

export const inquire = (inquiry: Schemas["FranchiseInquiry"]) => post<null>("/franchise/inquiries", inquiry);

export type RefundAccount = Record<keyof Schemas["RefundAccount"], string>;

export const refundLink = (token: string) => get<Schemas["RefundLink"]>(`/v2/refund-accounts/${token}`);

export const enterRefundAccount = (token: string, account: Schemas["RefundAccountRequest"]) =>
  post<null>(`/v2/refund-accounts/${token}`, account);

/** The refund policy of a branch in one sentence: the same before the payment and at the cancellation. */
export const refundText = (b: { refundPolicyText: Schemas["BilingualText"] }): string =>
  b.refundPolicyText[english() ? "en" : "ko"];

const refundLead = 30; // minutes before the start

/** Whether the guest can still cancel a stay that starts then. */
export const canCancel = (start: Minute, branch: { timeZone: string }): boolean =>
  start - refundLead >= inZone(branch.timeZone);

export type Quote = Schemas["RefundQuote"];

export const quoteRefund = (id: number) => get<Quote>(`/v2/my-reservations/${id}/refund`);

/** refundAmount: won that the guest was shown. If the cancellation returns another amount, it is refused with 409. */
export const cancelPayment = (id: number, cancelReason: string, refundAmount: number, account: RefundAccount | null) =>
  post<null>("/payment/cancel", { id, cancelReason, refundAmount, ...account });
