// The editor of the settings of a Pi. The typed text is never lost: not by a reload, and not if another version comes first.

import { ApiError, api } from "../core/api";
import { type Child, h, match, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { batch, effect, onCleanup, type Readable, signal, untracked } from "../core/signal";
import {
  authorOf,
  differenceView,
  inUse,
  type Pi,
  settingsPath,
  stateChip,
  type Version,
} from "./agent-settings-parts";
import { wall } from "./doors";
import { keepTyped } from "./draft";
import { attempt, button, copy, dialog, fetched, field, segmented, toast } from "./parts";
import type { Branch } from "./session";
import { t } from "./text";

type Texts = (version: number) => Promise<string>;

interface Origin {
  /** 0: there is none. */
  version: number;
  text: string;
}

export function settingsEditor(
  branch: Branch,
  username: string,
  data: Readable<Pi>,
  texts: Texts,
  refresh: () => Promise<void>,
  editable: boolean,
): Child {
  const first = resource(async (): Promise<Origin> => {
    const version = data.peek().versions[0]?.version ?? 0;
    return { version, text: await texts(version) };
  });
  return fetched(first, (loaded) => editor(branch, username, data, loaded.peek(), texts, refresh, editable));
}

function editor(
  branch: Branch,
  username: string,
  data: Readable<Pi>,
  start: Origin,
  texts: Texts,
  refresh: () => Promise<void>,
  editable: boolean,
): Child {
  const text = signal(start.text);
  const base = signal(String(start.version)); // kept with the draft, so that a conflict is noticed after a reload
  const origin = signal(start); // the version from which the edits start
  const newer = signal<(Version & Origin) | null>(null);
  const { forget, notice } = keepTyped(`agent-settings-${username}`, { text, base });
  const begin = (from: Origin) => {
    batch(() => {
      origin.set(from);
      base.set(String(from.version));
      text.set(from.text);
      newer.set(null);
    });
    forget();
  };
  effect(() => {
    const version = Number(base()); // of a draft, or of the text after the draft was discarded
    if (version === origin.peek().version) return;
    void texts(version).then((found) => {
      if (Number(base.peek()) === version) origin.set({ version, text: found });
    });
  });
  effect(() => {
    const last = data().versions[0];
    const from = origin();
    if (!last || last.version <= from.version) return;
    void texts(last.version).then((found) => {
      if (origin.peek() !== from || data.peek().versions[0] !== last) return;
      const mine = text.peek();
      if (mine === from.text || mine === found) begin({ version: last.version, text: found });
      else newer.set({ ...last, text: found });
    });
  });
  const keep = ({ version, text: found }: Origin) => {
    batch(() => {
      origin.set({ version, text: found });
      base.set(String(version));
      newer.set(null);
    });
  };
  const edited = () => text() !== origin().text;
  const area = h("textarea", {
    class: "code",
    rows: 16,
    wrap: "off",
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    readonly: !editable,
    value: () => text(),
    oninput: (e: Event) => text.set((e.target as HTMLTextAreaElement).value),
  });
  return [
    editable ? [notice, newerNotice(branch, username, newer, origin, begin, keep)] : null,
    field(t("piFile"), area, () => (origin().version ? t("piFrom", { n: origin().version }) : t("piFromNothing"))),
    h(
      "div",
      { class: "editorbar" },
      h("p", { class: "hint" }, caret(area)),
      editable
        ? [
            when(edited, () => button(t("piUndo"), () => text.set(origin.peek().text), { kind: "plain" })),
            button(t("piReview"), () => review(username, data, origin.peek(), text.peek(), texts, begin, refresh), {
              kind: "primary",
              disabled: () => !edited(),
            }),
          ]
        : null,
    ),
  ];
}

/** The place of the caret, because agents name mistakes by line and column. */
function caret(area: HTMLTextAreaElement): () => string {
  const place = signal({ line: 1, column: 1 });
  const look = () => {
    if (document.activeElement !== area) return;
    const before = area.value.slice(0, area.selectionStart).split("\n");
    place.set({ line: before.length, column: before[before.length - 1]!.length + 1 });
  };
  document.addEventListener("selectionchange", look);
  area.addEventListener("input", look);
  onCleanup(() => document.removeEventListener("selectionchange", look));
  return () => t("piCaret", { ...place() });
}

/** Shows which version came first, and what it changed. The operator's text stays until the operator decides. */
function newerNotice(
  branch: Branch,
  username: string,
  newer: Readable<(Version & Origin) | null>,
  origin: Readable<Origin>,
  load: (other: Origin) => void,
  keep: (other: Origin) => void,
): Child {
  return match(newer, (other) =>
    other
      ? h(
          "div",
          { class: "notice", role: "alert" },
          h(
            "p",
            null,
            t("piNewer", { n: other.version, by: authorOf(username, other), when: wall(branch, other.createdAt) }),
          ),
          differenceView(untracked(origin).text, other.text),
          h(
            "div",
            { class: "row wrap" },
            button(t("piLoadNewer", { n: other.version }), () => load({ version: other.version, text: other.text })),
            button(t("keepMine"), () => keep({ version: other.version, text: other.text })),
          ),
        )
      : null,
  );
}

/** Compares a text with what the Pi uses and with the last version, and sends it. */
function review(
  username: string,
  data: Readable<Pi>,
  from: Origin,
  text: string,
  texts: Texts,
  begin: (from: Origin) => void,
  refresh: () => Promise<void>,
): void {
  dialog(t("piReview"), (close) => {
    const used = inUse(data.peek())?.version ?? 0;
    const against = signal(String(used || from.version));
    const { run, view } = attempt();
    const send = () =>
      run(async () => {
        try {
          const { version } = await put(username, text, from.version);
          begin({ version, text });
          toast(t("piSent", { n: version }));
        } catch (error) {
          if (!isConflict(error)) throw error; // the editor then shows what came first
        }
        close();
        await refresh();
      });
    return [
      used && used !== from.version
        ? segmented(t("piCompare"), against, [
            { value: String(used), text: t("piCompareUsed", { n: used }) },
            { value: String(from.version), text: t("piCompareLast", { n: from.version }) },
          ])
        : h("p", null, t(used ? "piChanges" : "piInsteadOfFile", { n: used })),
      compared(texts, against, text),
      consequence(data),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("piSend"), send, { kind: "primary" }),
      ),
    ];
  });
}

