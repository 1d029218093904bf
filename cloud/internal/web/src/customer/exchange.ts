// The exchange of a paid stay for another room or time of its branch. It is kept in this tab while the guest chooses; the
// choice is made on the screens of a purchase.

import { type Minute, parseMinute, parseStoredEnd } from "../booking/time";
import { type Child, h } from "../core/dom";
import { go, staying } from "../core/router";
import { tabStore } from "../core/storage";
import { refundFields } from "./cancel";
import { checkAll } from "./field";
import { check, sign } from "./icons";
import type { Mine } from "./my";
import { keep } from "./purchase";
import { button, link, note, notice } from "./screen";
import { exchangeStay, type PaymentRecord, quoteRefund } from "./service";
import { dateText, t, timesText, won } from "./text";

const key = "exchange";

/** The stay that is exchanged; its amount is that of the whole stay. */
type Stay = PaymentRecord & { needsAccount: boolean };

/** The stay that the guest is exchanging at a branch, or null. */
export function exchanging(branch: string): Stay | null {
  try {
    const record = JSON.parse(tabStore.get(key) ?? "null") as Stay | null;
    return record?.branch === branch ? record : null;
  } catch {
    return null;
  }
}

export const endExchange = (): void => tabStore.remove(key);

/** Leads to the choice of another room or time. Without a quote the list's values are used: the service decides anyway. */
export async function beginExchange({ record }: Mine): Promise<void> {
  const still = staying();
  const listed = { paid: record.amount, needsAccount: record.method === "가상계좌" };
  const { paid, needsAccount } = await quoteRefund(record.id).catch(() => listed);
  if (!still()) return;
  const stay: Stay = { ...record, amount: paid, needsAccount };
  tabStore.set(key, JSON.stringify(stay));
  go(`/b/${record.branch}`);
}

/** The stay that is being exchanged, above the screens on which its replacement is chosen; null without an exchange. */
export function exchangeNote(branch: string): Child {
  const stay = exchanging(branch);
  if (!stay) return null;
  const stop = () => {
    endExchange();
    go("/my", { replace: true });
  };
  return h(
    "div",
    { class: "card" },
    note(t("exchangeOf", { what: stayText(stay) })),
    button(t("exchangeStop"), stop, { kind: "plain" }),
  );
}

function stayText(stay: PaymentRecord): string {
  const start = parseMinute(stay.startDateTime);
  return `${t("room", { no: stay.roomNo })} ${dateText(start)} ${timesText(start, parseStoredEnd(stay.endDateTime))}`;
}

/** What an exchange costs in one sentence. */
export const exchangePrice = (stay: PaymentRecord, price: number): string =>
  price === stay.amount ? t("exchangeSame") : t("exchangeOther", { price: won(price), old: won(stay.amount) });

/** The account for the refund of a stay of which a part was paid by virtual account; null if none is needed. */
export const exchangeAccount = (stay: Stay, price: number) =>
  stay.needsAccount && price !== stay.amount ? refundFields() : null;

/**
 * Exchanges the stay. A stay that costs the same is moved at once and done is called; otherwise the payment of the new one
 * follows. Returns false if the guest has to complete the account.
 */
export async function exchange(
  stay: PaymentRecord,
  to: { room: string; start: Minute; end: Minute },
  account: ReturnType<typeof refundFields> | null,
  done: () => void,
): Promise<boolean> {
  if (account && !checkAll(account.fields)) return false;
  const still = staying();
  const { moved } = await exchangeStay(stay.id, to.room, to.start, to.end, account?.read() ?? null);
  if (moved) {
    endExchange();
    done();
    return true;
  }
  if (!still()) return true; // the hold expires by itself
  keep({ branch: stay.branch, ...to, orderId: "", back: "", replaces: stay.id, confirming: false });
  go("/book/contact");
  return true;
}

export const exchanged = (): Child =>
  notice(sign(check(), "good"), t("exchangeDone"), t("exchangeDoneText"), link(t("my"), "/my", "primary"));
