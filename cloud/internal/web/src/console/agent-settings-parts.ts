// The settings of a Pi as its page shows them: states, authors, reasons, differences.

import { api } from "../core/api";
import { difference, hunks } from "../core/diff";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { who } from "./day/history";
import { type TextKey, t } from "./text";

export type Version = Schemas["AgentSettingsVersion"];

export interface Pi {
  credential: Schemas["AgentCredential"];
  supported: boolean;
  trial: number | null;
  versions: Version[];
}

/** Where the settings of an agent are. */
export const settingsPath = (username: string): string => `/v2/admin/agents/${encodeURIComponent(username)}/settings`;

/** Fetches the texts of versions. They never change, so each is fetched once. */
export function versionTexts(username: string): (version: number) => Promise<string> {
  const known = new Map<number, Promise<string>>();
  return (version) => {
    if (version === 0) return Promise.resolve("");
    let text = known.get(version);
    if (!text) {
      text = api.get<Schemas["AgentSettings"]>(`${settingsPath(username)}/${version}`).then((found) => found.settings);
      text.catch(() => known.delete(version));
      known.set(version, text);
    }
    return text;
  };
}

export const inUse = (pi: Pi): Version | undefined => pi.versions.find((v) => v.state === "in-use");

export const failed = (v: Version): boolean => v.state === "refused" || v.state === "rolled-back";

/** Whether the agent has not answered to the version yet. */
export const isOpen = (v: Version): boolean => v.state === "asked";

/** The state as shown, which tells a trial from a version that is still on its way. */
const stateOf = (pi: Pi, v: Version) => (isOpen(v) && pi.trial === v.version ? "trial" : v.state);

const tones: Record<string, string> = {
  asked: "hold",
  trial: "hold",
  "in-use": "good",
  refused: "bad",
  "rolled-back": "bad",
};

export const stateText = (pi: Pi, v: Version): string => t(`piSettings_${stateOf(pi, v)}`);

export const stateChip = (pi: () => Pi, v: () => Version): HTMLElement =>
  h("span", { class: () => `chip ${tones[stateOf(pi(), v())] ?? ""}` }, () => stateText(pi(), v()));

export function authorOf(username: string, { createdBy }: Version): string {
  if (createdBy === `agent:${username}`) return t("piEditedThere");
  return createdBy.startsWith("agent:") ? t("piCopiedFrom", { username: createdBy.slice(6) }) : who(createdBy);
}

/** What an open version waits for. */
export function progressText({ credential, supported, trial }: Pi, v: Version): string {
  if (trial === v.version) return t("piTrialText");
  if (!credential.online) return t("piWaitsForLine");
  return t(supported ? "piOnItsWay" : "piUnsupported");
}

/** The reasons that agents give for a roll-back. */
const reasons: [detail: RegExp, text: TextKey][] = [
  [/^not connected for /, "piNotConnected"],
  [/^this self-test fails: /, "piSelfTest"],
  [/^the agent was started \d+ times/, "piRestarts"],
  [/^the settings file of the machine was edited/, "piFileEdited"],
];

/** Why a version is not in use, in the language of the page and in the words of the agent. */
export function reasonOf(v: Version): Child {
  const known = reasons.find(([detail]) => detail.test(v.detail ?? ""))?.[1];
  return [
    h("p", null, t(v.state === "refused" ? "piRefused" : (known ?? "piRolledBack"))),
    v.detail ? h("pre", { tabindex: 0, lang: "en", role: "group", "aria-label": t("piDetail") }, v.detail) : null,
  ];
}

/** Shows the lines that differ, each with its sign, and some unchanged ones around them. */
export function differenceView(before: string, after: string): HTMLElement {
  const parts = hunks(difference(before, after));
  if (parts.length === 0) return h("p", { class: "nothing" }, t("piNoDifference"));
  return h(
    "pre",
    { class: "difference", tabindex: 0, role: "group", "aria-label": t("piDifference") },
    parts.map((part, at) => [
      at > 0 ? h("span", { class: "gap" }, "⋯\n") : null,
      part.map(({ kind, text }) => h(kind === "+" ? "ins" : kind === "-" ? "del" : "span", null, `${kind} ${text}\n`)),
    ]),
  );
}
