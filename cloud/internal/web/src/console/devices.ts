// The agent of a branch and what hangs on it; credentials, enrolment, revocation.

import { api } from "../core/api";
import { now } from "../core/clock";
import { h, type Child } from "../core/dom";
import { resource } from "../core/resource";
import { dateOf, inZone } from "../booking/time";
import { doorName, wall } from "./doors";
import { gather, watch } from "./live";
import { attempt, button, chip, copy, dialog, facts, fetched, heading, section, table, toast } from "./parts";
import { mayChange, type Branch } from "./session";
import { ago, t } from "./text";

interface Devices {
  online: boolean;
  seenAt: string | null;
  startedAt: string | null;
  version: string | null;
  clockOffsetMs: number | null;
  selfTest: { name: string; ok: boolean; detail: string | null }[];
  doors: { device: string; kind: string; sense: boolean; contact: boolean; exit: boolean }[];
  airConditioners: string[];
  sensors: string[];
  credentials: { username: string; demo: boolean; createdAt: string; revokedAt: string | null }[];
}

export interface Enrolled {
  username: string;
  credential: string;
  qr: string;
}

export function devicesScreen(branch: Branch): Child {
  const source = resource(() => api.get<Devices>(`/v2/admin/branches/${branch.branch}/devices`));
  const refresh = gather(source.refresh);
  watch(branch.branch, dateOf(inZone(branch.timeZone)), (event) => {
    if (!event || event.kind === "agent") refresh();
  });
  return [
    heading(t("navDevices"), mayChange() ? button(t("enroll"), () => openEnroll(branch, refresh), { kind: "primary" }) : null),
    fetched(source, (data) => () => [agent(branch, data()), hardware(data()), section(t("credentials"), credentials(branch, data(), refresh))]),
  ];
}

function agent(branch: Branch, d: Devices): Child {
  const offset = d.clockOffsetMs;
  return section(
    t("agent"),
    h("p", { class: "agent" }, d.online ? chip(t("online"), "good") : chip(t("offline"), "bad"), " ", d.seenAt ? t("lastSeen", { when: d.online ? t("justNow") : ago(now() - Date.parse(d.seenAt)) }) : t("agentNever")),
    facts([
      [t("version"), d.version && h("code", null, d.version)],
      [t("startedAt"), d.startedAt && wall(branch, d.startedAt)],
      [t("clock"), offset === null ? null : [`${offset > 0 ? "+" : ""}${(offset / 1000).toFixed(1)} s `, Math.abs(offset) > 2000 ? chip(t("clockWrong"), "bad") : chip(t("clockFine"), "good")]],
    ]),
    d.selfTest.length
      ? [h("h3", null, t("selfTest")), h("ul", { class: "selftest" }, d.selfTest.map((s) => h("li", null, chip(t(s.ok ? "passed" : "failed"), s.ok ? "good" : "bad"), " ", s.name, s.detail ? h("small", null, ` ${s.detail}`) : null)))]
      : null,
  );
}

function hardware(d: Devices): Child {
  return section(
    t("hardware"),
    table(
      t("doorsFitted"),
      [
        { title: t("colDoor"), cell: (x: Devices["doors"][number]) => doorName(x.device) },
        { title: t("hasSense"), cell: (x) => yes(x.sense) },
        { title: t("hasContact"), cell: (x) => yes(x.contact) },
        { title: t("hasExit"), cell: (x) => yes(x.exit) },
      ],
      d.doors,
      t("noInventory"),
    ),
    facts([
      [t("airconditioners"), d.airConditioners.join(", ")],
      [t("sensors"), d.sensors.join(", ")],
    ]),
  );
}

const yes = (is: boolean): string => (is ? t("fitted") : "–");

function credentials(branch: Branch, d: Devices, refresh: () => void): Child {
  return table<Devices["credentials"][number]>(
    t("credentials"),
    [
      { title: t("username"), cell: (c) => h("code", null, c.username) },
      { title: t("createdAt"), cell: (c) => wall(branch, c.createdAt) },
      { title: t("colState"), cell: (c) => (c.revokedAt ? chip(t("revoked"), "over") : c.demo ? chip(t("demoSecret"), "hold") : chip(t("valid"), "good")) },
      { title: "", kind: "action", cell: (c) => (!c.revokedAt && mayChange() ? button(t("revoke"), () => openRevoke(c.username, refresh), { kind: "danger", label: `${t("revoke")} ${c.username}` }) : null) },
    ],
    d.credentials,
  );
}

function openRevoke(username: string, refresh: () => void): void {
  dialog(t("revokeTitle"), (close) => {
    const { run, view } = attempt();
    const revoke = () =>
      run(async () => {
        await api.delete(`/v2/admin/agents/${username}`);
        toast(t("revokedNow"));
        refresh();
        close();
      });
    return [h("p", null, t("revokeText", { username })), view(), h("div", { class: "footer" }, button(t("back"), close, { kind: "plain" }), button(t("revoke"), revoke, { kind: "danger" }))];
  });
}

function openEnroll(branch: Branch, refresh: () => void): void {
  dialog(t("enroll"), (close) => {
    const { run, view } = attempt();
    const made = h("div");
    const enroll = () =>
      run(async () => {
        const answer = await api.post<Enrolled>(`/v2/admin/branches/${branch.branch}/agents`);
        made.replaceChildren(shown(answer));
        begin.hidden = true;
        refresh();
      });
    const begin = h("div", null, h("p", null, t("enrollText")), view(), h("div", { class: "footer" }, button(t("back"), close, { kind: "plain" }), button(t("enrollDo"), enroll, { kind: "primary" })));
    return [begin, made];
  });
}

/** The credential, once. The picture is the same text, for whoever sets the device up with a phone. */
function shown({ username, credential, qr }: Enrolled): HTMLElement {
  return h(
    "div",
    { class: "enrolled" },
    h("p", { class: "notice" }, t("enrollOnce")),
    h("ol", null, h("li", null, t("enrollStep1"), h("pre", { tabindex: 0 }, credential)), h("li", null, t("enrollStep2"), h("pre", { tabindex: 0 }, "sudo install -m 600 -o yeolda-agent credential.env /etc/yeolda-agent/credential.env\nsudo systemctl restart yeolda-agent"))),
    h("div", { class: "row" }, button(t("copyCredential"), () => copy(credential), { kind: "primary" })),
    picture(qr, username),
  );
}

/** qr is rows of 0 and 1. */
export function picture(qr: string, name: string): Element {
  const rows = qr.split("\n");
  const d = rows.flatMap((row, y) => [...row].map((bit, x) => (bit === "1" ? `M${x + 4} ${y + 4}h1v1h-1z` : ""))).join("");
  const size = rows.length + 8;
  return h("svg", { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": t("qrOf", { name }) }, h("rect", { width: size, height: size, fill: "#fff" }), h("path", { d, fill: "#000" }));
}
