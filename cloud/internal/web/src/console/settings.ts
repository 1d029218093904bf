// What a branch is: its name, its hours, its closures, its rooms and prices, its partner channels.

import { ApiError, api } from "../core/api";
import { type Child, each, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { type Readable, type Signal, signal } from "../core/signal";
import { attempt, button, fetched, field, heading, input, section, toast } from "./parts";
import { type Branch, mayChange } from "./session";
import { channelsPart } from "./settings-channels";
import { roomsPart } from "./settings-rooms";
import { t } from "./text";

type ClockSpan = Schemas["ClockSpan"];
type WeekDay = Schemas["OpeningDay"];
export type Settings = Schemas["BranchSettings"];

export function settingsScreen(branch: Branch): Child {
  const source = resource(() => api.get<Settings>(`/v2/admin/branches/${branch.branch}/settings`));
  return [
    heading(t("navSettings")),
    fetched(source, (data) => [
      () => form(branch, data(), source.refresh),
      section(t("settingsRooms"), roomsPart(branch, data, source.refresh)),
      section(t("settingsChannels"), channelsPart(branch, data, source.refresh)),
    ]),
  ];
}

/** A list of rows that can be edited, each with a key of its own so that a row keeps its inputs. */
interface Row<T> {
  key: string;
  value: Signal<T>;
}

let serial = 0;
const rowOf = <T>(value: T): Row<T> => ({ key: String(++serial), value: signal(value) });

function form(branch: Branch, settings: Settings, refresh: () => Promise<void>): HTMLElement {
  const [nameKo, nameEn, address, phone, horizon] = [
    signal(settings.nameKo),
    signal(settings.nameEn),
    signal(settings.address),
    signal(settings.phone),
    signal(String(settings.bookingHorizonDays)),
  ];
  const week = settings.week.map((d) => signal(structuredClone(d)));
  const closures = signal(settings.closures.map(rowOf));
  const extra = signal(settings.extraHolidays.map(rowOf));
  const onHolidays = signal(settings.closedOnHolidays);
  const openHolidays = signal(settings.openHolidays.join(", "));
  const removed = signal(settings.removedHolidays.join(", "));
  const { run, view } = attempt();
  const dates = (text: string) => text.split(/[\s,]+/).filter(Boolean);
  const save = () =>
    run(async () => {
      try {
        await api.put(`/v2/admin/branches/${branch.branch}/settings`, {
          revision: settings.revision,
          nameKo: nameKo.peek().trim(),
          nameEn: nameEn.peek().trim(),
          address: address.peek().trim(),
          phone: phone.peek().trim(),
          bookingHorizonDays: Number(horizon.peek()),
          week: week.map((d) => d.peek()),
          closures: closures.peek().map((r) => r.value.peek()),
          closedOnHolidays: onHolidays.peek(),
          openHolidays: dates(openHolidays.peek()),
          extraHolidays: extra.peek().map((r) => r.value.peek()),
          removedHolidays: dates(removed.peek()),
        });
      } catch (error) {
        if (error instanceof ApiError && error.type === "SettingConflictException") await refresh();
        throw error;
      }
      toast(t("saved"));
      await refresh();
    });
  const locked = !mayChange();
  return h(
    "fieldset",
    { class: "plain", disabled: locked },
    section(
      t("settingsBranch"),
      h(
        "div",
        { class: "form two" },
        field(t("nameKo"), input(nameKo, { maxlength: 100 })),
        field(t("nameEn"), input(nameEn, { maxlength: 100 })),
        field(t("branchAddress"), input(address, { maxlength: 200 })),
        field(t("phone"), input(phone, { maxlength: 30, type: "tel" })),
        field(t("horizon"), input(horizon, { inputmode: "numeric" }), t("horizonHint")),
      ),
    ),
    section(
      t("settingsHours"),
      h("p", { class: "hint" }, t("hoursHint")),
      h(
        "div",
        { class: "week" },
        [1, 2, 3, 4, 5, 6, 0].map((n) => weekDay(n, week[n]!)),
      ),
    ),
    section(
      t("settingsClosures"),
      rows(closures, { from: "", to: "", reason: "" }, t("addClosure"), (row) => [
        dateInput(row, "from", t("from")),
        dateInput(row, "to", t("to")),
        textInput(row, "reason", t("reason")),
      ]),
    ),
    section(
      t("settingsHolidays"),
      h(
        "label",
        { class: "check" },
        h("input", {
          type: "checkbox",
          checked: onHolidays,
          onchange: (e: Event) => onHolidays.set((e.target as HTMLInputElement).checked),
        }),
        t("closedOnHolidays"),
      ),
      h(
        "div",
        { class: "form two" },
        field(t("openHolidays"), input(openHolidays, { placeholder: "2026-12-25" }), t("datesHint")),
        field(t("removedHolidays"), input(removed, { placeholder: "2027-01-01" }), t("datesHint")),
      ),
      h("h3", null, t("extraHolidays")),
      rows(extra, { date: "", name: "" }, t("addHoliday"), (row) => [
        dateInput(row, "date", t("date")),
        textInput(row, "name", t("holidayName")),
      ]),
    ),
    view(),
    locked ? null : h("div", { class: "footer sticky" }, button(t("save"), save, { kind: "primary" })),
  );
}

const asText = (spans: ClockSpan[]): string => spans.map((s) => `${s.from}-${s.to}`).join(", ");

/** 10:00-12:00, 13:00-22:00; what cannot be read is sent as it is, and the service says what is wrong with it. */
function parseSpans(text: string): ClockSpan[] {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean)
    .map((part) => {
      const [from = "", to = ""] = part.split(/\s*[-–~]\s*/);
      return { from, to };
    });
}

