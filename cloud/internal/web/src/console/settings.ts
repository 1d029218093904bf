// The settings of a branch: name, hours, closures, rooms and prices, partner channels.

import { ApiError, api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { effect, type Readable, type Signal, signal, untracked } from "../core/signal";
import { tabStore } from "../core/storage";
import { contactsPart } from "./contacts";
import { type Edits, keptEdits, newerNotice, restoredNotice } from "./draft";
import { linkButton } from "./link";
import { textOf, whole, wholeIn } from "./numbers";
import { attempt, button, check, fetched, field, heading, input, section, toastWithUndo } from "./parts";
import { type Conflict, openConflicts } from "./rooms";
import { type Branch, mayChange } from "./session";
import { arrivalPart } from "./settings-arrival";
import { channelsPart } from "./settings-channels";
import { refundRules } from "./settings-refunds";
import { roomsPart } from "./settings-rooms";
import { dateInput, onEdit, rowOf, rows, textInput } from "./settings-rows";
import { t, weekdayText } from "./text";

type ClockSpan = Schemas["ClockSpan"];
type WeekDay = Schemas["OpeningDay"];
export type Settings = Schemas["BranchSettings"];

export function settingsScreen(branch: Branch): Child {
  const source = resource(() => api.get<Settings>(`/v2/admin/branches/${branch.branch}/settings`));
  return [
    heading(t("navSettings"), linkButton(`/console/${branch.branch}/opening`, t("openingTitle"))),
    fetched(source, (data) => [
      editor(branch, data, source.refresh),
      section(t("settingsRooms"), roomsPart(branch, data, source.refresh)),
      section(t("settingsArrival"), arrivalPart(branch)),
      section(t("settingsChannels"), channelsPart(branch, data, source.refresh)),
      section(t("contactsTitle"), contactsPart(branch, data, source.refresh)),
    ]),
  ];
}

/** The part of the settings that the form edits. */
type Values = Omit<Settings, "rooms" | "channels" | "alertContacts" | "refundPolicyText" | "revision">;

const valuesOf = ({
  rooms: _,
  channels: __,
  alertContacts: ___,
  refundPolicyText: ____,
  revision: _____,
  ...values
}: Settings): Values => values;

/** The settings that edits start from. */
type Base = Pick<Settings, "revision"> & { values: Values };

const baseOf = (settings: Settings): Base => ({ revision: settings.revision, values: valuesOf(settings) });
const same = (a: Values, b: Values): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Edits survive refreshes, changes of another administrator, and leaving the screen. */
function editor(branch: Branch, data: Readable<Settings>, refresh: () => Promise<void>): Child {
  const key = `console-draft-settings-${branch.branch}`;
  const kept = keptEdits<Base, Values>(key);
  let base = kept?.base ?? baseOf(data.peek());
  const shown = signal({ values: kept?.values ?? base.values, draft: !!kept });
  let edited: Values = shown.peek().values;
  const newer = signal<Settings | null>(null); // of another administrator
  const start = (settings: Settings) => {
    base = baseOf(settings);
    newer.set(null);
    tabStore.remove(key);
    shown.set({ values: valuesOf(settings), draft: false });
  };
  effect(() => {
    const next = data();
    untracked(() => {
      if (same(valuesOf(next), base.values)) base = baseOf(next);
      else if (same(edited, base.values)) start(next);
      else if (!same(edited, valuesOf(next))) newer.set(next);
      else start(next);
    });
  });
  const keep = (values: Values) => {
    edited = values;
    if (same(values, base.values)) tabStore.remove(key);
    else tabStore.set(key, JSON.stringify({ base, values } satisfies Edits<Base, Values>));
  };
  const put = async (acceptConflicts: boolean) => {
    await api.put(`/v2/admin/branches/${branch.branch}/settings`, {
      ...edited,
      revision: base.revision,
      acceptConflicts,
    });
    const before = base.values;
    base = { ...base, values: edited };
    tabStore.remove(key);
    await refresh();
    const { revision } = data.peek();
    toastWithUndo(t("saved"), async () => {
      await api.put(`/v2/admin/branches/${branch.branch}/settings`, { ...before, revision, acceptConflicts: true });
      await refresh();
    });
  };
  const save = async () => {
    try {
      await put(false);
    } catch (error) {
      if (!(error instanceof ApiError) || error.type !== "SettingConflictException") throw error;
      const conflicts = (error.data as { conflicts?: Conflict[] } | null)?.conflicts;
      if (conflicts) {
        openConflicts(branch, conflicts, {
          title: t("hoursConflictTitle"),
          text: t("hoursConflictText", { n: conflicts.length }),
          action: t("saveAnyway"),
          run: () => put(true),
        });
        return;
      }
      await refresh();
      if (!newer.peek()) throw error;
    }
  };
  return [
    newerNotice(newer, start, (other) => {
      base = baseOf(other);
      newer.set(null);
      keep(edited);
    }),
    match(shown, ({ values, draft }) => [
      draft ? restoredNotice(() => start(data.peek())) : null,
      form(values, keep, save, () => data().refundPolicyText),
    ]),
  ];
}

function form(
  settings: Values,
  keep: (values: Values) => void,
  save: () => Promise<void>,
  policyText: () => Settings["refundPolicyText"],
): HTMLElement {
  const [nameKo, nameEn, address, phone, horizon] = [
    signal(settings.nameKo),
    signal(settings.nameEn),
    signal(settings.address),
    signal(settings.phone),
    signal(textOf(settings.bookingHorizonDays)),
  ];
  const week = settings.week.map((d) => signal(structuredClone(d)));
  const closures = signal(settings.closures.map(rowOf));
  const extra = signal(settings.extraHolidays.map(rowOf));
  const onHolidays = signal(settings.closedOnHolidays);
  const openHolidays = signal(settings.openHolidays.join(", "));
  const removed = signal(settings.removedHolidays.join(", "));
  const money = refundRules(settings, policyText);
  const { run, view } = attempt();
  const checked = async () => {
    wholeIn(t("horizon"), horizon.peek());
    money.validate();
    await save();
  };
  const dates = (text: string) => text.split(/[\s,]+/).filter(Boolean);
  // The keys are in the order of the service's answer, so that equal values have equal JSON.
  effect(() =>
    keep({
      ...settings,
      nameKo: nameKo().trim(),
      nameEn: nameEn().trim(),
      address: address().trim(),
      phone: phone().trim(),
      bookingHorizonDays: whole(horizon()),
      week: week.map((d) => d()),
      closures: closures().map((r) => r.value()),
      closedOnHolidays: onHolidays(),
      openHolidays: dates(openHolidays()),
      extraHolidays: extra().map((r) => r.value()),
      removedHolidays: dates(removed()),
      ...money.values(),
    }),
  );
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
      check(t("closedOnHolidays"), onHolidays),
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
    money.view,
    view(),
    locked
      ? null
      : h(
          "div",
          { class: "footer sticky" },
          button(t("save"), () => run(checked), { kind: "primary" }),
        ),
  );
}

const asText = (spans: ClockSpan[]): string => spans.map((s) => `${s.from}-${s.to}`).join(", ");

/** Parses "10:00-12:00, 13:00-22:00". Text that cannot be parsed is sent unchanged, and the service reports what is wrong. */
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
  const name = weekdayText(n);
  const text = (pick: "open" | "breaks", label: string, placeholder: string) =>
    h("input", {
      type: "text",
      "aria-label": `${name} ${label}`,
      placeholder,
      value: asText(day.peek()[pick]),
      disabled: () => day().closed,
      ...onEdit((text) => day.set({ ...day.peek(), [pick]: parseSpans(text) })),
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
