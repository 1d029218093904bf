// The price rules of a room: a dialog with the rules and a preview of a week.

import { dateOf, inZone } from "../booking/time";
import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { english } from "../core/language";
import { type Signal, signal } from "../core/signal";
import { edited, keepTyped, typedRows } from "./draft";
import { priceIn } from "./numbers";
import { attempt, button, dialog, explain, field, input, toast } from "./parts";
import { price } from "./rooms";
import type { Branch } from "./session";
import { dateInput, onEdit, type Row, rowOf, rows } from "./settings-rows";
import { type TextKey, t } from "./text";

type Rule = Schemas["PriceRule"];
type Preview = Schemas["PricePreview"];

/** A rule that is being edited. */
interface Draft {
  from: string;
  days: number[];
  holidays: boolean;
  opens: string;
  closes: string;
  min10: string;
  min30: string;
  min60: string;
}

const tiers = ["min10", "min30", "min60"] as const;
const text = (won: number | null | undefined): string => (won ? String(won) : "");

const draftOf = (r: Rule): Draft => ({
  from: r.from,
  days: r.days ?? [],
  holidays: r.holidays ?? false,
  opens: r.hours?.from ?? "",
  closes: r.hours?.to ?? "",
  min10: text(r.min10),
  min30: text(r.min30),
  min60: text(r.min60),
});

const ruleOf = (d: Draft): Rule => ({
  from: d.from,
  days: d.days,
  holidays: d.holidays,
  hours: d.opens || d.closes ? { from: d.opens, to: d.closes } : null,
  min10: priceIn(t("min10"), d.min10),
  min30: priceIn(t("min30"), d.min30),
  min60: priceIn(t("min60"), d.min60),
});

export async function openPrices(branch: Branch, roomNo: string): Promise<void> {
  const today = dateOf(inZone(branch.timeZone));
  const address = `/v2/admin/branches/${branch.branch}/rooms/${roomNo}/prices`;
  let saved: Schemas["RoomPrices"];
  try {
    saved = await api.get<Schemas["RoomPrices"]>(address);
  } catch (error) {
    toast(explain(error), "bad");
    return;
  }
  dialog(t("pricesTitle", { n: roomNo }), (close) => {
    const drafts = signal<Row<Draft>[]>(saved.rules.map((r) => rowOf(draftOf(r))));
    const date = signal(today);
    const rules = () => drafts().map((row) => ruleOf(row.value()));
    const shown = signal<Preview | null>(null);
    const { forget, notice } = keepTyped(`prices-${branch.branch}-${roomNo}`, {
      rules: edited(typedRows(drafts, (row) => row.value(), rowOf)),
    });
    const { run, view } = attempt();
    const preview = () =>
      run(async () => shown.set(await api.post<Preview>(`${address}/preview`, { date: date.peek(), rules: rules() })));
    const save = () =>
      run(async () => {
        await api.put(address, { rules: rules(), expected: saved.rules });
        forget();
        toast(t("saved"));
        close();
      });
    const empty: Draft = {
      from: today,
      days: [],
      holidays: false,
      opens: "",
      closes: "",
      min10: "",
      min30: "",
      min60: "",
    };
    return [
      h("p", { class: "hint" }, t("pricesHint", { price: price({ pricing: saved.pricing }) })),
      notice,
      rows(drafts, empty, t("addPriceRule"), ruleForm),
      h(
        "div",
        { class: "form" },
        field(t("previewFrom"), input(date, { type: "date" })),
        button(t("preview"), preview),
      ),
      () => (shown() ? week(shown()!) : null),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary" }),
      ),
    ];
  });
}

/** The short name of a weekday from 1, Monday. */
const weekday = (day: number): string =>
  new Intl.DateTimeFormat(english() ? "en" : "ko", { weekday: "short", timeZone: "UTC" }).format(
    new Date(Date.UTC(2024, 0, day)), // 1 January 2024 is a Monday
  );

function ruleForm(row: Signal<Draft>): Child {
  const set = (change: Partial<Draft>) => row.set({ ...row.peek(), ...change });
  const box = (label: string, checked: boolean, change: (on: boolean) => void) =>
    h(
      "label",
      { class: "check" },
      h("input", { type: "checkbox", checked, onchange: (e: Event) => change((e.target as HTMLInputElement).checked) }),
      label,
    );
  const clock = (name: "opens" | "closes", label: TextKey) =>
    h("input", {
      type: "text",
      maxlength: 5,
      placeholder: name === "opens" ? "18:00" : "24:00",
      "aria-label": t(label),
      value: row.peek()[name],
      ...onEdit((typed) => set({ [name]: typed.trim() })),
    });
  return [
    dateInput(row, "from", t("priceFrom")),
    [1, 2, 3, 4, 5, 6, 7].map((day) =>
      box(weekday(day), row.peek().days.includes(day), (on) =>
        set({ days: on ? [...row.peek().days, day].sort() : row.peek().days.filter((d) => d !== day) }),
      ),
    ),
    box(t("priceHolidays"), row.peek().holidays, (holidays) => set({ holidays })),
    clock("opens", "priceHoursFrom"),
    "~",
    clock("closes", "priceHoursTo"),
    tiers.map((name) =>
      h("input", {
        type: "text",
        inputmode: "numeric",
        maxlength: 10,
        placeholder: t(name),
        "aria-label": t(name),
        value: row.peek()[name],
        ...onEdit((typed) => set({ [name]: typed })),
      }),
    ),
  ];
}

const week = ({ days }: Preview): Child =>
  h(
    "table",
    { class: "prices", "aria-label": t("preview") },
    h(
      "tbody",
      null,
      days.map((day) =>
        h(
          "tr",
          null,
          h("th", { scope: "row" }, day.date, day.holiday ? ` ${day.holiday}` : ""),
          h(
            "td",
            null,
            day.spans.map((s) => h("div", null, `${s.from}~${s.to} ${price({ pricing: s })}`)),
          ),
        ),
      ),
    ),
  );
