// The notices of a form whose edits outlive the screen.

import { type Child, h, match, when } from "../core/dom";
import { effect, type Readable, type Signal, signal, untracked } from "../core/signal";
import { tabStore } from "../core/storage";
import { FieldError } from "./numbers";
import { attempt, button } from "./parts";
import { t } from "./text";

/** Reports that the form shows edits of an earlier visit, and offers to discard them. */
export const restoredNotice = (discard: () => void): Child =>
  h("div", { class: "notice" }, h("p", null, t("draftRestored")), button(t("discardDraft"), discard));

/** Reports that another administrator has saved in the meantime. The user either loads that version or keeps the own edits. */
export function newerNotice<T>(newer: Readable<T | null>, load: (other: T) => void, keep: (other: T) => void): Child {
  return match(newer, (other) =>
    other
      ? h(
          "div",
          { class: "notice", role: "alert" },
          h("p", null, t("settingsNewer")),
          button(t("loadNewer"), () => load(other)),
          button(t("keepMine"), () => keep(other)),
        )
      : null,
  );
}

/** Edits and the values that they start from, kept together so that a conflict is noticed after a reload. */
export interface Edits<B, V> {
  base: B;
  values: V;
}

/** The edits that are kept, or null. Drafts of earlier versions of the console have no base and are ignored. */
export function keptEdits<B, V>(key: string): Edits<B, V> | null {
  const kept = JSON.parse(tabStore.get(key) ?? "{}") as Partial<Edits<B, V>>;
  return kept.values === undefined ? null : (kept as Edits<B, V>);
}

/** A value that is typed in. */
type Typed = (() => string) & Pick<Signal<string>, "set">;

/** The rows of a form as one value. plain and row turn a row into JSON and back. */
export const typedRows = <R, V>(rows: Signal<R[]>, plain: (row: R) => V, row: (value: V) => R): Typed =>
  Object.assign(() => JSON.stringify(rows().map(plain)), {
    set: (text: string) => rows.set((JSON.parse(text) as V[]).map(row)),
  });

/**
 * A field that begins with a stored value. The draft holds it only if it is edited, and ends when another administrator has changed the
 * stored value: it would put the earlier one back.
 */
export function edited(shown: Typed): Typed {
  const stored = untracked(shown);
  return Object.assign(() => (shown() === stored ? "" : JSON.stringify([stored, shown()])), {
    set: (text: string) => {
      const [from, to] = text ? (JSON.parse(text) as [string, string]) : [stored, stored];
      if (from === stored) shown.set(to);
    },
  });
}

/** [edited] for each field of a form. */
export const editedAll = <K extends string>(fields: Record<K, Typed>): Record<string, Typed> =>
  Object.fromEntries(Object.entries<Typed>(fields).map(([name, field]) => [name, edited(field)]));

/** Rejects a save over a stored value that another administrator has changed since it was read. */
export function unchangedSince(read: unknown, now: unknown): void {
  if (JSON.stringify(now) !== JSON.stringify(read)) throw new FieldError(t("changedMeanwhile"));
}

/** What is typed into a form, kept for later. */
interface Kept {
  /** Deletes the draft after saving. */
  forget: () => void;
  /** Reports that the form shows a draft, and offers to discard it. */
  notice: Child;
}

/**
 * Keeps what is typed into a form until it is saved: through a refresh, another screen or a closed dialog. Never for
 * secrets.
 */
export function keepTyped(name: string, fields: Record<string, Typed>): Kept {
  const key = `console-draft-${name}`;
  const read = () => Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, value()]));
  const first = untracked(read);
  const initial = JSON.stringify(first);
  const put = (values: Record<string, string>) => {
    for (const [field, value] of Object.entries(values)) fields[field]?.set(value);
  };
  const stored = tabStore.get(key);
  if (stored) put(JSON.parse(stored) as Record<string, string>);
  const restored = signal(JSON.stringify(untracked(read)) !== initial); // after saving, the form may begin with what was typed
  const forget = () => {
    restored.set(false);
    tabStore.remove(key);
  };
  effect(() => {
    const text = JSON.stringify(read());
    if (text === initial) tabStore.remove(key);
    else tabStore.set(key, text);
  });
  const discard = () => {
    put(first);
    forget();
  };
  return { forget, notice: when(restored, () => restoredNotice(discard)) };
}

/** An attempt of a form that keeps what is typed in until it succeeds. */
export function keptAttempt(
  name: string,
  fields: Record<string, Typed>,
): Pick<ReturnType<typeof attempt>, "run" | "view"> {
  const { forget, notice } = keepTyped(name, fields);
  const { run, view } = attempt();
  return {
    run: async (action) => {
      const done = await run(action);
      if (done) forget();
      return done;
    },
    view: () => [notice, view()],
  };
}
