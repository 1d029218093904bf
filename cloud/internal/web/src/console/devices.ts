// The agent of a branch and its devices; credentials and their revocation.

import { dateOf, inZone } from "../booking/time";
import { api } from "../core/api";
import { now } from "../core/clock";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { doorName, wall } from "./doors";
import { openEnroll } from "./enroll";
import { gather, watch } from "./live";
import { attempt, button, chip, dialog, facts, fetched, heading, section, table, toast } from "./parts";
import { type Branch, mayChange } from "./session";
import { ago, t } from "./text";

type Devices = Schemas["DeviceOverview"];

export function devicesScreen(branch: Branch): Child {
  const source = resource(() => api.get<Devices>(`/v2/admin/branches/${branch.branch}/devices`));
  const refresh = gather(source.refresh);
  watch(branch.branch, dateOf(inZone(branch.timeZone)), (event) => {
    if (!event || event.kind === "agent") refresh();
  });
  return [
    heading(t("navDevices"), mayChange() ? button(t("enroll"), () => openEnroll(branch), { kind: "primary" }) : null),
    fetched(source, (data) => () => [
      agent(branch, data()),
      hardware(data()),
      section(t("credentials"), credentials(branch, data(), refresh)),
    ]),
  ];
}

function agent(branch: Branch, d: Devices): Child {
  const offset = d.clockOffsetMs;
  return section(
    t("agent"),
    h(
      "p",
      { class: "agent" },
      d.online ? chip(t("online"), "good") : chip(t("offline"), "bad"),
      " ",
      d.seenAt ? t("lastSeen", { when: d.online ? t("justNow") : ago(now() - Date.parse(d.seenAt)) }) : t("agentNever"),
    ),
    facts([
      [t("version"), d.version && h("code", null, d.version)],
      [t("startedAt"), d.startedAt && wall(branch, d.startedAt)],
      [
        t("clock"),
        offset === null
          ? null
          : [
              `${offset > 0 ? "+" : ""}${(offset / 1000).toFixed(1)} s `,
              Math.abs(offset) > 2000 ? chip(t("clockWrong"), "bad") : chip(t("clockFine"), "good"),
            ],
      ],
    ]),
    d.selfTest.length
      ? [
          h("h3", null, t("selfTest")),
          h(
            "ul",
            { class: "selftest" },
            d.selfTest.map((s) =>
              h(
                "li",
                null,
                chip(t(s.ok ? "passed" : "failed"), s.ok ? "good" : "bad"),
                " ",
                s.name,
                s.detail ? h("small", null, ` ${s.detail}`) : null,
              ),
            ),
          ),
        ]
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
      {
        title: t("colState"),
        cell: (c) =>
          c.revokedAt ? chip(t("revoked"), "over") : c.demo ? chip(t("demoSecret"), "hold") : chip(t("valid"), "good"),
      },
      {
        title: t("colSecret"),
        cell: (c) => (c.rotating ? chip(t("rotating"), "hold") : c.keyPair ? t("keyPair") : t("passwordSecret")),
      },
      {
        title: "",
        kind: "action",
        cell: (c) => [
          h(
            "a",
            {
              class: "button soft",
              href: `/console/${branch.branch}/devices/${c.username}`,
              "aria-label": `${t("piSettings")} ${c.username}`,
            },
            t("piSettings"),
          ),
          !c.revokedAt && mayChange()
            ? [
                button(t("rotate"), () => openRotate(c.username, refresh), {
                  kind: "plain",
                  label: `${t("rotate")} ${c.username}`,
                }),
                button(t("revoke"), () => openRevoke(c.username, refresh), {
                  kind: "danger",
                  label: `${t("revoke")} ${c.username}`,
                }),
              ]
            : null,
        ],
      },
    ],
    d.credentials,
  );
}

function openRevoke(username: string, refresh: () => void): void {
  confirmAgent(t("revokeTitle"), t("revokeText", { username }), t("revoke"), "danger", async () => {
    await api.delete(`/v2/admin/agents/${username}`);
    toast(t("revokedNow"));
    refresh();
  });
}

function openRotate(username: string, refresh: () => void): void {
  confirmAgent(t("rotateTitle"), t("rotateText", { username }), t("rotate"), "primary", async () => {
    await api.post(`/v2/admin/agents/${username}/rotate`);
    toast(t("rotatedNow"));
    refresh();
  });
}

/** Asks before something is done to a credential. */
function confirmAgent(
  title: string,
  text: string,
  action: string,
  kind: "danger" | "primary",
  act: () => Promise<void>,
): void {
  dialog(title, (close) => {
    const { run, view } = attempt();
    const confirmed = () =>
      run(async () => {
        await act();
        close();
      });
    return [
      h("p", null, text),
      view(),
      h("div", { class: "footer" }, button(t("back"), close, { kind: "plain" }), button(action, confirmed, { kind })),
    ];
  });
}
