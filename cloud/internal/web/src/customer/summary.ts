// The summary of a choice. The next step holds the room.

import { type Priced, priceLines } from "../booking/price";
import { clockOf, day, inZone, type Minute, parseDate, slot } from "../booking/time";
import { refusedWith } from "../core/api";
import { type Child, h, match } from "../core/dom";
import { resource } from "../core/resource";
import { go, staying } from "../core/router";
import { signal } from "../core/signal";
import { exchange, exchangeAccount, exchanged, exchangeNote, exchangePrice, exchanging } from "./exchange";
import { question, sign } from "./icons";
import { missing } from "./missing";
import { leadsToLogin } from "./my";
import { begin, giveUp, keep } from "./purchase";
import { actions, button, explain, facts, fetched, heading, link, note, notice, trouble } from "./screen";
import { seller } from "./seller";
import { type Branch, branchName, canCancel, getBranch, getDay, refundText } from "./service";
import { dateText, span, t, timesText, won } from "./text";

interface Offer {
  branch: Branch;
  room: string;
  machine: string;
  priced: Priced;
  start: Minute;
  end: Minute;
  free: boolean;
}

export function summaryPage({ branch = "", date = "", room = "", times = "" }: Record<string, string>): Child {
  void giveUp();
  const [start, end] = interval(date, times);
  if (Number.isNaN(start)) return missing();
  const rooms = `/b/${branch}/${date}`;
  const offer = resource(async (): Promise<Offer | null> => {
    const [b, slots] = await Promise.all([getBranch(branch), getDay(branch, date)]);
    const found = slots.room(room);
    if (!b || !found) return null;
    const free = found.enabled && slots.freeFrom(room, start, inZone(b.timeZone)) >= end - start;
    return { branch: b, room, machine: found.machine, priced: found, start, end, free };
  });
  return fetched(offer, (data) => {
    const o = data.peek();
    if (!o) return missing();
    seller.set(o.branch.seller);
    const lines = priceLines(o.priced, o.start, o.end - o.start);
    const past = start + slot <= inZone(o.branch.timeZone);
    if (!o.free || !lines)
      return notice(
        sign(question(), "wait"),
        t("invalidChoice"),
        t(past ? "statePast" : "stale"),
        link(t("pickAgain"), past ? `/b/${branch}` : rooms, "primary"),
      );
    const moved = signal(false);
    return match(moved, (is) => (is ? exchanged() : screen(o, lines, rooms, () => moved.set(true))));
  });
}

/** Parses 1500-1620 on a date. An end that is not after the start lies on the next day. */
function interval(date: string, times: string): [Minute, Minute] {
  const found = /^([01]\d|2[0-3])([0-5]0)-([01]\d|2[0-3])([0-5]0)$/.exec(times);
  const midnight = parseDate(date);
  if (!found) return [NaN, NaN];
  const [, h1, m1, h2, m2] = found.map(Number) as [number, number, number, number, number];
  const [start, end] = [midnight + h1 * 60 + m1, midnight + h2 * 60 + m2];
  return [start, end > start ? end : end + day];
}

function screen(o: Offer, lines: { minutes: number; won: number }[], rooms: string, moved: () => void): Child {
  const price = lines.reduce((sum, line) => sum + line.won, 0);
  const stay = exchanging(o.branch.branch);
  const account = stay && exchangeAccount(stay, price);
  const busy = signal(false);
  const problem = signal("");
  const reserve = async () => {
    // Before the room is held: a browser that stores nothing has no cookies either, so it could not pay for the hold.
    if (!keep({})) {
      problem.set(t("needStorage"));
      return;
    }
    const still = staying();
    busy.set(true);
    problem.set("");
    try {
      if (stay) {
        if (!(await exchange(stay, o, account, moved))) busy.set(false);
        return;
      }
      if (await begin(o.branch.branch, o.room, o.start, o.end)) go("/book/contact");
    } catch (error) {
      busy.set(false);
      if (!still()) return;
      if (refusedWith(error, 409)) go(`${rooms}?taken=1`, { replace: true });
      else if (!leadsToLogin(error)) problem.set(explain(error));
    }
  };
  return [
    heading(t(stay ? "exchangeTitle" : "summaryTitle")),
    exchangeNote(o.branch.branch),
    facts([
      [
        t("labelBranch"),
        [branchName(o.branch), o.branch.address ? h("span", { class: "dim", lang: "ko" }, o.branch.address) : null],
      ],
      [t("labelRoom"), [t("room", { no: o.room }), h("span", { class: "dim", lang: "ko" }, o.machine)]],
      [t("labelDate"), dateText(o.start)],
      [t("labelTime"), [timesText(o.start, o.end), h("span", { class: "dim" }, span(o.end - o.start))]],
    ]),
    h(
      "div",
      { class: "bill" },
      h("p", { class: "dim" }, lines.map((l) => `${span(l.minutes)} ${won(l.won)}`).join(" + ")),
      h("p", { class: "total" }, h("span", null, t("labelPrice")), h("b", null, won(price))),
    ),
    stay ? note(exchangePrice(stay, price), "good") : null,
    account?.view ?? null,
    canCancel(o.start, o.branch) ? note(refundText(o.branch), "good") : note(t("refundGone"), "warn"),
    runningNote(o),
    h("p", { class: "dim" }, t("unlockNote")),
    trouble(problem),
    actions(
      button(t(!stay ? "holdAndPay" : price === stay.amount ? "exchangeNow" : "exchangeAndPay"), () => void reserve(), {
        busy,
      }),
    ),
  ];
}

/** A slot that has begun is sold at the full price, so the guest must know how much of it is left. */
function runningNote(o: Offer): Child {
  const now = inZone(o.branch.timeZone);
  return o.start < now ? note(t("running", { time: clockOf(now), left: span(o.end - now) }), "warn") : null;
}
