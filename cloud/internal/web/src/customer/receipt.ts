// The receipt of a purchase. For a virtual account it shows where to transfer the money until the deposit has arrived.

import { clockOf, inZone, type Minute, parseMinute, parseStoredEnd } from "../booking/time";
import { refusedWith } from "../core/api";
import { now, ticking, whileSeen } from "../core/clock";
import { type Child, h, match } from "../core/dom";
import { submits } from "../core/form";
import { countdown } from "../core/format";
import { resource } from "../core/resource";
import { computed, effect, type Readable, signal } from "../core/signal";
import { tabStore } from "../core/storage";
import { arrival } from "./arrival";
import { receiptStatus } from "./cash-receipt";
import { notExtended } from "./contact";
import { checkAll, keyRecipient } from "./field";
import { check, clock, cross, question, sign } from "./icons";
import { mobileField } from "./person";
import { finish, purchase } from "./purchase";
import { forgetRecent } from "./recent";
import { actions, alert, button, explain, facts, fetched, heading, link, loading, note, notice } from "./screen";
import { seller } from "./seller";
import {
  type Branch,
  branchName,
  type Confirmed,
  canCancel,
  correctNumber,
  getBranch,
  getBranches,
  getReceipt,
  type Receipt,
  refundText,
} from "./service";
import { cover } from "./showcase";
import { dateText, t, timesText, won } from "./text";

const pendingInterval = 3000; // ms between checks for a deposit, and for the delivery of the key

const isPending = (r: Receipt): boolean =>
  r.status === "WAITING_FOR_DEPOSIT" || (r.status === "DONE" && r.keyMessage === "sending");

export function receiptPage(): Child {
  let first: Found | null = null;
  const source = resource(async () => {
    const found = await load();
    // Another window has bought something else since: this purchase stays as it is.
    if (first && found?.receipt.orderId !== first.receipt.orderId) return { ...first, follows: false };
    first = found;
    return found;
  });
  whileSeen(pendingInterval, () => {
    const found = source.data();
    if (found?.follows && isPending(found.receipt)) void source.refresh();
  });
  return fetched(source, (data) => {
    if (!data.peek())
      return notice(
        sign(question(), "wait"),
        t("noReceiptTitle"),
        t("noReceiptText"),
        link(t("my"), "/my", "primary"),
        link(t("home"), "/"),
      );
    const shown = data as Readable<Found>;
    seller.set(shown.peek().branch.seller);
    return match(
      () => shown().receipt.status,
      (status) =>
        status === "DONE"
          ? (extended() ?? done(shown, source.refresh))
          : status === "WAITING_FOR_DEPOSIT"
            ? waiting(shown)
            : canceled(),
    );
  });
}

interface Found {
  receipt: Receipt;
  branch: Branch;
  /** Whether the service can report the current state. */
  follows: boolean;
}

async function load(): Promise<Found | null> {
  try {
    const [receipt, branches] = await Promise.all([getReceipt(), getBranches()]);
    tabStore.remove(confirmedKey);
    return { receipt, branch: branches.find((b) => b.branch === receipt.branch)!, follows: true };
  } catch (error) {
    if (!refusedWith(error, 401)) throw error;
    forgetRecent();
    return elsewhere();
  }
}

const confirmedKey = "confirmed";
const extendedKey = "extended"; // the key page of the stay that the purchase extends

/**
 * Stores the answer of the confirmation, for a payment app that returns to a browser in which the guest has not paid.
 * keyPage is the page of the stay that the purchase extends.
 */
export function noteConfirmed(answer: Confirmed, keyPage?: string): void {
  tabStore.set(confirmedKey, JSON.stringify(answer));
  if (keyPage) tabStore.set(extendedKey, keyPage);
  else tabStore.remove(extendedKey);
}

/** Returns to the key page after the payment of an extension: the guest has the key already. Another tab may have confirmed it. */
function extended(): Child {
  const keyPage = tabStore.get(extendedKey) ?? purchase()?.back;
  if (!keyPage) return null;
  tabStore.remove(extendedKey);
  finish();
  location.replace(keyPage + "?fresh=1"); // a stored page has the old end
  return loading();
}

