// Updates of the agents of all branches in waves: how each wave does, and what returned to the previous version.

import { api } from "../core/api";
import { whileSeen } from "../core/clock";
import { type Child, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { type Signal, signal } from "../core/signal";
import { keptAttempt } from "./draft";
import { link } from "./link";
import { decimalIn, wholeIn } from "./numbers";
import {
  attempt,
  button,
  chip,
  dialog,
  facts,
  fetched,
  field,
  heading,
  input,
  section,
  segmented,
  table,
  toast,
} from "./parts";
import { branches, branchName } from "./session";
import { localText, t } from "./text";

type Rollout = Schemas["Rollout"];
type Agent = Rollout["agents"][number];
type State = Schemas["RolloutState"];

const path = "/v2/admin/agents/rollout";
const pollEvery = 3000; // ms: as often as the service judges the agents
const settleMost = 60; // minutes

export function rolloutScreen(): Child {
  const source = resource(async () => (await api.get<State>(path)).rollout);
  whileSeen(pollEvery, () => {
    const last = source.data();
    if (last && isOpen(last)) void source.refresh();
  });
  const begin = button(t("rolloutBegin"), () => openForm(source.refresh), {
    kind: "primary",
    disabled: () => source().is === "loading" || (source.data() ? isOpen(source.data()!) : false),
  });
  return [
    heading(t("navRollout"), begin),
    h("p", { class: "lead" }, t("rolloutLead")),
    fetched(source, (data) => () => {
      const last = data();
      return last ? report(last, source.refresh) : h("p", { class: "nothing" }, t("rolloutNone"));
    }),
  ];
}

const isOpen = (r: Rollout): boolean => r.endedAt === null;

function report(r: Rollout, refresh: () => Promise<void>): Child {
  return [
    section(
      r.kind === "settings" ? t("rolloutOfSettings") : t("rolloutOf", { version: r.version }),
      facts([
        [t("colState"), [chip(t(`rollout_${r.state}`), tone[r.state]), " ", r.reason ?? ""]],
        [t("rolloutBegun"), `${localText(r.createdAt)} · ${r.createdBy}`],
        [t("rolloutEnded"), r.endedAt && localText(r.endedAt)],
      ]),
      isOpen(r) && r.state === "running"
        ? h(
            "div",
            { class: "row" },
            button(t("rolloutStop"), () => confirmStop(refresh), { kind: "danger" }),
            r.agents.some((a) => a.state === "waiting" && !a.online)
              ? button(t("rolloutSkip"), () => confirmSkip(refresh), { kind: "plain" })
              : null,
          )
        : null,
      r.state === "stopped"
        ? h(
            "div",
            { class: "row" },
            button(t("rolloutResume"), () => confirmResume(refresh), { kind: "danger" }),
          )
        : null,
    ),
    section(t("rolloutWaves"), waves(r)),
    section(
      t("rolloutAgents"),
      table<Agent>(
        t("rolloutAgents"),
        [
          {
            title: t("branches"),
            kind: "wide",
            cell: (a) => [
              branchTitle(a.branch),
              " ",
              link(`/console/${a.branch}/devices/${a.username}`, h("code", null, a.username)),
            ],
          },
          { title: t("rolloutWave"), kind: "number", cell: (a) => a.wave },
          { title: t("colState"), kind: "brief", cell: (a) => chip(t(`rolloutAgent_${a.state}`), tone[a.state]) },
          { title: t("rolloutVersion"), kind: "brief", cell: (a) => a.version ?? "–" },
          { title: t("colDetail"), cell: (a) => [a.online ? "" : t("rolloutOffline"), " ", a.detail ?? ""] },
        ],
        r.agents,
      ),
    ),
  ];
}

const tone: Record<string, string> = {
  running: "warn",
  reverting: "bad",
  stopped: "bad",
  done: "good",
  asked: "warn",
  healthy: "good",
  failed: "bad",
  unreverted: "bad",
};

function branchTitle(code: string): string {
  const branch = branches().find((b) => b.branch === code);
  return branch ? branchName(branch) : code;
}

/** The waves with the number of agents that are healthy or failed in each. */
function waves(r: Rollout): Child {
  const of = (wave: number, ...states: string[]) =>
    r.agents.filter((a) => a.wave === wave && (states.length === 0 || states.includes(a.state))).length;
  const rows = r.waves.map((percent, i) => ({ percent, wave: i + 1 }));
  return table<{ percent: number; wave: number }>(
    t("rolloutWaves"),
    [
      {
        title: t("rolloutWave"),
        kind: "brief",
        cell: (w) => [
          `${w.wave} (${w.percent}%) `,
          isOpen(r) && w.wave === r.wave ? chip(t("rolloutNow"), "warn") : null,
        ],
      },
      { title: t("rolloutAgents"), kind: "number", cell: (w) => of(w.wave) },
      { title: t("rolloutAgent_healthy"), kind: "number", cell: (w) => of(w.wave, "healthy") },
      { title: t("rolloutAgent_asked"), kind: "number", cell: (w) => of(w.wave, "asked") },
      { title: t("rolloutAgent_failed"), kind: "number", cell: (w) => of(w.wave, "failed", "unreverted") },
      { title: t("rolloutAgent_reverted"), kind: "number", cell: (w) => of(w.wave, "reverting", "reverted") },
    ],
    rows,
  );
}

function openForm(refresh: () => Promise<void>): void {
  dialog(t("rolloutBegin"), (close) => {
    const kind = signal("package");
    const version = signal("");
    const [old, instead] = [signal(""), signal("")];
    const percents = signal("1, 10, 100");
    const minutes = signal("5");
    const { run, view } = keptAttempt("rollout", { kind, version, old, instead, percents, minutes });
    const begin = () =>
      run(async () => {
        await api.post<State>(path, {
          ...(kind.peek() === "settings"
            ? { change: { old: old.peek(), new: instead.peek() } }
            : { version: version.peek().trim() }),
          waves: percents
            .peek()
            .split(/[\s,%]+/)
            .filter(Boolean)
            .map((percent) => wholeIn(t("rolloutPercents"), percent)),
          settleSeconds: Math.round(decimalIn(t("rolloutSettle"), minutes.peek()) * 60),
        });
        await refresh();
        close();
      });
    return [
      h(
        "div",
        { class: "form" },
        segmented(t("rolloutKind"), kind, [
          { value: "package", text: t("rolloutKindPackage") },
          { value: "settings", text: t("rolloutKindSettings") },
        ]),
        when(
          () => kind() === "settings",
          () => [
            field(t("rolloutOld"), settingsText(old), t("rolloutOldHint")),
            field(t("rolloutInstead"), settingsText(instead), t("rolloutInsteadHint")),
          ],
          () => field(t("rolloutVersion"), input(version, { maxlength: 64, autofocus: true }), t("rolloutVersionHint")),
        ),
        field(t("rolloutPercents"), input(percents, { maxlength: 40 }), t("rolloutPercentsHint")),
        field(
          t("rolloutSettle"),
          input(minutes, { type: "number", min: 0.1, max: settleMost, step: "any" }),
          t("rolloutSettleHint"),
        ),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("rolloutBegin"), begin, {
          kind: "primary",
          disabled: () => (kind() === "settings" ? !old() : !version().trim()),
        }),
      ),
    ];
  });
}

