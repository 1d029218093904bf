// The climate of a branch: sensor readings, and a remote control for the air conditioners. Infrared has no return channel,
// so the screen shows the last command, not the state of the unit.

import { clockOf, dateOf, inZone } from "../booking/time";
import { api } from "../core/api";
import { now } from "../core/clock";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { type Readable, type Signal, signal } from "../core/signal";
import { chart } from "./chart";
import { policyPart } from "./climate-policy";
import { who } from "./day/history";
import { wall } from "./doors";
import { gather, watch } from "./live";
import {
  button,
  chip,
  dialog,
  downloadCSV,
  explain,
  fetched,
  heading,
  section,
  segmented,
  table,
  toast,
} from "./parts";
import { type Branch, mayChange } from "./session";
import { ago, optionText, type TextKey, t } from "./text";

type Reading = Schemas["ClimateReading"];
type Climate = Schemas["ClimateOverview"];
type Option = Schemas["OptionNode"];

export function climateScreen(branch: Branch): Child {
  const source = resource(() => api.get<Climate>(`/v2/admin/branches/${branch.branch}/climate`));
  const refresh = gather(source.refresh);
  watch(branch.branch, dateOf(inZone(branch.timeZone)), (event) => {
    if (!event || event.kind === "sensor" || event.kind === "agent") refresh();
  });
  const read = async () => {
    try {
      const { infoList } = await api.post<{ infoList: { location: string }[] }>(
        `/admin/thermo-hygrometer/${branch.branch}`,
      );
      await source.refresh();
      const missing = (source.data()?.sensors ?? []).filter((s) => !infoList.some((m) => m.location === s.location));
      if (missing.length) toast(t("sensorsMissing", { list: missing.map((s) => s.location).join(", ") }), "bad");
      else toast(t("sensorsRead"));
    } catch (error) {
      toast(explain(error), "bad");
    }
  };
  return [
    heading(t("navClimate"), button(t("readNow"), read)),
    fetched(source, (data) => [
      () => tiles(branch, data()),
      section(t("remote"), remote(branch, data, source.refresh)),
      section(t("intents"), () => intents(branch, data().intents)),
      policyPart(branch, source.refresh),
      section(t("commands"), () => commands(branch, data().commands)),
    ]),
  ];
}

/** Translates a reading into the comfort of a guest in the room. */
function comfort({ celsius, humidity }: Reading): [text: string, kind: string] {
  if (celsius >= 28) return [t("airHot"), "bad"];
  if (celsius < 18) return [t("airCold"), "hold"];
  if (humidity > 60) return [t("airHumid"), "hold"];
  if (humidity < 40) return [t("airDry"), "hold"];
  return [t("airFine"), "good"];
}

function tiles(branch: Branch, { sensors }: Climate): Child {
  if (sensors.length === 0) return h("p", { class: "nothing" }, t("noSensors"));
  return h(
    "div",
    { class: "tiles" },
    sensors.map(({ location, latest }) => {
      const [text, kind] = latest ? comfort(latest) : ["", ""];
      return h(
        "button",
        { type: "button", class: "tile", onclick: () => openHistory(branch, location) },
        h("span", { class: "where" }, location),
        latest
          ? [
              h("span", { class: "value" }, latest.celsius.toFixed(1), h("small", null, "°C")),
              h("span", { class: "value second" }, latest.humidity.toFixed(0), h("small", null, "%")),
              chip(text, kind),
              h("span", { class: "age" }, ago(now() - Date.parse(latest.at))),
            ]
          : h("span", { class: "age" }, t("noReading")),
      );
    }),
  );
}