async function elsewhere(): Promise<Found | null> {
  const noted = tabStore.get(confirmedKey);
  if (!noted) return null;
  const answer = JSON.parse(noted) as Confirmed;
  const branch = await getBranch(answer.branch);
  const status = answer.virtualaccountAccountNumber ? "WAITING_FOR_DEPOSIT" : "DONE";
  return branch
    ? {
        branch,
        follows: false,
        // The rest is known to the browser that has paid.
        receipt: {
          ...answer,
          status,
          amount: answer.virtualaccountAmount,
          refundPolicyText: branch.refundPolicyText,
        } as Receipt,
      }
    : null;
}

function whatWasBought({ receipt: r, branch: b }: Found): [string, Child][] {
  const start = parseMinute(r.startDateTime);
  return [
    [
      t("labelBranch"),
      [
        branchName(b),
        b.address
          ? h(
              "a",
              { href: mapLink(b), rel: "noreferrer", target: "_blank" },
              h("span", { lang: "ko" }, b.address),
              " ",
              h("b", null, t("map")),
            )
          : null,
      ],
    ],
    [t("labelRoom"), t("room", { no: r.roomNo })],
    [t("labelDate"), dateText(start)],
    [t("labelTime"), timesText(start, parseStoredEnd(r.endDateTime))],
    [
      t("labelPrice"),
      r.amount === null ? methodText(r.paymentMethod) : `${won(r.amount)} · ${methodText(r.paymentMethod)}`,
    ],
    ...(r.cashReceipt ? ([[t("cashReceipt"), receiptStatus(r.cashReceipt)]] as [string, Child][]) : []),
  ];
}

/** Translates the method, a Korean value of the interface. */
const methodText = (method: string): string =>
  (
    ({
      카드: t("methodCard"),
      간편결제: t("methodEasy"),
      가상계좌: t("methodAccount"),
      휴대폰: t("methodMobile"),
    }) as Record<string, string>
  )[method] ?? method;

const mapLink = (b: Branch): string => `https://map.naver.com/p/search/${encodeURIComponent(b.address)}`;

/** 010-****-5678, j***@example.com */
const masked = (to: string): string =>
  to.includes("@")
    ? to.replace(/^(.).*@/u, "$1***@")
    : to.replace(/\d(?=(?:\D*\d){4})/g, (d, i: number) => (i < 3 ? d : "*"));

function done(shown: Readable<Found>, refresh: () => Promise<unknown>): Child {
  const { receipt: r, branch } = shown.peek();
  return [
    sign(check(), "good"),
    heading(t("doneTitle"), () => deliveryText(shown().receipt)),
    r.correctable ? correction(shown, refresh) : null,
    cover(r.photo ?? undefined, true),
    facts(whatWasBought(shown.peek())),
    canCancel(parseMinute(r.startDateTime), branch) ? note(refundText(r), "good") : note(t("refundOver")),
    r.extension ? null : h("p", { class: "dim" }, t("unlockNote")),
    arrival(branch.branch),
    r.receiptUrl
      ? h("p", null, h("a", { href: r.receiptUrl, rel: "noreferrer", target: "_blank" }, t("receipt")))
      : null,
    match(() => shown().receipt.keyLink, keyLinks),
  ];
}

function deliveryText(r: Receipt): string {
  if (r.extension) return t("extensionKey"); // the guest has the key already
  const texts = { sent: "doneSent", failed: "doneFailed" } as const;
  const how = r.keyMessage === "sent" || r.keyMessage === "failed" ? texts[r.keyMessage] : "doneText";
  const text = t(how, { to: masked((r.keyMailed && r.email) || keyRecipient(r.mobileNum, r.email)) });
  return r.keyLink ? text + t("doneHere") : text;
}

function keyLinks(url: string | null): Child {
  if (!url) return null;
  const keyPage = new URL(url).pathname;
  return [
    h(
      "div",
      { class: "pair" },
      h("a", { class: "button soft", href: `${keyPage}/reservation.ics`, download: "yeolda.ics" }, t("calendar")),
      copyButton(t("copyKey"), url),
    ),
    actions(link(t("openKey"), keyPage, "primary")),
  ];
}

const correctionKey = "correction"; // the number while it is typed, so that a reload or another language does not lose it