/** A part of settings files, in which every space counts. */
const settingsText = (value: Signal<string>): HTMLElement =>
  h("textarea", {
    class: "code",
    rows: 3,
    wrap: "off",
    spellcheck: "false",
    maxlength: 4000,
    value: () => value(),
    oninput: (e: Event) => value.set((e.target as HTMLTextAreaElement).value),
  });

const confirmStop = (refresh: () => Promise<void>) =>
  confirm(t("rolloutStop"), t("rolloutStopText"), async () => {
    await api.delete(path);
    toast(t("rolloutStopped"));
    await refresh();
  });

const confirmResume = (refresh: () => Promise<void>) =>
  confirm(t("rolloutResume"), t("rolloutResumeText"), async () => {
    await api.post<State>(`${path}/resume`);
    toast(t("rolloutResumed"));
    await refresh();
  });

const confirmSkip = (refresh: () => Promise<void>) =>
  confirm(t("rolloutSkip"), t("rolloutSkipText"), async () => {
    await api.post<State>(`${path}/skip-offline`);
    toast(t("rolloutSkipped"));
    await refresh();
  });

/** Asks before an action that changes the agents of many branches. */
function confirm(title: string, text: string, act: () => Promise<void>): void {
  dialog(title, (close) => {
    const { run, view } = attempt();
    const acted = () =>
      run(async () => {
        await act();
        close();
      });
    return [
      h("p", null, text),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(title, acted, { kind: "danger" }),
      ),
    ];
  });
}
