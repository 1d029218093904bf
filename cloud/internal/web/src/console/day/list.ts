// The day as a list, for narrow screens, for screen readers and for searching.

import { dateOf, type Minute } from "../../booking/time";
import { type Child, each, h, when } from "../../core/dom";
import { countdown } from "../../core/format";
import { computed, type Readable, signal } from "../../core/signal";
import { button, chip } from "../parts";
import { t, timesText, won } from "../text";
import { type Block, type Day, kindText } from "./model";

interface Options {
  day: Readable<Day>;
  /** The present minute at the branch. */
  now: Readable<Minute>;
  second: Readable<number>;
  /** Whether cancelled reservations are listed, too. */
  canceled: Readable<boolean>;
  show: (block: Block) => void;
}

export function list({ day, now, second, canceled, show }: Options): Child {
  const rows = computed(() =>
    [...day().blocks, ...(canceled() ? day().canceled : [])].sort(
      (a, b) => a.start - b.start || Number(a.room) - Number(b.room),
    ),
  );
  const past = signal(false); // the list of today begins at the present
  const over = computed(() =>
    past() ? 0 : rows().filter((b) => b.end <= now() && day().date === dateOf(now())).length,
  );
  const shown = computed(() => (over() ? rows().filter((b) => b.end > now()) : rows()));
  return h(
    "div",
    { class: "daylist" },
    when(
      () => over() > 0,
      () =>
        button(
          () => t("showPast", { n: over() }),
          () => past.set(true),
        ),
    ),
    when(
      () => shown().length === 0,
      () => h("p", { class: "nothing" }, t("dayEmpty")),
    ),
    h(
      "ul",
      null,
      each(
        shown,
        (b) => b.id,
        (block) =>
          h(
            "li",
            null,
            h(
              "button",
              { type: "button", class: () => `entry ${block().kind}`, onclick: () => show(block.peek()) },
              h("span", { class: "time" }, () => timesText(block().start, block().end)),
              h("span", { class: "room" }, () => t("roomNo", { n: block().room })),
              h("span", { class: "name" }, () => block().name || kindText(block().kind)),
              h("span", { class: "rest" }, () =>
                [block().mobile, block().amount ? won(block().amount) : ""].filter(Boolean).join(" · "),
              ),
              () =>
                chip(
                  [
                    kindText(block().kind),
                    () => (block().expiresAt ? ` ${countdown(block().expiresAt - second())}` : ""),
                  ],
                  block().kind,
                ),
            ),
          ),
      ),
    ),
  );
}
