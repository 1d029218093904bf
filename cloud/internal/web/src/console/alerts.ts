// Alerts: conditions that need staff, the worst first, each with the place where it ends.

import { api } from "../core/api";
import { now, ticking } from "../core/clock";
import { type Child, each, h } from "../core/dom";
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
  return t(`alert_${alert.kind}` as TextKey, { subject: subjectText(alert.subject) });
}

function subjectText(subject: string): string {
  const [kind, id] = subject.split(":");
  if (kind === "reservation") return t("alertReservation", { id: id! });
  const room = /^room_(\d+)$/.exec(subject);
  if (room) return t("roomDoor", { n: room[1]! });
  return subject.startsWith("front") ? t("frontDoor") : subject;
}

/** The address where an alert ends; empty if there is none in the console. */
function remedy({ kind, branch, subject }: Alert): string {
  const screen = screens[kind];
  if (!branch || !screen) return "";
  const id = /^reservation:(\d+)$/.exec(subject)?.[1];
  return `/console/${branch}/${screen}${screen === "day" && id ? `?r=${id}` : ""}`;
}

export const branchTitle = (code: string): string => {
  const branch = branchByCode(code);
  return branch ? branchName(branch) : code || t("allBranches");
};

/** The open alerts in one's scope, live. */
export function openAlerts(): { list: Readable<Alert[]>; refresh: () => void } {
  const source = resource(() => api.get<{ alerts: Alert[] }>("/v2/admin/alerts", { state: "open", limit: 200 }));
  const refresh = gather(source.refresh);
  watchAll(refresh);
  return { list: computed(() => (source.data()?.alerts ?? []).slice().sort(byUrgency)), refresh };
}

/** One alert with its remedy and the button to take care of it. */
export function alertRow(alert: Alert, changed: () => void): HTMLElement {
  const { run, view } = attempt();
  const take = async () => {
    if (await run(() => api.post(`/v2/admin/alerts/${alert.id}/acknowledge`))) changed();
  };
  const address = remedy(alert);
  const time = ticking();
  const ended = alert.endedAt;
  return h(
    "li",
    { class: `alert ${ended ? "ended" : severity.indexOf(alert.kind) < 5 ? "bad" : "warn"}` },
    h("p", { class: "what" }, h("b", null, branchTitle(alert.branch)), " ", alertText(alert)),
    h(
      "p",
      { class: "since" },
      ended
        ? t("alertSpan", { from: localText(alert.since, alert.branch), to: localText(ended, alert.branch) })
        : () => ago(Math.max(time(), now()) - Date.parse(alert.since)),
      alert.acknowledgedBy ? chip(t("alertTaken", { by: alert.acknowledgedBy })) : null,
    ),
    h(
      "p",
      { class: "row" },
      address ? linkButton(address, t("alertGo")) : null,
      !ended && !alert.acknowledgedBy && mayBook.peek() ? button(t("alertTake"), take, { kind: "plain" }) : null,
    ),
    view(),
  );
}

export const alertList = (list: Readable<Alert[]>, changed: () => void): Child =>
  h(
    "ul",
    { class: "alerts", "aria-label": t("navAlerts") },
    each(
      list,
      (a) => `${a.id} ${a.acknowledgedBy ?? ""} ${a.endedAt ?? ""}`,
      (a) => alertRow(a.peek(), changed),
    ),
  );

export function alertsScreen(): Child {
  const shown = signal("open");
  const source = resource(() => api.get<{ alerts: Alert[] }>("/v2/admin/alerts", { state: shown.peek(), limit: 200 }));
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
    untracked(() => void source.refresh());
  });
  return [
    heading(t("navAlerts"), filter),
    fetched(source, () => [
      alertList(list, () => void source.refresh()),
      h("p", { class: "nothing", hidden: () => list().length > 0 }, t("alertNone")),
    ]),
    isHQ() ? ownContacts() : null,
  ];
}
