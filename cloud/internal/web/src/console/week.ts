// Seven days of a branch: how full each room is. A press on a day leads to its timetable.

import { dateOf, day as dayLength, type Minute, parseDate, weekday } from "../booking/time";
import { whileSeen } from "../core/clock";
import { type Child, h } from "../core/dom";
import { resource } from "../core/resource";
import type { Params } from "../core/router";
import { type Block, type Day, fetchDay, isReservation, type Room } from "./day/model";
import { icon } from "./icons";
import { gather, watch } from "./live";
import { fetched, heading } from "./parts";
import type { Branch } from "./session";
import { shortcut } from "./shortcuts";
import { dateText, t } from "./text";
import { todayOf } from "./today";

const length = 7;
/** The interval in ms at which the week is read again: the connection reports the reservations of one day. */
const interval = 30_000;

export function weekScreen(branch: Branch, { date }: Params): Child {
  const today = todayOf(branch);
  const wanted = parseDate(date && !Number.isNaN(parseDate(date)) ? date : today);
  const first = wanted - ((weekday(wanted) + 6) % 7) * dayLength; // weeks begin on Monday
  const dates = Array.from({ length }, (_, i) => dateOf(first + i * dayLength));
  const source = resource(() => Promise.all(dates.map((d) => fetchDay(branch.branch, d))));
  const refresh = gather(source.refresh, 1000);
  watch(branch.branch, today, (event) => {
    if (!event || event.kind === "slot" || event.kind === "payment") refresh();
  });
  whileSeen(interval, refresh);
  const to = (by: number, mark: "left" | "right", text: string) =>
    h(
      "a",
      {
        class: "button plain",
        href: `/console/${branch.branch}/week/${dateOf(first + by * length * dayLength)}`,
        "aria-label": text,
      },
      icon(mark),
    );
  return [
    heading(
      `${dateText(first)} – ${dateText(first + (length - 1) * dayLength)}`,
      h(
        "div",
        { class: "dates" },
        shortcut("k", to(-1, "left", t("weekBefore"))),
        shortcut("t", h("a", { class: "button soft", href: `/console/${branch.branch}/week` }, t("weekNow"))),
        shortcut("j", to(1, "right", t("weekAfter"))),
      ),
      shortcut(
        "d",
        h("a", { class: "button soft", href: `/console/${branch.branch}/day/${dateOf(wanted)}` }, t("viewDay")),
      ),
    ),
    h("p", { class: "lead" }, t("weekLead")),
    fetched(source, (days) => () => table(branch, days(), today)),
  ];
}

function table(branch: Branch, days: Day[], today: string): HTMLElement {
  const rooms = days[0]!.rooms;
  return h(
    "div",
    { class: "weekbox", role: "region", "aria-label": t("week"), tabindex: 0 },
    h(
      "table",
      { class: "weektable" },
      h("caption", { class: "hidden" }, t("week")),
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          h("th", { scope: "col" }, t("room")),
          days.map((d) =>
            h(
              "th",
              { scope: "col" },
              h(
                "a",
                {
                  href: `/console/${branch.branch}/day/${d.date}`,
                  "aria-current": d.date === today ? "date" : null,
                },
                dateText(parseDate(d.date)),
              ),
              d.status === "available" ? null : h("small", null, d.reason || t("closedDay")),
            ),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        rooms.map((room) =>
          h(
            "tr",
            null,
            h("th", { scope: "row" }, t("roomNo", { n: room.roomNo }), h("small", null, room.machine)),
            days.map((d) => cell(branch, room, d)),
          ),
        ),
      ),
    ),
  );
}

const within = (b: { start: Minute; end: Minute }, from: Minute): number =>
  Math.max(0, Math.min(b.end, from + dayLength) - Math.max(b.start, from));

/** The part of the open hours that is reserved, in percent. */
function share(d: Day, own: Block[]): number {
  const midnight = parseDate(d.date);
  const sum = (list: { start: Minute; end: Minute }[]) => list.reduce((n, b) => n + within(b, midnight), 0);
  const open = dayLength - sum(d.closed) - sum(d.breaks);
  return open > 0 ? Math.min(100, Math.round((100 * sum(own)) / open)) : 0;
}

function cell(branch: Branch, room: Room, d: Day): HTMLElement {
  const own = d.blocks.filter((b) => b.room === room.roomNo && isReservation(b) && b.kind !== "conflict");
  const percent = share(d, own);
  return h(
    "td",
    { class: d.status === "available" ? null : "closed" },
    h(
      "a",
      {
        href: `/console/${branch.branch}/day/${d.date}`,
        "--full": `${percent}%`,
      },
      h("span", { class: "hidden" }, `${dateText(parseDate(d.date))}, ${t("roomNo", { n: room.roomNo })}: `),
      h("b", null, `${percent}%`),
      h("small", null, t("weekCount", { n: own.length })),
    ),
  );
}
