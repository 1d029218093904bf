// The choice between one's branches.

import { type Child, each, h } from "../core/dom";
import { computed, type Signal, signal } from "../core/signal";
import { button, input, select } from "./parts";
import { branches, branchName } from "./session";
import { t } from "./text";

/** A list of one's branches. The empty value is all of them. */
export const branchSelect = (value: Signal<string>): HTMLSelectElement =>
  select(value, () => [
    { value: "", text: t("allBranches") },
    ...branches().map((b) => ({ value: b.branch, text: branchName(b) })),
  ]);

/** The choice of several branches: those that fit the filter, or all of them with one press. */
export function branchChoices(chosen: Signal<string[]>): Child {
  const wanted = signal("");
  const shown = computed(() => {
    const text = wanted().trim().toLowerCase();
    return branches().filter((b) => `${b.branch} ${branchName(b)}`.toLowerCase().includes(text));
  });
  const has = (code: string) => chosen().includes(code);
  const flip = (code: string) => {
    const list = chosen.peek();
    chosen.set(list.includes(code) ? list.filter((c) => c !== code) : [...list, code]);
  };
  const all = () => chosen.set([...new Set([...chosen.peek(), ...shown.peek().map((b) => b.branch)])]);
  return [
    h(
      "div",
      { class: "row" },
      input(wanted, { type: "search", placeholder: t("findBranch"), "aria-label": t("findBranch") }),
      button(t("chooseAll"), all, { kind: "plain" }),
      button(t("chooseNone"), () => chosen.set([]), { kind: "plain" }),
      h("span", { class: "hint chosen", role: "status" }, () => t("chosenBranches", { n: chosen().length })),
    ),
    h(
      "div",
      { class: "choices" },
      each(
        shown,
        (b) => b.branch,
        (b) =>
          h(
            "label",
            { class: "check" },
            h("input", {
              type: "checkbox",
              checked: () => has(b().branch),
              onchange: () => flip(b.peek().branch),
            }),
            () => branchName(b()),
          ),
      ),
    ),
  ];
}
