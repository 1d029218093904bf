// The notices of a form whose edits outlive the screen.

import { type Child, h, match, when } from "../core/dom";
import { effect, type Readable, type Signal, signal, untracked } from "../core/signal";
import { button } from "./parts";
import { t } from "./text";

/** Says that the form shows edits of an earlier visit, and offers to discard them. */
export const restoredNotice = (discard: () => void): Child =>
  h("div", { class: "notice" }, h("p", null, t("draftRestored")), button(t("discardDraft"), discard));

/** Says that another administrator has saved in the meantime. The user either loads that version or keeps the own edits. */
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

/** What a form has typed in, kept for later. */
interface Kept {
  /** Forgets the draft after saving. */
  forget: () => void;
  /** Says that the form shows a draft, and offers to discard it. */
  notice: Child;
}

/**
 * Keeps what is typed into a form until it is saved: through a refresh, another screen or a closed dialog. Never for
 * secrets.
 */
export function keepTyped(name: string, fields: Record<string, Signal<string>>): Kept {
  const key = `console-draft-${name}`;
  const read = () => Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, value()]));
  const first = untracked(read);
  const put = (values: Record<string, string>) => {
    for (const [field, value] of Object.entries(values)) fields[field]?.set(value);
  };
  const stored = sessionStorage.getItem(key);
  const restored = signal(stored !== null);
  if (stored) put(JSON.parse(stored) as Record<string, string>);
  const forget = () => {
    restored.set(false);
    sessionStorage.removeItem(key);
  };
  effect(() => {
    const text = JSON.stringify(read());
    if (text === JSON.stringify(first)) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, text);
  });
  const discard = () => {
    put(first);
    forget();
  };
  return { forget, notice: when(restored, () => restoredNotice(discard)) };
}
