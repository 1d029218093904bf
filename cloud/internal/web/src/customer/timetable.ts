// The timetable of wide screens: a row per room, a column per ten minutes. A click selects a start, a second click in
// the same row the end. Arrow keys move the focus, Shift with an arrow key extends the choice, Enter selects.

import { smallest } from "../booking/price";
import type { Room, SlotState } from "../booking/slots";
import { clockOf, day, type Minute, slot, slotOf } from "../booking/time";
import { type Child, each, h, match } from "../core/dom";
import { computed, effect, type Readable, type Signal, signal } from "../core/signal";
import {
  beginAt,
  type Choice,
  choiceText,
  chooseButton,
  type Day,
  end,
  lengthStepper,
  opensAt,
  stretched,
} from "./choice";
import { span, t, won } from "./text";

const hour = 60;

/** The names of the states. Customers see both kinds of margin as one. */
const names: Record<SlotState, Parameters<typeof t>[0]> = {
  free: "stateFree",
  past: "statePast",
  paid: "statePaid",
  booking: "stateBooking",
  paidMargin: "stateMargin",
  bookingMargin: "stateMargin",
  breakTime: "stateBreak",
  closedTime: "stateClosed",
};

/** The class of a state, after its name: free, past, paid, booking, margin, break or closed. */
const lookOf = (state: SlotState): string => names[state].slice("state".length).toLowerCase();

export function timetable(d: Day, choice: Signal<Choice | null>): Child {
  const columns = columnsOf(d);
  const focus = signal<{ room: string; at: Minute } | null>(null);
  const table = h(
    "table",
    {
      class: "timetable",
      role: "grid",
      "aria-label": t("gridLabel"),
      "aria-describedby": "grid-help",
      onclick: (e: MouseEvent) => clicked(d, choice, focus, e),
      onkeydown: (e: KeyboardEvent) => pressed(d, choice, focus, columns, e),
    },
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("td", null),
        hoursOf(columns).map(([from, count]) => h("th", { scope: "col", colspan: count }, clockOf(from))),
      ),
    ),
    h(
      "tbody",
      null,
      each(
        () => d.slots().rooms,
        (r) => r.roomNo,
        (r) => row(d, r, columns, choice),
      ),
    ),
  );
  // Exactly one cell is in the tab order: the one used last, otherwise the first free one in view.
  effect(() => {
    d.slots();
    const f = focus();
    const free = [...table.querySelectorAll<HTMLElement>("td.free")];
    const cell =
      (f && cellOf(table, f.room, f.at)) ||
      free.find((c) => Number(c.dataset.at) >= opensAt(d)) ||
      free[0] ||
      table.querySelector<HTMLElement>("td[data-at]");
    for (const c of table.querySelectorAll<HTMLElement>("td[tabindex='0']")) c.tabIndex = -1;
    if (cell) cell.tabIndex = 0;
  });
  const scroller = h(
    "div",
    { class: "timetable-scroll", tabindex: 0, role: "region", "aria-label": t("gridLabel") },
    table,
  );
  queueMicrotask(() => {
    const first = table.querySelector<HTMLElement>(`td[data-at="${opensAt(d)}"]`);
    if (first)
      scroller.scrollLeft = first.offsetLeft - (table.querySelector<HTMLElement>("tbody th")?.offsetWidth ?? 0);
  });
  return [
    h("p", { class: "dim", id: "grid-help" }, t("gridHelp")),
    scroller,
    legend(),
    match(
      () => choice() !== null,
      (chosen) =>
        chosen
          ? h(
              "div",
              { class: "actions choice" },
              h("p", { class: "chosen", "aria-live": "polite" }, () => (choice() ? choiceText(choice()!) : "")),
              h("div", { class: "choice-length" }, lengthStepper(d, choice)),
              chooseButton(d, choice),
            )
          : null,
    ),
  ];
}

/** The columns to show: from now on, without leading and trailing hours in which every room is closed. */
function columnsOf(d: Day): Minute[] {
  const closed = (m: Minute) => d.slots().rooms.every((r) => d.slots().state(r.roomNo, m, d.now()) === "closedTime");
  let [from, to] = [Math.max(d.date, slotOf(d.now())), d.date + day];
  while (from < to && closed(from)) from += slot;
  while (to > from && closed(to - slot)) to -= slot;
  return Array.from({ length: Math.max(0, (to - from) / slot) }, (_, i) => from + i * slot);
}

function hoursOf(columns: Minute[]): [from: Minute, count: number][] {
  const hours = new Map<number, [Minute, number]>();
  for (const m of columns) {
    const entry = hours.get(Math.floor(m / hour)) ?? [m, 0];
    hours.set(Math.floor(m / hour), [entry[0], entry[1] + 1]);
  }
  return [...hours.values()];
}

