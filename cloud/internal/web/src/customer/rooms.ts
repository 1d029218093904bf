// The rooms of a day: cards and a sheet on phones, the timetable on wide screens.

import { smallest } from "../booking/price";
import type { Availability, Room } from "../booking/slots";
import { clockOf, dateOf, day, inZone, type Minute, parseDate, slot, slotOf } from "../booking/time";
import { ticking, whileSeen } from "../core/clock";
import { type Child, each, h, match } from "../core/dom";
import { resource } from "../core/resource";
import { query } from "../core/router";
import { computed, effect, onCleanup, type Readable, type Signal, signal, untracked } from "../core/signal";
import { type Choice, type Day, stands } from "./choice";
import { exchangeNote } from "./exchange";
import { rememberBranch } from "./last-branch";
import { missing } from "./missing";
import { picker } from "./picker";
import { giveUp } from "./purchase";
import { alert, fetched, heading, link } from "./screen";
import { seller } from "./seller";
import { type Branch, branchName, type CalendarDay, getBranch, getCalendar, getDay, lastDay } from "./service";
import { amenities, cover, getShowcase, type Showcase, showsAnything, wholeShowcase } from "./showcase";
import { dateText, span, t, won } from "./text";
import { timetable } from "./timetable";

const refetch = 20_000; // ms

interface Found {
  branch: Branch;
  day: CalendarDay | undefined;
  slots: Availability;
  showcase: Showcase;
}

export function roomsPage({ branch = "", date = "" }: Record<string, string>): Child {
  void giveUp();
  const at = parseDate(date);
  if (Number.isNaN(at)) return missing();
  let kept: Promise<Showcase> | undefined; // the slots are fetched again and again, the photos once
  const showcase = () => (kept ??= getShowcase(branch));
  const found = resource(async (): Promise<Found | null> => {
    const b = await getBranch(branch);
    if (!b) return null;
    const [days, slots, shown] = await Promise.all([
      getCalendar(branch, date.slice(0, 7)),
      getDay(branch, date),
      showcase(),
    ]);
    return { branch: b, day: days.find((d) => d.date === date), slots, showcase: shown };
  });
  whileSeen(refetch, () => void found.refresh());
  return fetched(found, (data) => {
    const now = data.peek();
    if (!now) return missing();
    rememberBranch(branch);
    seller.set(now.branch.seller);
    return screen(
      now.branch,
      at,
      now.day,
      computed(() => data()!.slots),
      now.showcase,
    );
  });
}

function screen(
  b: Branch,
  date: Minute,
  status: CalendarDay | undefined,
  slots: Readable<Availability>,
  showcase: Showcase,
): Child {
  const time = ticking();
  const now = computed(() => inZone(b.timeZone, time()));
  const d: Day = { branch: b.branch, date, slots, now };
  const choice = signal<Choice | null>(null);
  const lost = signal("");
  effect(() => {
    const c = choice();
    if (!c || stands(d, c)) return;
    choice.set(null);
    lost.set(t(c.start + slot <= now() ? "statePast" : "stale"));
  });
  effect(() => {
    if (choice()) untracked(() => lost.set(""));
  });
  if (query().get("taken")) {
    lost.set(t("stale"));
    history.replaceState(null, "", location.pathname); // shown once
  }
  return [
    exchangeNote(b.branch),
    heading(
      t("roomsTitle"),
      [branchName(b), " · ", dateText(date)],
      t("roomsPage", { branch: branchName(b), date: dateText(date) }),
    ),
    dateNav(b, date, now.peek()),
    alert(() => (lost() ? h("p", { class: "note warn" }, lost()) : null)),
    status && status.status !== "available"
      ? h(
          "section",
          { class: "empty" },
          h("h2", null, t("closedDate")),
          h("p", { lang: "ko" }, status.reason ?? ""),
          link(t("pickOther"), `/b/${b.branch}`, "primary"),
        )
      : match(wide(), (isWide) =>
          isWide ? [timetable(d, choice), showcases(d, showcase)] : cards(d, choice, showcase),
        ),
  ];
}

/** Whether the screen is wide enough for the timetable. */
function wide(): Readable<boolean> {
  const media = matchMedia("(min-width: 60rem)");
  const matches = signal(media.matches);
  const changed = () => matches.set(media.matches);
  media.addEventListener("change", changed);
  onCleanup(() => media.removeEventListener("change", changed));
  return matches;
}

function dateNav(b: Branch, date: Minute, now: Minute): Child {
  const today = parseDate(dateOf(now));
  const step = (to: Minute, text: string, sign: string): Child =>
    to < today || to > lastDay(b, today)
      ? h("span", { class: "step off" }, sign)
      : h("a", { class: "step", href: `/b/${b.branch}/${dateOf(to)}`, "aria-label": `${text} ${dateText(to)}` }, sign);
  return h(
    "nav",
    { class: "date-nav", "aria-label": t("labelDate") },
    step(date - day, t("previousDay"), "‹"),
    h("a", { class: "this", href: `/b/${b.branch}` }, dateText(date), h("span", { class: "hidden" }, t("otherDate"))),
    step(date + day, t("nextDayLink"), "›"),
  );
}

