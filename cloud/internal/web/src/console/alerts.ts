// Alerts: conditions that need staff, the worst first, each with the place where it ends.

import { api } from "../core/api";
import { now, ticking } from "../core/clock";
import { type Child, each, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { computed, effect, type Readable, signal, untracked } from "../core/signal";
import { ownContacts } from "./contacts";
import { linkButton } from "./link";
import { gather, watchAll } from "./live";
import { attempt, button, chip, fetched, heading, segmented } from "./parts";
import { branchByCode, branchName, isHQ, mayBook } from "./session";
import { ago, localText, type TextKey, t } from "./text";

export type Alert = Schemas["Alert"];
type AlertKind = Schemas["AlertKind"];

/** The kinds and the screen of the branch where each of them ends. */
const screens: Record<AlertKind, string> = {
  "branch-offline": "devices",
  "door-failing": "doors",
  "key-undelivered": "day",
  "door-forced": "doors",
  "agent-takeover": "devices",
  "reader-lockout": "doors",
  "keypad-outdated": "devices",
  "door-held": "doors",
  "payment-unclear": "day",
  "refund-failed": "day",
  discrepancy: "money",
  "pin-exposed": "doors",
  "self-test": "devices",
  "sensor-threshold": "climate",
  "sensor-silent": "climate",
  clock: "devices",
  certificate: "",
  "service-check": "",
  "reconciliation-late": "",
  "webhook-disabled": "",
  "no-arrival": "day",
};

export const alertKinds = Object.keys(screens) as AlertKind[];
const severity: string[] = alertKinds;

/** The name of a kind, without its subject. */
export const kindName = (kind: AlertKind): string => t(`alertKind_${kind}` as TextKey);

/** The worst first, then the oldest. */
export const byUrgency = (a: Alert, b: Alert): number =>
  severity.indexOf(a.kind) - severity.indexOf(b.kind) || Date.parse(a.since) - Date.parse(b.since);

/** What an alert is about, in one sentence. */
export function alertText(alert: Alert): string {
  if (alert.kind === "branch-offline" && !alert.branch) return t("alertMass");
  if (ofCalendar(alert.subject)) return t("alertCalendar");
  if (alert.kind === "keypad-outdated" && alert.subject === "clock") return t("alertKeypadClock");
  return t(`alert_${alert.kind}` as TextKey, { subject: subjectText(alert.subject) });
}

/** Whether a subject is the calendar of a booking channel, which the settings of the branch show. */
const ofCalendar = (subject: string): boolean => subject.startsWith("calendar:");

function subjectText(subject: string): string {
  const [kind, id] = subject.split(":");
  if (kind === "reservation") return t("alertReservation", { id: id! });
  const room = /^room_(\d+)$/.exec(subject);
  if (room) return t("roomDoor", { n: room[1]! });
  return subject.startsWith("front") ? t("frontDoor") : subject;
}

/** The address where an alert ends; empty if there is none in the console. */
function remedy({ kind, branch, subject }: Alert): string {
  const screen = ofCalendar(subject) ? "settings" : screens[kind];
  if (!branch || !screen) return "";
  const id = /^reservation:(\d+)$/.exec(subject)?.[1];
  return `/console/${branch}/${screen}${screen === "day" && id ? `?r=${id}` : ""}`;
}

export const branchTitle = (code: string): string => {
  const branch = branchByCode(code);
  return branch ? branchName(branch) : code || t("allBranches");
};

type Page = Schemas["AlertList"];

/** Alerts per request. */
const size = 200;
/** The number of open alerts of which the worst are shown on the first page. */
const mostOpen = 1000;

/** The newest alerts, at least count of them if there are as many. */
export async function newestAlerts(query: { state: string; branch?: string }, count = size): Promise<Page> {
  const alerts: Alert[] = [];
  let next: string | null = null;
  do {
    const page: Page = await api.get<Page>("/v2/admin/alerts", {
      ...query,
      limit: size,
      ...(next ? { cursor: next } : {}),
    });
    alerts.push(...page.alerts);
    next = page.next;
  } while (next && alerts.length < count);
  return { alerts, next };
}

/** The number of alerts besides some that are shown; a plus if there are more than were read. */
export const besides = (page: Page | undefined, shown: number): string =>
  `${(page?.alerts.length ?? 0) - shown}${page?.next ? "+" : ""}`;

interface OpenAlerts {
  list: Readable<Alert[]>;
  /** The number of alerts besides some of the list, as text. */
  besides: (shown: number) => string;
  refresh: () => void;
}

/** The open alerts in one's scope, live. */
export function openAlerts(): OpenAlerts {
  const source = resource(() => newestAlerts({ state: "open" }, mostOpen));
  const refresh = gather(source.refresh);
  watchAll(refresh);
  const list = computed(() => (source.data()?.alerts ?? []).slice().sort(byUrgency));
  return { list, besides: (shown) => besides(source.data(), shown), refresh };
}

/** One alert with its remedy and the button to take care of it, which leaves the focus on the row. */
function alertRow(alert: Readable<Alert>, changed: () => void): HTMLElement {
  const { run, view } = attempt();
  const { id, kind, branch, since } = alert.peek(); // what never changes
  const take = async () => {
    if (!(await run(() => api.post(`/v2/admin/alerts/${id}/acknowledge`)))) return;
    row.focus({ preventScroll: true });
    changed();
  };
  const address = remedy(alert.peek());
  const time = ticking();
  const row = h(
    "li",
    { tabindex: -1, class: () => `alert ${alert().endedAt ? "ended" : severity.indexOf(kind) < 5 ? "bad" : "warn"}` },
    h("p", { class: "what" }, h("b", null, branchTitle(branch)), " ", alertText(alert.peek())),
    h(
      "p",
      { class: "since" },
      () => {
        const { endedAt } = alert();
        return endedAt
          ? t("alertSpan", { from: localText(since, branch), to: localText(endedAt, branch) })
          : ago(Math.max(time(), now()) - Date.parse(since));
      },
      () => {
        const by = alert().acknowledgedBy;
        return by ? chip(t("alertTaken", { by })) : null;
      },
    ),
    h(
      "p",
      { class: "row" },
      address ? linkButton(address, t("alertGo")) : null,
      when(
        () => !alert().endedAt && !alert().acknowledgedBy && mayBook.peek(),
        () => button(t("alertTake"), take, { kind: "plain" }),
      ),
    ),
    view(),
  );
  return row;
}

export const alertList = (list: Readable<Alert[]>, changed: () => void): Child =>
  h(
    "ul",
    { class: "alerts", "aria-label": t("navAlerts") },
    each(
      list,
      (a) => a.id,
      (a) => alertRow(a, changed),
    ),
  );

export function alertsScreen(): Child {
  const shown = signal("open");
  let count = size;
  const source = resource(() => newestAlerts({ state: shown.peek() }, count));
  watchAll(gather(source.refresh));
  const list = computed(() => {
    const all = source.data()?.alerts ?? [];
    return shown() === "open" ? all.filter((a) => !a.endedAt).sort(byUrgency) : all;
  });
  const filter = segmented(t("alertState"), shown, [
    { value: "open", text: t("alertOpen") },
    { value: "all", text: t("all") },
  ]);
  effect(() => {
    shown();
    count = size;
    untracked(() => void source.refresh());
  });
  const more = async () => {
    count = list.peek().length + size;
    await source.refresh();
  };
  return [
    heading(t("navAlerts"), filter),
    fetched(source, () => [
      alertList(list, () => void source.refresh()),
      h("p", { class: "nothing", hidden: () => list().length > 0 }, t("alertNone")),
      when(
        () => Boolean(source.data()?.next),
        () => h("div", { class: "row" }, button(t("more"), more)),
      ),
    ]),
    isHQ() ? ownContacts() : null,
  ];
}
