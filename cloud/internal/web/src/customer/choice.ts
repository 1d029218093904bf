// The choice of a room and a time.

import { priceLines } from "../booking/price";
import type { Availability, Room } from "../booking/slots";
import { clockOf, dateOf, type Minute } from "../booking/time";
import { type Child, each, h } from "../core/dom";
import { go } from "../core/router";
import type { Readable, Signal } from "../core/signal";
import { button, note } from "./screen";
import { clockOnDay, span, t, timesText, won } from "./text";

export interface Choice {
  room: string;
  start: Minute;
  minutes: number;
}

/** A day of a branch with its current availability. */
export interface Day {
  branch: string;
  date: Minute;
  slots: Readable<Availability>;
  now: Readable<Minute>;
}

const usual = 60; // minutes, the most common length

/** The time to scroll to: the first column today, 09:00 on later days. */
export const opensAt = (d: Day): Minute => (d.date > d.now.peek() ? d.date + 9 * 60 : d.date);

/** The initial choice at a start: the usual length, or the longest available one below it. */
export function beginAt(d: Day, room: Room, start: Minute): Choice | null {
  const lengths = d.slots().lengths(room, start, d.now());
  const length = lengths.filter((l) => l.minutes <= usual).pop() ?? lengths[0];
  return length ? { room: room.roomNo, start, minutes: length.minutes } : null;
}

/** The choice with the shortest available length that is at least wanted, or else with the longest one. */
export function stretched(d: Day, choice: Choice, wanted: number): Choice {
  const room = d.slots().room(choice.room)!;
  const lengths = d.slots().lengths(room, choice.start, d.now());
  const length = lengths.find((l) => l.minutes >= wanted) ?? lengths[lengths.length - 1];
  return length ? { ...choice, minutes: length.minutes } : choice;
}

/** Whether a choice can still be reserved. */
export function stands(d: Day, choice: Choice): boolean {
  const room = d.slots().room(choice.room);
  return Boolean(
    room?.enabled &&
      d
        .slots()
        .lengths(room, choice.start, d.now())
        .some((l) => l.minutes === choice.minutes),
  );
}

export const end = (c: Choice): Minute => c.start + c.minutes;

function choicePrice(d: Day, c: Choice): number {
  const lines = priceLines(d.slots().room(c.room)!, c.start, c.minutes) ?? [];
  return lines.reduce((sum, line) => sum + line.won, 0);
}

/** The address of the summary of a choice. */
function summaryAddress(branch: string, date: Minute, c: Choice): string {
  const time = (m: Minute) => clockOf(m).replace(":", "");
  return `/b/${branch}/${dateOf(date)}/${c.room}/${time(c.start)}-${time(end(c))}`;
}

/**
 * Buttons for the length, with the price and the reason for the upper limit. At a limit a button is not disabled, because a
 * disabled element loses the focus.
 */
export function lengthStepper(d: Day, choice: Signal<Choice | null>): Child {
  let last = choice.peek()!;
  // While a choice is cleared, its steps keep the last one until they are removed.
  const chosen = () => {
    last = choice() ?? last;
    return last;
  };
  const lengths = () => d.slots().lengths(d.slots().room(chosen().room)!, chosen().start, d.now());
  const at = () => lengths().findIndex((l) => l.minutes === chosen().minutes);
  const step = (by: number) => {
    const next = lengths()[at() + by];
    if (next) choice.set({ ...chosen(), minutes: next.minutes });
  };
  const quick = () => lengths().filter((l) => l.minutes % 30 === 0 && (l.minutes <= 120 || l.minutes % 60 === 0));
  return [
    () => {
      const left = end(chosen()) - d.now();
      return left < chosen().minutes ? note(t("running", { time: clockOf(d.now()), left: span(left) }), "warn") : null;
    },
    h(
      "div",
      { class: "stepper", role: "group", "aria-label": t("lengthTitle") },
      h(
        "button",
        {
          type: "button",
          "aria-label": t("shorter"),
          "aria-disabled": () => (at() <= 0 ? "true" : null),
          onclick: () => step(-1),
        },
        "−",
      ),
      h(
        "output",
        { "aria-live": "polite" },
        h("b", null, () => span(chosen().minutes)),
        h("span", null, () => won(choicePrice(d, chosen()))),
      ),
      h(
        "button",
        {
          type: "button",
          "aria-label": t("longer"),
          "aria-disabled": () => (at() === lengths().length - 1 ? "true" : null),
          onclick: () => step(1),
        },
        "+",
      ),
    ),
    h(
      "ul",
      { class: "chips lengths" },
      each(
        quick,
        (l) => String(l.minutes),
        (l) => {
          const { minutes } = l.peek();
          const choose = () => choice.set({ ...chosen(), minutes });
          return h(
            "li",
            null,
            h(
              "button",
              {
                type: "button",
                class: "chip",
                "aria-pressed": () => String(choice()?.minutes === minutes),
                onclick: choose,
              },
              h("b", null, span(minutes)),
              h("span", null, () => won(l().won)),
            ),
          );
        },
      ),
    ),
    h("p", { class: "limit" }, () => limit(d, chosen())),
  ];
}

/** Why a choice cannot be longer. */
function limit(d: Day, c: Choice): string {
  const free = d.slots().freeFrom(c.room, c.start, d.now());
  const values = { time: clockOnDay(c.start + free, c.start), length: span(free) };
  switch (d.slots().obstacle(c.room, c.start, d.now())) {
    case "paid":
    case "booking":
      return t("untilBusy", values);
    case "paidMargin":
    case "bookingMargin":
      return t("untilMargin", values);
    case "breakTime":
      return t("untilBreak", values);
    case "closedTime":
      return t("untilClosed", values);
    default:
      return t("untilLongest");
  }
}

/** The button that leads from the choice to the summary. */
export const chooseButton = (d: Day, choice: Readable<Choice | null>): HTMLButtonElement =>
  button(
    () => (choice() ? t("choose", { price: won(choicePrice(d, choice()!)) }) : t("next")),
    () => go(summaryAddress(d.branch, d.date, choice.peek()!)),
    { disabled: () => !choice() },
  );

export const choiceText = (c: Choice): string => `${t("room", { no: c.room })} ${timesText(c.start, end(c))}`;
