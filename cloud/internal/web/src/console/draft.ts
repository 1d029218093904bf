// The notices of a form whose edits outlive the screen.

import { type Child, h, match } from "../core/dom";
import type { Readable } from "../core/signal";
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
