// The first page: what needs attention over all of one's branches, the worst first.

import { api } from "../core/api";
import { now } from "../core/clock";
import { type Child, each, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { english } from "../core/language";
import { computed, type Readable, signal } from "../core/signal";
import { alertList, openAlerts } from "./alerts";
import { link, linkButton } from "./link";
import { gather, watchAll } from "./live";
import { openNewBranch } from "./opening";
import { attempt, button, chip, heading, input, section } from "./parts";
import { firstScreen, isHQ } from "./session";
import { ago, localText, t, won } from "./text";

type Item = Schemas["BranchOverview"];
type Page = Schemas["Overview"];

/** Branches per request. */
const size = 50;
/** Alerts that the first page shows; the others are on the screen of alerts. */
const most = 10;

export function overviewScreen(): Child {
  const branches = signal<Item[]>([]);
  const next = signal<string | null>(null);
  const { run, view } = attempt();
  const load = async (count: number) => {
    const list: Item[] = [];
    let cursor = "";
    do {
      const page = await api.get<Page>("/v2/admin/overview", { limit: size, ...(cursor ? { cursor } : {}) });
      list.push(...page.branches);
      cursor = page.next ?? "";
    } while (cursor && list.length < count);
    branches.set(list);
    next.set(cursor || null);
  };
  const refresh = gather(() => run(() => load(branches.peek().length)));
  refresh();
  watchAll(refresh);
  const alerts = openAlerts();
  const wanted = signal("");
  const found = computed(() => {
    const text = wanted().trim().toLowerCase();
    return branches().filter((b) => `${b.branch} ${b.name} ${b.nameEn}`.toLowerCase().includes(text));
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
      view(),
      h(
        "ul",
        { class: "branches" },
        each(found, (b) => b.branch, card),
      ),
      when(
        () => next(),
        () =>
          h(
            "div",
            { class: "row" },
            button(t("more"), () => run(() => load(branches.peek().length + size))),
          ),
      ),
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
