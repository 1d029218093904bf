// The service of each door over some days, those that need attention first.

import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { query } from "../core/router";
import { computed, signal } from "../core/signal";
import { branchTitle } from "./alerts";
import { branchSelect } from "./branches";
import { doorName } from "./doors";
import { link } from "./link";
import { button, chip, downloadCSV, fetched, field, heading, section, segmented, table } from "./parts";
import { t } from "./text";

type Level = Schemas["DoorLevel"];

const kinds: Record<Level["verdict"], string> = { failing: "bad", watch: "warn", good: "good", "too-few": "" };
const spans = [7, 30, 90]; // days

export function levelsScreen(): Child {
  const branch = signal(query().get("branch") ?? "");
  const days = signal("30");
  const asked = computed(() => ({ days: days(), ...(branch() ? { branch: branch() } : {}) }));
  let shown: readonly Level[] = [];
  const save = () =>
    downloadCSV(
      "door-levels.csv",
      [
        t("branch"),
        t("colDoor"),
        t("verdict"),
        t("presses"),
        t("successes"),
        "p50 (ms)",
        "p95 (ms)",
        t("retries"),
        t("pinsShown"),
        t("trendUnit"),
      ],
      shown.map((l) => [
        branchTitle(l.branch),
        doorName(l.device),
        t(`verdict_${l.verdict}`),
        l.presses,
        l.success,
        l.p50,
        l.p95,
        l.retries,
        l.pins,
        l.trend,
      ]),
    );
  return [
    heading(t("navLevels"), button(t("downloadCsv"), save)),
    h("p", { class: "lead" }, t("levelsLead")),
    h(
      "div",
      { class: "inline" },
      field(t("branch"), branchSelect(branch)),
      segmented(
        t("levelDays"),
        days,
        spans.map((n) => ({ value: String(n), text: t("lastDays", { n }) })),
      ),
    ),
    match(asked, (now) => {
      const source = resource(() => api.get<Schemas["DoorLevels"]>("/v2/admin/doors/levels", now));
      return fetched(source, (data) => () => {
        shown = data().doors;
        return section(t("navLevels"), levels(shown));
      });
    }),
  ];
}

const seconds = (ms: number | null): string => (ms === null ? "–" : `${(ms / 1000).toFixed(2)} s`);

const levels = (list: readonly Level[]): Child =>
  table<Level>(
    t("navLevels"),
    [
      {
        title: t("colDoor"),
        kind: "wide",
        cell: (l) => link(`/console/${l.branch}/doors`, `${branchTitle(l.branch)} · ${doorName(l.device)}`),
      },
      { title: t("verdict"), kind: "brief", cell: (l) => chip(t(`verdict_${l.verdict}`), kinds[l.verdict]) },
      { title: t("presses"), kind: "number", cell: (l) => l.presses.toLocaleString("en-US") },
      {
        title: t("successRate"),
        kind: "number",
        cell: (l) => (l.presses ? `${((100 * l.success) / l.presses).toFixed(1)}%` : "–"),
      },
      { title: t("median"), kind: "number", cell: (l) => seconds(l.p50) },
      { title: "p95", kind: "number", cell: (l) => seconds(l.p95) },
      { title: t("retries"), kind: "number", cell: (l) => l.retries },
      { title: t("pinsShown"), kind: "number", cell: (l) => l.pins },
      {
        title: t("trendUnit"),
        kind: "number",
        cell: (l) => (l.verdict === "too-few" ? "–" : `${l.trend > 0 ? "+" : ""}${l.trend.toFixed(1)}`),
      },
    ],
    list,
    t("levelsNone"),
  );
