// Time that is not sold, because an agent may still hold the PIN of the guest who had it. The headquarters can sell it.

import { clockOf, inZone } from "../../booking/time";
import { api } from "../../core/api";
import { h } from "../../core/dom";
import { signal } from "../../core/signal";
import { keptAttempt } from "../draft";
import { link } from "../link";
import { button, dialog, field, input, toast } from "../parts";
import { type Branch, isHQ } from "../session";
import { t, timesText } from "../text";
import type { Block } from "./model";

const maxReason = 200; // characters

export function openQuarantine(branch: Branch, block: Block, refresh: () => void): void {
  const { id, reservationId, reason, until } = block.quarantine!;
  dialog(
    `${t("kind_quarantine")} · ${t("roomNo", { n: block.room })} ${timesText(block.start, block.end)}`,
    (close) => {
      const why = signal("");
      const { run, view } = keptAttempt(`quarantine-${id}`, { why });
      const release = () =>
        run(async () => {
          await api.post(`/v2/admin/branches/${branch.branch}/quarantine/${id}/release`, { reason: why.peek().trim() });
          toast(t("quarantineReleased"));
          refresh();
          close();
        });
      const end = clockOf(inZone(branch.timeZone, Date.parse(until)));
      return [
        h("p", null, t(`quarantine_${reason}`)),
        h("p", null, t("quarantineEnds", { when: end })),
        h(
          "p",
          null,
          link(`/console/${branch.branch}/day?r=${reservationId}`, t("quarantineWhose"), { onclick: close }),
        ),
        isHQ()
          ? field(t("reason"), input(why, { maxlength: maxReason, autofocus: true }), t("quarantineHint"))
          : h("p", { class: "hint" }, t("quarantineForHQ")),
        view(),
        h(
          "div",
          { class: "footer" },
          button(t("back"), close, { kind: "plain" }),
          isHQ() ? button(t("quarantineRelease"), release, { kind: "danger", disabled: () => !why().trim() }) : null,
        ),
      ];
    },
  );
}