/** What is switched for stays. "sent" claims no more than that the code was transmitted. */
function intents(branch: Branch, list: Climate["intents"]): Child {
  if (list.length === 0) return h("p", { class: "nothing" }, t("noIntents"));
  const kinds = { planned: "", sent: "", working: "good", "no-effect": "bad", canceled: "over" } as const;
  return table<Climate["intents"][number]>(
    t("intents"),
    [
      { title: t("when"), cell: (i) => wall(branch, i.at) },
      { title: t("roomColumn"), cell: (i) => i.room },
      { title: t("intentEdge"), cell: (i) => t(`edge_${i.edge}`) },
      { title: t("command"), kind: "wide", cell: (i) => pathText(i.path) || "–" },
      { title: t("colState"), cell: (i) => chip(t(`intent_${i.state}`), kinds[i.state]) },
      { title: t("attempts"), kind: "number", cell: (i) => i.attempts || "–" },
      { title: t("measured"), kind: "brief", cell: measured },
    ],
    list,
  );
}

/** The temperature before the command and when it was judged. Nothing else was seen of the unit. */
function measured({ state, before, seen }: Climate["intents"][number]): string {
  if (state === "planned" || state === "canceled" || before === null) return "–";
  return seen === null ? `${before.toFixed(1)} °C →` : `${before.toFixed(1)} → ${seen.toFixed(1)} °C`;
}

const spans = { "24": 24, "168": 7 * 24, "720": 30 * 24 } as const;

function openHistory(branch: Branch, location: string): void {
  dialog(t("climateHistory", { location }), () => {
    const hours = signal("24");
    return [
      segmented(t("period"), hours, [
        { value: "24", text: t("hours24") },
        { value: "168", text: t("days7") },
        { value: "720", text: t("days30") },
      ]),
      match(hours, (shown) => {
        const source = resource(
          async () =>
            (
              await api.get<{ readings: Reading[] }>(`/v2/admin/branches/${branch.branch}/sensors`, {
                location,
                hours: shown,
              })
            ).readings,
        );
        return fetched(source, (data) => charts(branch, location, data(), spans[shown as keyof typeof spans]));
      }),
    ];
  });
}

function charts(branch: Branch, location: string, readings: Reading[], hours: number): Child {
  if (readings.length === 0) return h("p", { class: "nothing" }, t("noReading"));
  const to = now();
  const time = (at: number) => {
    const m = inZone(branch.timeZone, at);
    return hours > 24 ? dayText(m) : clockOf(m);
  };
  const options = { from: to - hours * 3_600_000, to, time };
  const points = (pick: (r: Reading) => number) => readings.map((r) => ({ at: Date.parse(r.at), value: pick(r) }));
  const rows = readings.filter((_, i) => i % Math.ceil(readings.length / 48) === 0).reverse();
  return [
    h("h3", null, t("temperature")),
    chart(
      points((r) => r.celsius),
      { ...options, label: t("chartTemperature", { location }), unit: "°", band: [20, 26] },
    ),
    h("h3", null, t("humidity")),
    chart(
      points((r) => r.humidity),
      { ...options, label: t("chartHumidity", { location }), unit: "%", band: [40, 60] },
    ),
    h(
      "div",
      { class: "row" },
      button(t("downloadCsv"), () =>
        downloadCSV(
          `${branch.branch}-${location}.csv`,
          ["at", "celsius", "humidity"],
          readings.map((r) => [r.at, r.celsius, r.humidity]),
        ),
      ),
    ),
    h(
      "details",
      null,
      h("summary", null, t("asTable")),
      table<Reading>(
        t("climateHistory", { location }),
        [
          { title: t("colWhen"), cell: (r) => wall(branch, r.at) },
          { title: t("temperature"), kind: "number", cell: (r) => `${r.celsius.toFixed(1)} °C` },
          { title: t("humidity"), kind: "number", cell: (r) => `${r.humidity.toFixed(0)} %` },
        ],
        rows,
      ),
    ),
  ];
}

/** A short date, such as 11/22. */
const dayText = (m: number): string => new Date(m * 60_000).toISOString().slice(5, 10).replace("-", "/");

