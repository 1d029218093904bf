// The report of the air: how long the air conditioners ran, what that cost, and the temperature of the rooms.

import { parseDate } from "../booking/time";
import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import type { Readable } from "../core/signal";
import { chart } from "./chart";
import { reportLink } from "./confirm";
import { button, dialog, fetched, section, table } from "./parts";
import { dateText, span, t, won } from "./text";

type Row = Schemas["AirRow"];

/** The span of a report. */
export interface Span {
  branch?: string;
  from: string;
  to: string;
}

const url = "/v2/admin/reports/climate";

/** The section of the report of one branch; of several, it asks to choose one. */
export function airPart(asked: Readable<Span>): Child {
  return section(
    t("airReport"),
    match(asked, ({ branch, from, to }) => {
      if (!branch) return h("p", { class: "nothing" }, t("airReportBranch"));
      const query = { branch, from, to };
      const file = (kind: "csv" | "xlsx") => () => `/api${url}.${kind}?${new URLSearchParams(query)}`;
      const source = resource(() => api.get<{ rows: Row[] }>(url, query));
      return [
        h("p", { class: "hint" }, t("airReportHint")),
        fetched(source, (data) => () => rooms(data().rows)),
        h("div", { class: "row" }, reportLink(file("csv"), t("airCsv")), reportLink(file("xlsx"), t("airXlsx"))),
      ];
    }),
  );
}

interface Total {
  room: string;
  unit: string;
  days: Row[];
}

function rooms(rows: readonly Row[]): Child {
  const totals = new Map<string, Total>();
  for (const row of rows) {
    const total = totals.get(row.room) ?? { room: row.room, unit: row.unit, days: [] };
    total.days.push(row);
    totals.set(row.room, total);
  }
  const sum = (days: readonly Row[], of: (r: Row) => number) => days.reduce((n, r) => n + of(r), 0);
  return table<Total>(
    t("airReport"),
    [
      { title: t("roomColumn"), kind: "brief", cell: (r) => t("roomNo", { n: r.room }) },
      { title: t("unit"), kind: "wide", cell: (r) => r.unit },
      { title: t("ranFor"), kind: "number", cell: (r) => span(sum(r.days, (d) => d.runMinutes)) },
      { title: t("ranIdle"), kind: "number", cell: (r) => span(sum(r.days, (d) => d.idleMinutes)) },
      {
        title: t("airCost"),
        kind: "number",
        cell: (r) => (r.days.some((d) => d.cost === null) ? "–" : won(sum(r.days, (d) => d.cost ?? 0))),
      },
      { title: t("temperature"), kind: "brief", cell: (r) => range(r.days) },
      { title: t("intent_no-effect"), kind: "number", cell: (r) => sum(r.days, (d) => d.noEffect) },
      {
        title: "",
        kind: "action",
        cell: (r) => button(t("byDay"), () => openDays(r), { label: `${t("byDay")} ${t("roomNo", { n: r.room })}` }),
      },
    ],
    [...totals.values()],
    t("airReportNone"),
  );
}

const celsius = (low: number | null, high: number | null): string =>
  low === null || high === null ? "–" : `${low.toFixed(1)}–${high.toFixed(1)} °C`;

/** The lowest and the highest temperature. Days without a reading add nothing. */
function range(days: readonly Row[]): string {
  const known = days.filter((d) => d.low !== null);
  if (known.length === 0) return "–";
  return celsius(Math.min(...known.map((d) => d.low!)), Math.max(...known.map((d) => d.high!)));
}

function openDays({ room, days }: Total): void {
  const title = t("climateHistory", { location: t("roomNo", { n: room }) });
  const measured = days.filter((d) => d.mean !== null);
  const at = (d: Row) => Date.parse(d.date);
  dialog(title, (close) => [
    measured.length > 1
      ? chart(
          measured.map((d) => ({ at: at(d), value: d.mean! })),
          {
            label: t("chartTemperature", { location: t("roomNo", { n: room }) }),
            unit: "°",
            from: at(days[0]!),
            to: at(days[days.length - 1]!),
            band: [20, 26],
            time: (ms) => new Date(ms).toISOString().slice(5, 10).replace("-", "/"),
          },
        )
      : null,
    table<Row>(
      title,
      [
        { title: t("date"), kind: "brief", cell: (d) => dateText(parseDate(d.date)) },
        { title: t("ranFor"), kind: "number", cell: (d) => span(d.runMinutes) },
        { title: t("ranIdle"), kind: "number", cell: (d) => span(d.idleMinutes) },
        { title: t("airCost"), kind: "number", cell: (d) => (d.cost === null ? "–" : won(d.cost)) },
        { title: t("temperature"), kind: "brief", cell: (d) => celsius(d.low, d.high) },
      ],
      [...days].reverse(),
    ),
    h("div", { class: "footer" }, button(t("back"), close, { kind: "plain" })),
  ]);
}