/** The photos and texts of the rooms below the timetable. */
function showcases(d: Day, showcase: Showcase): Child {
  const rooms = d.slots.peek().rooms.flatMap((r) => showcase.get(r.roomNo) ?? []);
  return rooms.some(showsAnything)
    ? h(
        "ul",
        { class: "showcases" },
        rooms
          .filter(showsAnything)
          .map((r) => h("li", { class: "card room" }, h("h2", null, t("room", { no: r.roomNo })), wholeShowcase(r))),
      )
    : null;
}

function cards(d: Day, choice: Signal<Choice | null>, showcase: Showcase): Child {
  const open = () => query().get("room");
  return [
    h(
      "ul",
      { class: "cards" },
      each(
        () => d.slots().rooms,
        (r) => r.roomNo,
        (r) => h("li", null, card(d, r, showcase, r.peek() === d.slots.peek().rooms[0])),
      ),
    ),
    match(open, (no) => {
      const room = no === null ? undefined : d.slots.peek().room(no);
      return room?.enabled ? picker(d, room, choice, wholeShowcase(showcase.get(room.roomNo))) : null;
    }),
  ];
}

/** The first start of the day at which a room can be reserved. */
const firstFree = (d: Day, room: Room) =>
  d.slots().firstFree(room, Math.max(d.date, slotOf(d.now())), d.date + day, d.now());

function card(d: Day, room: Readable<Room>, showcase: Showcase, eager: boolean): Child {
  const { roomNo, grade, machine } = room.peek();
  const from = smallest(room.peek());
  const first = () => (room().enabled ? firstFree(d, room()) : null);
  const inside = (): Child => [
    cover(showcase.get(roomNo)?.photos[0], eager),
    h(
      "span",
      { class: "row" },
      h("b", { class: "big" }, t("room", { no: roomNo })),
      grade ? h("span", { class: "badge" }, grade) : null,
    ),
    h("span", { class: "dim", lang: "ko" }, machine),
    amenities(showcase.get(roomNo)),
    () => strip(d, room()),
    h(
      "span",
      { class: "row" },
      h("span", { class: () => (first() ? "good" : "dim") }, () => availability(d, room(), first())),
      () =>
        from && room().enabled
          ? h("span", { class: "price" }, t("priceFrom", { length: span(from.minutes), price: won(from.won) }))
          : null,
    ),
  ];
  return match(
    () => (!room().enabled ? "disabled" : first() ? "open" : "full"),
    (is) =>
      is === "open"
        ? h(
            "a",
            { class: "card room", href: `${location.pathname}?room=${roomNo}`, "aria-haspopup": "dialog" },
            inside(),
          )
        : h("div", { class: `card room off ${is}` }, inside()),
  );
}

function availability(d: Day, room: Room, first: { start: Minute; free: number } | null): string {
  if (!room.enabled) return t("disabled");
  if (!smallest(room)) return t("notForSale");
  if (!first) return t(d.date + day > d.now() ? "full" : "statePast");
  return freeText(d, room.roomNo, first.start, first.free);
}

const evening = 18 * 60; // minutes of the day

/**
 * Describes when a room is free that is free for some minutes from start on: all day, for the rest of the day, only in the
 * evening, or until the next reservation.
 */
function freeText(d: Day, no: string, start: Minute, free: number): string {
  const reserved = (from: Minute, until: Minute) => d.slots().hasReservation(no, from, until);
  const [from, length, now] = [clockOf(start), span(free), start <= d.now()];
  if (reserved(start, d.date + day)) return now ? t("freeNowFor", { length }) : t("freeFor", { from, length });
  if (now) return t("freeOn");
  const first = Math.max(d.date, slotOf(d.now()));
  if (start >= d.date + evening && reserved(first, start)) return t("freeEvening", { from });
  return d.now() > d.date || reserved(d.date, start) ? t("freeFromOn", { from }) : t("freeAllDay");
}

/** The day of a room as a line with free times coloured and hours below, in addition to the sentence below it. */
function strip(d: Day, room: Room): Child {
  const runs = [];
  for (let at = d.date; at < d.date + day; ) {
    let to = at;
    while (
      to < d.date + day &&
      (d.slots().state(room.roomNo, to, d.now()) === "free") === (d.slots().state(room.roomNo, at, d.now()) === "free")
    )
      to += slot;
    if (room.enabled && d.slots().state(room.roomNo, at, d.now()) === "free")
      runs.push(h("rect", { x: at - d.date, y: 0, width: to - at, height: 1 }));
    at = to;
  }
  return [
    h("svg", { class: "strip", viewBox: `0 0 ${day} 1`, preserveAspectRatio: "none", "aria-hidden": "true" }, runs),
    h(
      "span",
      { class: "axis", "aria-hidden": "true" },
      ["0", "6", "12", "18", "24"].map((hour) => h("i", null, hour)),
    ),
  ];
}