/** Shows the option tree as rows of choices. Each choice narrows the next row. */
function remote(branch: Branch, data: Readable<Climate>, refresh: () => Promise<void>): Child {
  const source = resource(() => api.get<Option[]>(`/admin/airconditioner/${branch.branch}`));
  return fetched(source, (tree) => {
    if (tree().length === 0) return h("p", { class: "nothing" }, t("noAirconditioner"));
    const path = signal<string[]>([]);
    const send = async (option: Option) => {
      try {
        await api.post(`/admin/airconditioner/${option.airconditioner_id}`);
        toast(t("commandSent"));
      } catch (error) {
        toast(explain(error), "bad");
      }
      await refresh();
    };
    return [() => last(branch, data()), () => (mayChange() ? levels(tree(), path, send) : null)];
  });
}

const outcomeText = (outcome: string): string => t(`outcome_${outcome}` as TextKey) ?? outcome;

function last(branch: Branch, { commands }: Climate): Child {
  const [latest] = commands;
  if (!latest) return h("p", { class: "hint" }, t("commandNone"));
  return h(
    "p",
    { class: "lastcommand" },
    t("commandLast"),
    " ",
    h("b", null, pathText(latest.path)),
    ` ${wall(branch, latest.at)} (${who(latest.by)})`,
    latest.outcome === "sent" ? null : [" ", chip(outcomeText(latest.outcome), "bad")],
  );
}

const pathText = (path: readonly string[]): string => path.map(optionText).join(" · ");

const depth = (options: Option[] | null): number =>
  options?.length ? 1 + Math.max(...options.map((o) => depth(o.children))) : 0;

/** The choice at each level, from the last level back. A branch with several units has one more level on top. */
const levelTexts = ["unit", "mode", "temperatureLevel", "fan", "direction"] as const;

/** Reports whether an option is a leaf among options with further levels, such as "off". It is sent immediately. */
const alone = (o: Option, among: Option[]): boolean =>
  Boolean(o.airconditioner_id) && among.some((other) => other.children);

function levels(tree: Option[], path: Signal<string[]>, send: (o: Option) => Promise<void>): Child {
  const chosen = path();
  const rows: Child[] = [];
  let options: Option[] | null = tree;
  let leaf: Option | undefined;
  const above = Math.max(0, levelTexts.length - depth(tree));
  for (let level = 0; options; level++) {
    const here: Option[] = options;
    const picked: Option | undefined = here.find((o) => o.name === chosen[level]);
    const text = levelTexts[above + level];
    const name = text ? t(text) : t("remoteLevel", { n: level + 1 });
    rows.push(
      h(
        "div",
        { class: "level" },
        h("span", { class: "hint", "aria-hidden": "true" }, name),
        h(
          "div",
          { class: "segmented", role: "group", "aria-label": name },
          here
            .filter((o) => !alone(o, here))
            .map((o) =>
              h(
                "button",
                {
                  type: "button",
                  "aria-pressed": String(o === picked),
                  onclick: () => path.set([...chosen.slice(0, level), o.name, ...chosen.slice(level + 1)]),
                },
                optionText(o.name),
              ),
            ),
        ),
        here.filter((o) => alone(o, here)).map((o) => button(optionText(o.name), () => send(o), { kind: "danger" })),
      ),
    );
    if (picked?.airconditioner_id) leaf = picked;
    options = picked?.children ?? null;
  }
  const complete = leaf;
  return h(
    "div",
    { class: "remote" },
    rows,
    button(t("send"), () => complete && send(complete), { kind: "primary", disabled: () => !complete }),
  );
}

function commands(branch: Branch, list: Climate["commands"]): Child {
  return table<Climate["commands"][number]>(
    t("commands"),
    [
      { title: t("colWhen"), cell: (c) => wall(branch, c.at) },
      { title: t("unit"), cell: (c) => c.unit },
      { title: t("command"), cell: (c) => pathText(c.path) },
      { title: t("colWho"), cell: (c) => who(c.by) },
      { title: t("outcome"), cell: (c) => chip(outcomeText(c.outcome), c.outcome === "sent" ? "good" : "bad") },
    ],
    list,
    t("commandNone"),
  );
}
