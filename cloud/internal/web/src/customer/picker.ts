// The sheet in which a phone user picks the time of a room: hour, start, length. It is part of the address, so the back
// button closes it.

import type { Room } from "../booking/slots";
import { clockOf, day, type Minute, slot, slotOf } from "../booking/time";
import { type Child, each, h, match, when } from "../core/dom";
import { go, query } from "../core/router";
import { computed, effect, onCleanup, type Readable, type Signal, signal } from "../core/signal";
import { beginAt, type Choice, chooseButton, type Day, end, lengthStepper, opensAt } from "./choice";
import { cross } from "./icons";
import { closeDialog, openDialog } from "./screen";
import { t, timesText } from "./text";

const hour = 60;

export function picker(d: Day, room: Room, choice: Signal<Choice | null>, showcase: Child): Child {
  const starts = computed(() => startsOf(d, room));
  const hours = computed(() => [...new Set(starts().map((m) => Math.floor(m / hour) * hour))]);
  // Before the scripts ran, a start was chosen by a link.
  const asked = starts.peek().find((m) => clockOf(m).replace(":", "") === query().get("start"));
  choice.set(asked === undefined ? null : beginAt(d, room, asked));
  const shown = signal(hours.peek().find((m) => m + hour > (asked ?? opensAt(d))) ?? hours.peek()[0] ?? d.date);
  const close = () => go(location.pathname, { replace: true });
  const dialog = h(
    "dialog",
    {
      class: "sheet",
      "aria-labelledby": "sheet-title",
      onclose: close,
      onclick: (event: MouseEvent) => event.target === event.currentTarget && closeDialog(dialog),
    },
    h(
      "div",
      { class: "sheet-body" },
      h(
        "div",
        { class: "row" },
        h(
          "h2",
          { id: "sheet-title" },
          t("room", { no: room.roomNo }),
          h("span", { class: "dim", lang: "ko" }, room.machine),
        ),
        h(
          "button",
          { type: "button", class: "icon-button", "aria-label": t("close"), onclick: () => closeDialog(dialog) },
          cross(),
        ),
      ),
      showcase,
      h("h3", null, t("startTitle")),
      h(
        "div",
        { class: "hours", role: "group", "aria-label": t("startTitle") },
        each(hours, String, (m) => hourChip(m.peek(), shown)),
      ),
      h("ul", { class: "chips starts" }, () =>
        slotsOf(shown()).map((m) => h("li", null, startChip(d, room, m, starts, choice))),
      ),
      when(
        () => choice(),
        () => [h("h3", null, t("lengthTitle")), lengthStepper(d, choice)],
      ),
      h(
        "div",
        { class: "actions" },
        match(
          () => choice() !== null,
          (chosen) =>
            chosen
              ? h("p", { class: "chosen" }, () => (choice() ? timesText(choice()!.start, end(choice()!)) : ""))
              : null,
        ),
        chooseButton(d, choice),
      ),
    ),
  );
  queueMicrotask(() => {
    if (!dialog.isConnected) return;
    openDialog(dialog);
    dialog.querySelector(".hours [aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "start" });
  });
  // The page behind the sheet must not scroll.
  document.documentElement.classList.add("still");
  onCleanup(() => document.documentElement.classList.remove("still"));
  effect(() => {
    const first = hours()[0];
    if (first !== undefined && !hours().includes(shown())) shown.set(first);
  });
  return dialog;
}

/** Every start of the day at which at least one length can be reserved. */
function startsOf(d: Day, room: Room): Minute[] {
  const list = [];
  for (let m = Math.max(d.date, slotOf(d.now())); m < d.date + day; m += slot) {
    if (d.slots().lengths(room, m, d.now()).length > 0) list.push(m);
  }
  return list;
}

const slotsOf = (from: Minute): Minute[] => Array.from({ length: hour / slot }, (_, i) => from + i * slot);

const hourChip = (m: Minute, shown: Signal<Minute>): Element =>
  h(
    "button",
    { type: "button", class: "chip", "aria-pressed": () => String(shown() === m), onclick: () => shown.set(m) },
    t("hourOf", { h: Number(clockOf(m).slice(0, 2)) }),
  );

const startChip = (d: Day, room: Room, m: Minute, starts: Readable<Minute[]>, choice: Signal<Choice | null>): Element =>
  h(
    "button",
    {
      type: "button",
      class: "chip",
      disabled: () => !starts().includes(m),
      "aria-pressed": () => String(choice()?.start === m),
      onclick: () => choice.set(beginAt(d, room, m)),
    },
    clockOf(m),
  );
