// The first page: what needs attention over all of one's branches, the worst first.

import { api } from "../core/api";
import { now, whileSeen } from "../core/clock";
import { type Child, each, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { english } from "../core/language";
import { resource } from "../core/resource";
import { computed, effect, type Readable, signal, untracked } from "../core/signal";
import { alertList, openAlerts } from "./alerts";
import { link, linkButton } from "./link";
import { gather, watchAll } from "./live";
import { openNewBranch } from "./opening";
import { button, chip, fetched, heading, input, section } from "./parts";
import { firstScreen, isHQ } from "./session";
import { ago, localText, t, won } from "./text";

type Item = Schemas["BranchOverview"];
type Page = Schemas["Overview"];

/** Branches per request. */
const size = 50;
/** Branches per request of a search, which reads all of them. */
const searchSize = 200;
/** The interval in ms at which the figures are read again: events announce agents and alerts only. */
const interval = 60_000;
/** Alerts that the first page shows; the others are on the screen of alerts. */
const most = 10;

export function overviewScreen(): Child {
  const wanted = signal("");
  const searching = computed(() => wanted().trim() !== "");
  let count = size; // branches that are shown, if there are as many
  const source = resource(async (): Promise<Page> => {
    const limit = searching.peek() ? searchSize : size;
    const list: Item[] = [];
    let next: string | null = null;
    do {
      const page: Page = await api.get<Page>("/v2/admin/overview", { limit, ...(next ? { cursor: next } : {}) });
      list.push(...page.branches);
      next = page.next;
    } while (next && (searching.peek() || list.length < count));
    return { branches: list, next };
  });
  const refresh = gather(source.refresh);
  watchAll(refresh);
  whileSeen(interval, refresh);
  effect(() => {
    if (searching()) untracked(() => void source.refresh());
  });
  const more = async () => {
    count = (source.data()?.branches.length ?? 0) + size;
    await source.refresh();
  };
  const alerts = openAlerts();
  const found = computed(() => {
    const text = wanted().trim().toLowerCase();
    return (source.data()?.branches ?? []).filter((b) =>
      `${b.branch} ${b.name} ${b.nameEn}`.toLowerCase().includes(text),
    );
  });
  return [
    heading(
      t("navOverview"),
      input(wanted, { type: "search", placeholder: t("findBranch"), "aria-label": t("findBranch") }),
      isHQ() ? button(t("newBranch"), openNewBranch, { kind: "primary" }) : null,
      linkButton("/console/closures", t("navClosures")),
    ),
    section(
      t("needsYou"),
      when(
        () => alerts.list().length > 0,
        () =>
          alertList(
            computed(() => alerts.list().slice(0, most)),
            alerts.refresh,
          ),
        () => h("p", { class: "nothing" }, t("alertNone")),
      ),
      when(
        () => alerts.list().length > most,
        () => link("/console/alerts", () => t("alertMore", { n: alerts.besides(most) })),
      ),
    ),
    section(
      t("allBranches"),
      fetched(source, (data) => [
        h(
          "ul",
          { class: "branches" },
          each(found, (b) => b.branch, card),
        ),
        when(
          () => data().next,
          () => h("div", { class: "row" }, button(t("more"), more)),
        ),
      ]),
    ),
  ];
}

function card(b: Readable<Item>): HTMLElement {
  const facts: [string, () => Child][] = [
    [t("occupied"), () => `${b().occupiedRooms} / ${b().rooms}`],
    [t("nextArrival"), () => (b().nextArrival ? localText(b().nextArrival!, b().branch) : "–")],
    [t("todayAmount"), () => won(b().todayAmount)],
    [t("unlockSuccess"), () => (b().unlockSuccess7d === null ? "–" : `${(100 * b().unlockSuccess7d!).toFixed(1)}%`)],
  ];
  return h(
    "li",
    null,
    h(
      "a",
      { class: () => `branchcard ${b().online ? "" : "bad"}`, href: `/console/${b.peek().branch}/${firstScreen()}` },
      h("span", { class: "title" }, h("b", null, (english() && b.peek().nameEn) || b.peek().name), () => [
        b().online ? chip(t("online"), "good") : chip(t("offline"), "bad"),
        b().openAlerts > 0 ? chip(t("alertCount", { n: b().openAlerts }), "bad") : null,
        !b().online && b().since ? h("small", null, ago(now() - Date.parse(b().since!))) : null,
      ]),
      h(
        "span",
        { class: "numbers" },
        facts.map(([label, value]) => h("span", null, h("small", null, label), " ", value)),
      ),
    ),
  );
}