/** The row of a room. It is updated in place because it may have the focus. */
function row(d: Day, room: Readable<Room>, columns: Minute[], choice: Signal<Choice | null>): Element {
  const { roomNo, grade, machine } = room.peek();
  const from = smallest(room.peek());
  const price = from ? t("priceFrom", { length: span(from.minutes), price: won(from.won) }) : t("notForSale");
  return h(
    "tr",
    { class: () => (room().enabled ? null : "disabled") },
    h(
      "th",
      { scope: "row" },
      h("b", null, t("room", { no: roomNo })),
      grade ? h("span", { class: "badge" }, grade) : null,
      h("span", { class: "dim", lang: "ko" }, machine),
      h("span", { class: "dim" }, () => (room().enabled ? price : t("disabled"))),
    ),
    columns.map((m) => cell(d, room, m, choice)),
  );
}

function cell(d: Day, room: Readable<Room>, m: Minute, choice: Signal<Choice | null>): Element {
  const { roomNo } = room.peek();
  const state = computed(() => (room().enabled ? d.slots().state(roomNo, m, d.now()) : null));
  const selected = computed(() => {
    const c = choice();
    return c !== null && c.room === roomNo && m >= c.start && m < end(c);
  });
  const look = () => (state() ? lookOf(state()!) : "off");
  const what = () => t(state() ? names[state()!] : "disabled");
  const label: Child = m % hour === 0 ? h("b", null, clockOf(m)) : clockOf(m).slice(2);
  return h(
    "td",
    {
      tabindex: -1,
      class: () => (selected() ? `${look()} selected` : look()),
      "data-room": roomNo,
      "data-at": m,
      "aria-label": () => `${t("room", { no: roomNo })} ${clockOf(m)} ${what()}`,
      "aria-selected": () => String(selected()),
      "aria-disabled": () => (state() === "free" ? null : "true"),
    },
    () => (state() === "free" ? label : null),
  );
}

const cellOf = (table: Element, room: string, at: Minute): HTMLElement | null =>
  table.querySelector(`td[data-room="${CSS.escape(room)}"][data-at="${at}"]`);

interface Place {
  room: string;
  at: Minute;
}

function placeOf(event: Event): Place | null {
  const cell = (event.target as Element).closest<HTMLElement>("td[data-at]");
  return cell && { room: cell.dataset.room!, at: Number(cell.dataset.at) };
}

/** Selects a start, or the end of a choice that begins earlier in the same row. */
function take(d: Day, choice: Signal<Choice | null>, place: Place): void {
  const c = choice.peek();
  if (
    c &&
    c.room === place.room &&
    place.at >= c.start &&
    place.at < c.start + d.slots().freeFrom(c.room, c.start, d.now())
  ) {
    choice.set(stretched(d, c, place.at + slot - c.start));
    return;
  }
  const room = d.slots().room(place.room)!;
  if (room.enabled) choice.set(beginAt(d, room, place.at));
}

function clicked(d: Day, choice: Signal<Choice | null>, focus: Signal<Place | null>, event: MouseEvent): void {
  const place = placeOf(event);
  if (!place) return;
  focus.set(place);
  take(d, choice, place);
}

function pressed(
  d: Day,
  choice: Signal<Choice | null>,
  focus: Signal<Place | null>,
  columns: Minute[],
  event: KeyboardEvent,
): void {
  const place = placeOf(event);
  if (!place) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    take(d, choice, place);
    return;
  }
  const rooms = d.slots().rooms.map((r) => r.roomNo);
  const [x, y] = [columns.indexOf(place.at), rooms.indexOf(place.room)];
  const to = {
    ArrowRight: [x + 1, y],
    ArrowLeft: [x - 1, y],
    ArrowDown: [x, y + 1],
    ArrowUp: [x, y - 1],
    Home: [0, y],
    End: [columns.length - 1, y],
  }[event.key];
  if (!to) return;
  event.preventDefault();
  const next = { at: columns[to[0]!], room: rooms[to[1]!] };
  if (next.at === undefined || next.room === undefined) return;
  const c = choice.peek();
  if (event.shiftKey && c && c.room === place.room && next.room === c.room)
    choice.set(stretched(d, c, Math.max(slot, next.at + slot - c.start)));
  focus.set({ at: next.at, room: next.room });
  const target = cellOf(event.currentTarget as Element, next.room, next.at);
  target?.focus();
}

function legend(): Child {
  const item = (look: string, text: string) =>
    h("li", null, h("span", { class: `swatch ${look}`, "aria-hidden": "true" }), text);
  return h(
    "ul",
    { class: "legend" },
    item("free", t("stateFree")),
    item("selected", t("selected")),
    item("paid", t("statePaid")),
    item("booking", t("stateBooking")),
    item("margin", t("stateMargin")),
    item("break", t("stateBreak")),
    item("closed", t("stateClosed")),
    item("off", t("disabled")),
  );
}
