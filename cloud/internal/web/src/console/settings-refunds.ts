// Refund rules of a branch: the shares of a cancellation, and the compensation of a guest whose door does not open.

import { type Child, h, when } from "../core/dom";
import { english } from "../core/language";
import { type Signal, signal } from "../core/signal";
import { textOf, whole, wholeIn } from "./numbers";
import { check, field, input, section } from "./parts";
import type { Settings } from "./settings";
import { onEdit, type Row, rowOf, rows } from "./settings-rows";
import { type TextKey, t } from "./text";

type Rules = Pick<Settings, "refundPolicy" | "compensation">;
type Tier = Settings["refundPolicy"][number];

const units = { days: 24 * 60, hours: 60, minutes: 1 }; // in minutes
type Unit = keyof typeof units;

/** A share that is being edited. */
interface Draft {
  count: string;
  unit: Unit;
  percent: string;
}

/** The largest unit in which a deadline is a whole number. */
function draftOf({ untilMinutesBefore, percent }: Tier): Draft {
  if (untilMinutesBefore === null) return { count: "", unit: "days", percent: textOf(percent) };
  const unit = (Object.keys(units) as Unit[]).find((u) => untilMinutesBefore % units[u] === 0)!;
  return { count: String(untilMinutesBefore / units[unit]), unit, percent: textOf(percent) };
}

const tierOf = ({ count, unit, percent }: Draft): Tier => ({
  untilMinutesBefore: whole(count) * units[unit],
  percent: whole(percent),
});

/**
 * The sections of a form, and the values that they hold: NaN for a text that is not a number. validate throws a FieldError for
 * such a text. policyText is the sentence that guests read.
 */
export function refundRules(
  settings: Rules,
  policyText: () => Settings["refundPolicyText"],
): { view: Child; values: () => Rules; validate: () => void } {
  const tiers = signal(settings.refundPolicy.map((tier) => rowOf(draftOf(tier))));
  const { compensation } = settings;
  const on = signal(compensation !== null);
  const extend = signal(compensation?.extendFirst ?? true);
  const number = (value: number | undefined, otherwise = 0) => signal(textOf(value === undefined ? otherwise : value));
  const numbers = {
    afterMinutes: number(compensation?.afterMinutes, 5),
    wonPerMinute: number(compensation?.wonPerMinute),
    fullAfterMinutes: number(compensation?.fullAfterMinutes),
    perPhonePerMonth: number(compensation?.perPhonePerMonth),
  };
  const values = (): Rules => ({
    // From the earliest deadline to the latest, in whatever order they were added.
    refundPolicy: tiers()
      .map((row) => tierOf(row.value()))
      .sort((a, b) => b.untilMinutesBefore - a.untilMinutesBefore),
    compensation: on()
      ? {
          afterMinutes: whole(numbers.afterMinutes()),
          extendFirst: extend(),
          wonPerMinute: whole(numbers.wonPerMinute()),
          fullAfterMinutes: whole(numbers.fullAfterMinutes()),
          perPhonePerMonth: whole(numbers.perPhonePerMonth()),
        }
      : null,
  });
  const validate = () => {
    for (const row of tiers.peek()) {
      wholeIn(t("tierCount"), row.value.peek().count);
      wholeIn(t("tierPercent"), row.value.peek().percent);
    }
    if (!on.peek()) return;
    for (const name of Object.keys(numbers) as (keyof typeof numbers)[])
      wholeIn(t(`compensation_${name}`), numbers[name].peek());
  };
  const amount = (name: keyof typeof numbers) =>
    field(
      t(`compensation_${name}`),
      input(numbers[name], { inputmode: "numeric", maxlength: 8 }),
      t(`compensationHint_${name}`),
    );
  return {
    values,
    validate,
    view: [
      section(
        t("settingsRefunds"),
        policy(tiers),
        h("p", { class: "hint" }, () => {
          const { ko, en } = policyText();
          return t("refundPolicyText", { text: english() ? en : ko });
        }),
      ),
      section(
        t("settingsCompensation"),
        check(t("compensationOn"), on),
        when(on, () => [
          h(
            "div",
            { class: "form two" },
            amount("afterMinutes"),
            amount("wonPerMinute"),
            amount("fullAfterMinutes"),
            amount("perPhonePerMonth"),
          ),
          check(t("compensationExtend"), extend),
        ]),
      ),
    ],
  };
}

const policy = (tiers: Signal<Row<Draft>[]>): Child => [
  h("p", { class: "hint" }, t("refundPolicyHint")),
  rows(tiers, { count: "1", unit: "days", percent: "100" } satisfies Draft as Draft, t("addTier"), (row) => [
    part(row, "count", t("tierCount")),
    h(
      "select",
      {
        "aria-label": t("tierUnit"),
        onchange: (e: Event) => row.set({ ...row.peek(), unit: (e.target as HTMLSelectElement).value as Unit }),
      },
      (Object.keys(units) as Unit[]).map((unit) =>
        h("option", { value: unit, selected: row.peek().unit === unit }, t(`tier_${unit}` as TextKey)),
      ),
    ),
    part(row, "percent", t("tierPercent")),
    "%",
  ]),
];

const part = (row: Signal<Draft>, name: "count" | "percent", label: string): HTMLElement =>
  h("input", {
    type: "text",
    inputmode: "numeric",
    maxlength: 6,
    "aria-label": label,
    value: row.peek()[name],
    ...onEdit((text) => row.set({ ...row.peek(), [name]: text })),
  });
