// Reports: sold and sellable time by room, weekday, hour or day.

import { dateOf, inZone } from "../booking/time";
import { api } from "../core/api";
import { now } from "../core/clock";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { computed, effect, signal, untracked } from "../core/signal";
import { branchSelect } from "./branches";
import { reportLink } from "./confirm";
import { linkButton } from "./link";
import { fetched, field, heading, input, section, segmented, table } from "./parts";
import { airPart } from "./reports-climate";
import { branchByCode, homeBranch } from "./session";
import { span, t, weekdayText, won } from "./text";

type Row = Schemas["OccupancyRow"];

const groupings = ["day", "weekday", "hour", "room"] as const;
const dayLength = 86_400_000; // ms

export function reportsScreen(): Child {
  const by = signal<string>("day");
  const home = homeBranch();
  const branch = signal(home ?? "");
  const date = (at: number) => dateOf(inZone(branchByCode(home ?? "")?.timeZone ?? "Asia/Seoul", at));
  const [from, to] = [signal(date(now() - 29 * dayLength)), signal(date(now()))];
  const query = computed(() => ({
    from: from(),
    to: to(),
    by: by(),
    ...(branch() ? { branch: branch() } : {}),
  }));
  const air = computed(() => ({ from: from(), to: to(), ...(branch() ? { branch: branch() } : {}) }));
  const source = resource(() => api.get<{ rows: Row[] }>("/v2/admin/reports/occupancy", query.peek()));
  let first = true;
  effect(() => {
    query();
    if (!first) untracked(source.retry);
    first = false;
  });
  const file = (kind: "csv" | "xlsx") => () =>
    `/api/v2/admin/reports/occupancy.${kind}?${new URLSearchParams(query())}`;
  return [
    heading(
      t("navReports"),
      linkButton("/console/levels", t("navLevels")),
      reportLink(file("csv"), t("downloadCsv")),
      reportLink(file("xlsx"), t("downloadXlsx")),
    ),
    h(
      "div",
      { class: "inline" },
      field(t("branch"), branchSelect(branch)),
      field(t("dateFrom"), input(from, { type: "date" })),
      field(t("dateTo"), input(to, { type: "date" })),
      segmented(
        t("reportBy"),
        by,
        groupings.map((g) => ({ value: g, text: t(`reportBy_${g}`) })),
      ),
    ),
    section(
      t("occupancy"),
      fetched(source, (data) => () => rows(data().rows, by.peek())),
    ),
    airPart(air),
  ];
}

function rows(list: readonly Row[], by: string): Child {
  const sum = (of: (r: Row) => number) => list.reduce((total, r) => total + of(r), 0);
  const share = (r: Row) => (r.sellableMinutes ? Math.min(1, r.soldMinutes / r.sellableMinutes) : 0);
  const total = {
    key: "",
    soldMinutes: sum((r) => r.soldMinutes),
    sellableMinutes: sum((r) => r.sellableMinutes),
    amount: 0,
  };
  return [
    h("p", { class: "lead" }, t("reportSum", { share: percent(share(total)), amount: won(sum((r) => r.amount)) })),
    table<Row>(
      t("occupancy"),
      [
        { title: t(`reportBy_${by as (typeof groupings)[number]}`), kind: "brief", cell: (r) => keyText(r.key, by) },
        {
          title: t("occupancy"),
          kind: "wide",
          cell: (r) => [
            h("meter", { min: 0, max: 1, value: share(r), "aria-label": t("occupancy") }),
            ` ${percent(share(r))}`,
          ],
        },
        { title: t("sold"), kind: "number", cell: (r) => span(r.soldMinutes) },
        { title: t("sellable"), kind: "number", cell: (r) => span(r.sellableMinutes) },
        { title: t("amount"), kind: "number", cell: (r) => won(r.amount) },
      ],
      list,
    ),
  ];
}

const percent = (share: number): string => `${(100 * share).toFixed(1)}%`;

function keyText(key: string, by: string): string {
  if (by === "weekday") return weekdayText(Number(key) % 7);
  if (by === "hour") return `${key}:00`;
  return by === "room" && !key.includes("/") ? t("roomNo", { n: key }) : key;
}