const put = (username: string, settings: string, base: number): Promise<Schemas["AgentSettingsNumber"]> =>
  api.put(settingsPath(username), { settings, base });

const isConflict = (error: unknown): boolean => error instanceof ApiError && error.type === "SettingConflictException";

const compared = (texts: Texts, against: Readable<string>, text: string): Child =>
  match(against, (version) =>
    fetched(
      resource(() => texts(Number(version))),
      (before) => () => differenceView(before(), text),
    ),
  );

/** Describes what happens after sending. */
const consequence = (data: Readable<Pi>): HTMLElement =>
  h("p", { class: "hint" }, () => [
    t("piConsequence"),
    data().credential.online ? null : h("b", null, ` ${t("piWaitsForLine")}`),
  ]);

/** Shows a version, or what changes if it is used again. */
export function openVersion(
  username: string,
  data: Readable<Pi>,
  v: Version,
  texts: Texts,
  refresh: () => Promise<void>,
  again: boolean,
): void {
  dialog(t(again ? "piAgainTitle" : "piVersion", { n: v.version }), (close) => {
    const last = data.peek().versions[0]!.version;
    const used = inUse(data.peek())?.version ?? 0;
    const { run, view } = attempt();
    const source = resource(async () => ({ text: await texts(v.version), before: await texts(used) }));
    const send = (text: string) =>
      run(async () => {
        try {
          const { version } = await put(username, text, last);
          toast(t("piSent", { n: version }));
          close();
        } finally {
          await refresh();
        }
      });
    return fetched(source, (found) => () => {
      const { text, before } = found();
      return [
        again
          ? [
              h("p", null, t(used ? "piChanges" : "piInsteadOfFile", { n: used })),
              differenceView(before, text),
              consequence(data),
            ]
          : [
              h(
                "p",
                null,
                stateChip(data, () => data().versions.find((x) => x.version === v.version) ?? v),
              ),
              h("pre", { tabindex: 0, class: "file" }, text),
            ],
        view(),
        h(
          "div",
          { class: "footer" },
          button(t(again ? "back" : "close"), close, { kind: "plain" }),
          again ? button(t("piSend"), () => send(text), { kind: "primary" }) : button(t("copy"), () => copy(text)),
        ),
      ];
    });
  });
}
