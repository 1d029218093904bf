// The page of one Pi of a branch: the state of its settings, an editor, and the versions.

import { dateOf, inZone } from "../booking/time";
import { api } from "../core/api";
import { now } from "../core/clock";
import { type Child, each, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import type { Params } from "../core/router";
import { computed, type Readable, signal } from "../core/signal";
import { diagnosticsPart } from "./agent-diagnostics";
import { openVersion, settingsEditor } from "./agent-settings";
import {
  authorOf,
  failed,
  inUse,
  isOpen,
  type Pi,
  progressText,
  reasonOf,
  settingsPath,
  stateChip,
  stateText,
  type Version,
  versionTexts,
} from "./agent-settings-parts";
import { wall } from "./doors";
import { gather, watch } from "./live";
import { button, chip, facts, fetched, heading, section } from "./parts";
import { type Branch, mayChange } from "./session";
import { ago, t } from "./text";

/** The number of versions shown at first. */
const few = 8;

export function agentScreen(branch: Branch, params: Params): Child {
  const username = params.agent!;
  const devices = `/console/${branch.branch}/devices`;
  const source = resource(async (): Promise<Pi | null> => {
    const [{ credentials }, settings] = await Promise.all([
      api.get<Schemas["DeviceOverview"]>(`/v2/admin/branches/${branch.branch}/devices`),
      api.get<Schemas["AgentSettingsList"]>(settingsPath(username)),
    ]);
    const credential = credentials.find((c) => c.username === username);
    return credential ? { credential, ...settings } : null;
  });
  const refresh = gather(source.refresh);
  watch(branch.branch, dateOf(inZone(branch.timeZone)), (event) => {
    if (!event || event.kind === "agent") refresh();
  });
  return [
    heading(username, h("a", { class: "button soft", href: devices }, t("piBack"))),
    fetched(source, (data) =>
      data.peek()
        ? page(
            branch,
            username,
            computed(() => data()!),
            source.refresh,
          )
        : h("p", { class: "nothing" }, t("errNotFound")),
    ),
  ];
}

function page(branch: Branch, username: string, data: Readable<Pi>, refresh: () => Promise<void>): Child {
  const texts = versionTexts(username);
  const editable = mayChange() && !data.peek().credential.revokedAt;
  return [
    h("p", { class: "agent" }, () => presence(data().credential)),
    h("p", { class: "hidden", role: "status" }, () => spoken(data())),
    section(
      t("piSettings"),
      h("div", { class: "standing" }, () => standing(branch, username, data())),
    ),
    section(t("piEdit"), settingsEditor(branch, username, data, texts, refresh, editable)),
    section(t("piDiagnostics"), diagnosticsPart(branch, username, editable)),
    section(
      t("piVersions"),
      versions(branch, username, data, (v, again) => openVersion(username, data, v, texts, refresh, again), editable),
    ),
  ];
}

/** Returns the state of the last version for screen readers. */
const spoken = (pi: Pi): string => {
  const last = pi.versions[0];
  return last ? `${t("piVersion", { n: last.version })} ${stateText(pi, last)}` : "";
};

function presence(c: Pi["credential"]): Child {
  return [
    c.online ? chip(t("online"), "good") : chip(t("offline"), c.state === "active" ? "bad" : ""),
    " ",
    chip(t(`piState_${c.state}`), c.state === "revoked" ? "over" : ""),
    " ",
    c.seenAt ? t("lastSeen", { when: c.online ? t("justNow") : ago(now() - Date.parse(c.seenAt)) }) : t("agentNever"),
    c.version ? [" · ", h("code", null, c.version)] : null,
  ];
}

/** The version in use, the one on its way, and the last failure. */
function standing(branch: Branch, username: string, pi: Pi): Child {
  const [used, next, wrong] = [inUse(pi), pi.versions.find(isOpen), pi.versions.find(failed)];
  const named = (v: Version): Child => [
    h("b", null, t("piVersion", { n: v.version })),
    " ",
    stateChip(
      () => pi,
      () => v,
    ),
    h("small", null, ` ${wall(branch, v.stateAt)} · ${authorOf(username, v)}`),
  ];
  return [
    facts([
      [t("piUsed"), used ? named(used) : t(next || wrong ? "piOwnFile" : "piNone")],
      [t("piNext"), next && [named(next), h("p", { class: "hint" }, progressText(pi, next))]],
    ]),
    wrong
      ? h(
          "div",
          { class: wrong === pi.versions[0] ? "failure fresh" : "failure" },
          h("h3", null, t("piFailure")),
          h("p", null, named(wrong)),
          reasonOf(wrong),
        )
      : null,
  ];
}

/** The rows are updated in place, so that a focused button stays focused. */
function versions(
  branch: Branch,
  username: string,
  data: Readable<Pi>,
  open: (v: Version, again: boolean) => void,
  editable: boolean,
): Child {
  const all = signal(false);
  const shown = computed(() => (all() ? data().versions : data().versions.slice(0, few)));
  const row = (v: Readable<Version>): HTMLElement => {
    const name = t("piVersion", { n: v.peek().version });
    return h(
      "li",
      null,
      h(
        "p",
        null,
        h("b", null, name),
        " ",
        stateChip(data, v),
        h("small", null, () => ` ${wall(branch, v().createdAt)} · ${authorOf(username, v())}`),
      ),
      h(
        "div",
        { class: "acts" },
        button(t("view"), () => open(v.peek(), false), { kind: "plain", label: `${t("view")} ${name}` }),
        editable
          ? when(
              () => v().state !== "in-use" && !isOpen(v()),
              () => button(t("piAgain"), () => open(v.peek(), true), { label: `${t("piAgain")} ${name}` }),
            )
          : null,
      ),
    );
  };
  return [
    when(
      () => data().versions.length === 0,
      () => h("p", { class: "nothing" }, t("piNone")),
    ),
    h(
      "ul",
      { class: "versions" },
      each(shown, (v) => String(v.version), row),
    ),
    when(
      () => !all() && data().versions.length > few,
      () =>
        h(
          "div",
          { class: "row" },
          button(t("more"), () => all.set(true)),
        ),
    ),
  ];
}
