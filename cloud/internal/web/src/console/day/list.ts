// The day as a list, for narrow screens, for screen readers and for searching.

import { type Child, each, h, when } from "../../core/dom";
import { computed, type Readable } from "../../core/signal";
import { chip } from "../parts";
import { countdown, t, timesText, won } from "../text";
import { type Block, type Day, kindText } from "./model";

interface Options {
  day: Readable<Day>;
  second: Readable<number>;
  filter: Readable<string>;
  /** Whether cancelled reservations are listed, too. */
  canceled: Readable<boolean>;
  show: (block: Block) => void;
}

/** Reports whether digits can be part of a number with masked middle digits: 010-****-7944. */
function fitsMasked(mobile: string, digits: string): boolean {
  const known = mobile.replace(/-/g, ""); // 010****7944
  if (digits.length <= 4) return known.includes(digits);
  const at = (start: number) => [...digits].every((d, i) => known[start + i] === d || known[start + i] === "*");
  return Array.from({ length: Math.max(0, known.length - digits.length + 1) }, (_, start) => start).some(at);
}

/** Reports whether a block matches the filter. */
export function fits(block: Block, filter: string): boolean {
  const wanted = filter.trim().toLowerCase();
  const digits = wanted.replace(/\D/g, "");
  return (
    !wanted ||
    block.name.toLowerCase().includes(wanted) ||
    (digits.length >= 3 && fitsMasked(block.mobile, digits)) ||
    block.id === wanted
  );
}

export function list({ day, second, filter, canceled, show }: Options): Child {
  const rows = computed(() =>
    [...day().blocks, ...(canceled() ? day().canceled : [])]
      .filter((b) => fits(b, filter()))
      .sort((a, b) => a.start - b.start || Number(a.room) - Number(b.room)),
  );
  return h(
    "div",
    { class: "daylist" },
    when(
      () => rows().length === 0,
      () => h("p", { class: "nothing" }, t("dayEmpty")),
    ),
    h(
      "ul",
      null,
      each(
        rows,
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