function weekDay(n: number, day: Signal<WeekDay>): HTMLElement {
  const name = t("weekdays")[n]!;
  const text = (pick: "open" | "breaks", label: string, placeholder: string) =>
    h("input", {
      type: "text",
      "aria-label": `${name} ${label}`,
      placeholder,
      value: asText(day.peek()[pick]),
      disabled: () => day().closed,
      onchange: (e: Event) => day.set({ ...day.peek(), [pick]: parseSpans((e.target as HTMLInputElement).value) }),
    });
  return h(
    "div",
    { class: "weekrow" },
    h("b", null, name),
    h(
      "label",
      { class: "check" },
      h("input", {
        type: "checkbox",
        checked: day.peek().closed,
        onchange: (e: Event) => day.set({ ...day.peek(), closed: (e.target as HTMLInputElement).checked }),
      }),
      t("closedDay"),
    ),
    text("open", t("openHours"), t("roundTheClock")),
    text("breaks", t("breaks"), t("noBreaks")),
  );
}

function rows<T extends object>(
  list: Signal<Row<T>[]>,
  empty: T,
  add: string,
  view: (row: Signal<T>) => Child,
): HTMLElement {
  return h(
    "div",
    { class: "rows" },
    each(
      list,
      (r) => r.key,
      (row: Readable<Row<T>>) =>
        h(
          "div",
          { class: "editrow" },
          view(row.peek().value),
          button("✕", () => list.set(list.peek().filter((r) => r !== row.peek())), {
            kind: "plain",
            label: t("remove"),
          }),
        ),
    ),
    button(add, () => list.set([...list.peek(), rowOf({ ...empty })])),
  );
}

const bound = <T extends object>(row: Signal<T>, name: keyof T) => ({
  value: row.peek()[name] as string,
  onchange: (e: Event) => row.set({ ...row.peek(), [name]: (e.target as HTMLInputElement).value }),
});

const dateInput = <T extends object>(row: Signal<T>, name: keyof T, label: string) =>
  h("input", { type: "date", "aria-label": label, ...bound(row, name) });

const textInput = <T extends object>(row: Signal<T>, name: keyof T, label: string) =>
  h("input", { type: "text", maxlength: 100, "aria-label": label, placeholder: label, ...bound(row, name) });
