// A customer's reservations.

import { inZone, parseMinute, parseStoredEnd } from "../booking/time";
import { refusedWith } from "../core/api";
import { ticking, whileSeen } from "../core/clock";
import { type Child, each, h, when } from "../core/dom";
import { countdown } from "../core/format";
import { resource } from "../core/resource";
import { go, staying } from "../core/router";
import type { Readable } from "../core/signal";
import { receiptStatus } from "./cash-receipt";
import { beginExchange } from "./exchange";
import { finish } from "./purchase";
import { dueOf } from "./receipt";
import { forgetRecent } from "./recent";
import { button, facts, fetched, heading, link } from "./screen";
import {
  type Branch,
  branchName,
  canCancel,
  getBranches,
  getKeys,
  getMine,
  logout,
  type PaymentRecord,
} from "./service";
import { dateText, t, timesText, won } from "./text";

export interface Mine {
  record: PaymentRecord;
  branch: Branch;
  /** The address of the key page while the key is valid. */
  key: string | null;
}

/** Leads to the login, and from there back to the screen, if the error is that of a missing session. */
export function leadsToLogin(error: unknown): boolean {
  const missing = refusedWith(error, 401, 403);
  if (missing) go(`/login?next=${location.pathname}`, { replace: true });
  return missing;
}

/** The customer's reservations. Without a session, leads to the login. */
export async function loadMine(): Promise<Mine[] | null> {
  const still = staying();
  try {
    const [records, keys, branches] = await Promise.all([getMine(), getKeys(), getBranches()]);
    return records.map((record) => {
      const key = keys.find((k) => k.id === record.id);
      return {
        record,
        branch: branches.find((b) => b.branch === record.branch)!,
        key: key ? `/k/${key.doorlockKey}` : null,
      };
    });
  } catch (error) {
    if (still() && !leadsToLogin(error)) throw error;
    return null;
  }
}

const refetch = 10_000; // ms
const slowRefetch = 300_000; // ms; staff may move or cancel a stay

export function myPage(): Child {
  const mine = resource(loadMine);
  whileSeen(refetch, () => {
    if (mine.data()?.some((m) => m.record.status === "WAITING_FOR_DEPOSIT")) void mine.refresh();
  });
  whileSeen(slowRefetch, () => void mine.refresh());
  return fetched(mine, (data) => (data.peek() ? screen(data as Readable<Mine[]>, () => void mine.refresh()) : null));
}

const startOf = (m: Mine): number => parseMinute(m.record.startDateTime);

const isOver = (m: Mine): boolean =>
  m.record.status === "CANCELED" || parseStoredEnd(m.record.endDateTime) <= inZone(m.branch.timeZone);

function screen(mine: Readable<Mine[]>, refresh: () => void): Child {
  const upcoming = () =>
    mine()
      .filter((m) => !isOver(m))
      .sort((a, b) => startOf(a) - startOf(b));
  const past = () =>
    mine()
      .filter(isOver)
      .sort((a, b) => startOf(b) - startOf(a));
  const leave = async () => {
    const still = staying();
    await logout().catch(() => undefined);
    forgetRecent();
    finish();
    if (still()) go("/", { replace: true });
  };
  return [
    heading(t("my")),
    when(
      () => upcoming().length === 0,
      () => [
        h("p", { class: "dim" }, t(past().length ? "myNoneUpcoming" : "myEmpty")),
        link(t("bookAgain"), "/", "primary"),
      ],
    ),
    when(
      () => upcoming().length > 0,
      () => [h("h2", null, t("myUpcoming")), cards(upcoming)],
    ),
    when(
      () => past().length > 0,
      () => h("details", { class: "past" }, h("summary", null, t("myPast")), cards(past)),
    ),
    h(
      "div",
      { class: "pair" },
      button(t("refresh"), refresh, { kind: "soft" }),
      button(t("logout"), () => void leave(), { kind: "soft" }),
    ),
  ];
}

/** The card of a reservation, replaced only if it shows something else, so that a refresh does not take the focus away. */
const cards = (list: () => Mine[]): Child =>
  h(
    "ul",
    { class: "cards" },
    each(
      list,
      (m) => JSON.stringify([m.record, m.key, isOver(m), cancelable(m)]),
      (m) => h("li", null, card(m.peek())),
    ),
  );

const statusText = { DONE: "statusDone", WAITING_FOR_DEPOSIT: "statusWaiting", CANCELED: "statusCanceled" } as const;

const looks = { DONE: "good", WAITING_FOR_DEPOSIT: "wait", CANCELED: "off" } as const;

function card(m: Mine): Child {
  const { record: r, branch } = m;
  const start = startOf(m);
  return h(
    "article",
    { class: "card mine" },
    h(
      "p",
      { class: "row" },
      h("b", { class: "big" }, `${branchName(branch)} ${t("room", { no: r.roomNo })}`),
      h("span", { class: `badge ${looks[r.status]}` }, t(statusText[r.status])),
    ),
    h("p", null, `${dateText(start)} ${timesText(start, parseStoredEnd(r.endDateTime))}`),
    h("p", { class: "dim" }, won(r.amount), r.refunded ? ` · ${t("refunded", { price: won(r.refunded) })}` : null),
    r.cashReceipt ? h("p", { class: "dim" }, `${t("cashReceipt")}: `, receiptStatus(r.cashReceipt)) : null,
    r.status === "WAITING_FOR_DEPOSIT" ? deposit(m) : null,
    isOver(m) ? null : h("div", { class: "pair" }, m.key ? link(t("openKey"), m.key, "primary") : null, cancelLink(m)),
    m.key && cancelable(m) ? button(t("exchange"), () => void beginExchange(m), { kind: "plain" }) : null,
  );
}

function deposit(m: Mine): Child {
  const { record: r } = m;
  const due = dueOf({ receipt: r, branch: m.branch });
  const time = ticking();
  return [
    h("p", { class: "wait" }, () => t("dueLeft", { time: countdown(due - time()) })),
    facts([
      [t("fieldBank"), r.virtualaccountBankName ? h("span", { lang: "ko" }, r.virtualaccountBankName) : ""],
      [t("fieldAccount"), r.virtualaccountAccountNumber],
      [t("labelAmount"), won(r.amount)],
    ]),
  ];
}

export const cancelable = (m: Mine): boolean => canCancel(startOf(m), m.branch);

const cancelLink = (m: Mine): Child =>
  cancelable(m) ? link(t("cancel"), `/my/${m.record.id}/cancel`) : h("p", { class: "dim" }, t("notCancelable"));