/** Corrects the phone number that was typed, and sends the key again. */
function correction(shown: Readable<Found>, refresh: () => Promise<unknown>): Child {
  const draft = tabStore.get(correctionKey);
  const mobile = mobileField(draft ?? shown.peek().receipt.mobileNum);
  effect(() => {
    const typed = mobile.value();
    if (typed === shown().receipt.mobileNum) tabStore.remove(correctionKey);
    else tabStore.set(correctionKey, typed);
  });
  const busy = signal(false);
  const outcome = signal<{ text: string; kind: "good" | "warn" } | null>(null);
  const send = async () => {
    if (!checkAll([mobile])) return;
    const { orderId, doorlockKey } = shown.peek().receipt;
    busy.set(true);
    outcome.set(null);
    const failure = await correctNumber(orderId, mobile.value.peek().trim()).catch(explain);
    await refresh(); // also after a failure: if only the answer was lost, the shown key no longer works
    outcome.set(
      failure && shown.peek().receipt.doorlockKey === doorlockKey
        ? { text: failure, kind: "warn" }
        : { text: t("numberCorrected"), kind: "good" },
    );
    busy.set(false);
  };
  const failed = computed(() => shown().receipt.keyMessage === "failed");
  return [
    h(
      "details",
      { class: "correction", open: () => draft !== null || failed() },
      h("summary", null, t("correctNumber")),
      h(
        "form",
        { novalidate: true, onsubmit: submits(send, busy) },
        mobile.view,
        h("p", { class: "dim" }, t("correctNote")),
        button(t("sendKeyAgain"), () => void send(), { kind: "soft", busy }),
      ),
    ),
    alert(() => {
      const said = outcome();
      return said ? note(said.text, said.kind) : null;
    }),
  ];
}

/** Copies a value. A browser without a clipboard, or one that refuses it, shows the value to copy by hand. */
function copyButton(text: string, value: string): Child {
  const copied = signal(false);
  return h(
    "button",
    {
      type: "button",
      class: "button soft",
      onclick: async () => {
        try {
          await navigator.clipboard.writeText(value);
          copied.set(true);
          setTimeout(() => copied.set(false), 3000);
        } catch {
          prompt(text, value);
        }
      },
    },
    h("span", { "aria-live": "polite" }, () => (copied() ? t("copied") : text)),
  );
}

function waiting(found: Readable<Found>): Child {
  const { receipt: r } = found.peek();
  const due = dueOf(found.peek());
  const time = ticking();
  const left = computed(() => due - time());
  const keyPage = tabStore.get(extendedKey);
  return [
    sign(clock(), "wait"),
    heading(t("waitTitle"), t(found.peek().follows ? "waitText" : r.extension ? "extensionKey" : "waitElsewhere")),
    h(
      "p",
      { class: "hold-chip" },
      clock(),
      h("span", { role: "timer" }, () => t("dueLeft", { time: countdown(left()) })),
    ),
    h(
      "div",
      { class: "account" },
      h("p", { class: "dim", lang: "ko" }, r.virtualaccountBankName),
      h("p", { class: "number" }, r.virtualaccountAccountNumber),
      copyButton(t("copy"), r.virtualaccountAccountNumber ?? ""),
    ),
    facts([
      [t("labelAmount"), h("b", null, won(r.virtualaccountAmount ?? r.amount ?? 0))],
      [t("fieldHolder"), r.virtualaccountCustomerName],
      [t("labelDue"), r.virtualaccountDueDate ? dueText(r.virtualaccountDueDate) : ""],
    ]),
    note(t("exact"), "warn"),
    facts(whatWasBought(found.peek())),
    keyPage ? actions(link(t("openKey"), keyPage)) : null,
  ];
}

const dueMinute = (local: string): Minute => parseMinute(local.replace(/\D/g, "").slice(0, 12));

const dueText = (local: string): string => `${dateText(dueMinute(local))} ${clockOf(dueMinute(local))}`;

/** The instant at which a deposit is due. The interface has the branch's local time without an offset. */
export function dueOf({
  receipt: r,
  branch: b,
}: {
  receipt: { virtualaccountDueDate: string | null };
  branch: Branch;
}): number {
  const local = r.virtualaccountDueDate;
  if (!local) return now();
  const asIfUtc = Date.parse(`${local}Z`);
  const ahead = (at: number) => (inZone(b.timeZone, at) - Math.floor(at / 60_000)) * 60_000;
  const near = asIfUtc - ahead(asIfUtc);
  return asIfUtc - ahead(near); // the clocks may change between near and asIfUtc
}

function canceled(): Child {
  const keyPage = tabStore.get(extendedKey);
  if (keyPage) return notExtended(keyPage, t("notPaidText"));
  return notice(
    sign(cross(), "bad"),
    t("canceledTitle"),
    t("canceledText"),
    link(t("bookAgain"), "/", "primary"),
    link(t("my"), "/my"),
  );
}
