// The log of a Pi for ten minutes, and the report of its doctor.

import { api } from "../core/api";
import { ticking, whileSeen } from "../core/clock";
import { type Child, h, when } from "../core/dom";
import { countdown } from "../core/format";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { computed, type Readable } from "../core/signal";
import { who } from "./day/history";
import { wall } from "./doors";
import { button, copy, fetched, saveFile } from "./parts";
import type { Branch } from "./session";
import { t } from "./text";

type Diagnostics = Schemas["AgentDiagnostics"];

const pollEvery = 1000; // ms, while the agent sends: as often as it does
const idleEvery = 15_000; // ms

/** The number of lines that are shown at most. */
const most = 5000;

export function diagnosticsPart(branch: Branch, username: string, editable: boolean): Child {
  const path = `/v2/admin/agents/${encodeURIComponent(username)}/diagnostics`;
  const log = logView(branch);
  let next = 0;
  let asking = false;
  const source = resource(async () => {
    asking = true;
    try {
      const found = await api.get<Diagnostics>(path, { after: next });
      next = found.next;
      log.add(found.log);
      return found;
    } finally {
      asking = false;
    }
  });
  // One request at a time: each asks for what follows the previous answer.
  const refresh = async () => {
    if (!asking) await source.refresh();
  };
  whileSeen(pollEvery, () => {
    if (source.data()?.window?.open) void refresh();
  });
  whileSeen(idleEvery, () => void refresh());
  const open = async (doctor: boolean) => {
    await api.post(path, { doctor });
    await refresh();
  };
  const close = async () => {
    await api.delete(path);
    await refresh();
  };
  return fetched(source, (data) => {
    const seen = computed(() => data().window !== null);
    const sending = computed(() => data().window?.open === true);
    return [
      h("p", { class: "hint" }, () => t(data().supported ? "piDiagnosticsLead" : "piNoDiagnostics")),
      editable
        ? h(
            "div",
            { class: "row wrap" },
            button(
              () => t(data().window?.open ? "piLogMore" : "piLogOpen"),
              () => open(false),
              { disabled: () => !data().supported },
            ),
            button(t("piDoctor"), () => open(true), { disabled: () => !data().supported }),
            when(sending, () => button(t("piLogClose"), close)),
          )
        : null,
      when(seen, () => [
        windowLine(branch, data),
        () => doctorPart(branch, data().doctor),
        h("h3", null, t("piLog")),
        log.element,
        h(
          "div",
          { class: "row wrap" },
          button(t("copy"), () => copy(log.element.textContent!)),
          button(t("piSaveLog"), () =>
            saveFile(`${username}.log`, "text/plain;charset=utf-8", log.element.textContent!),
          ),
        ),
      ]),
    ];
  });
}

/** Shows until when the agent sends its log, or who had asked for it. */
function windowLine(branch: Branch, data: Readable<Diagnostics>): Child {
  const now = ticking();
  return h("p", { class: "logwindow" }, () => {
    const { window: w, online } = data();
    if (!w) return null;
    const time = wall(branch, w.endsAt);
    if (!w.open) return t("piLogEnded", { time, by: who(w.openedBy) });
    if (!w.received) return t(online ? "piLogWaits" : "piLogWaitsForLine");
    return t("piLogUntil", { time, left: countdown(Date.parse(w.endsAt) - now()) });
  });
}

const doctorPart = (branch: Branch, doctor: Diagnostics["doctor"]): Child =>
  doctor
    ? [
        h("h3", null, t("piDoctorReport")),
        doctor.report === null
          ? h("p", { class: "hint", role: "status" }, t("piDoctorWaits"))
          : [
              h("p", { class: "hint", role: "status" }, wall(branch, doctor.reportedAt!)),
              h("pre", { class: "file", tabindex: 0, role: "group", "aria-label": t("piDoctorReport") }, doctor.report),
            ],
      ]
    : null;

/** A log that scrolls with new lines unless the operator reads earlier ones. */
function logView(branch: Branch): { element: HTMLElement; add: (parts: Diagnostics["log"]) => void } {
  const element = h("pre", { class: "log", tabindex: 0, role: "log", "aria-live": "off", "aria-label": t("piLog") });
  const add = (parts: Diagnostics["log"]) => {
    const atEnd = element.scrollHeight - element.scrollTop - element.clientHeight < 40; // pixels
    for (const { dropped, lines } of parts) {
      if (dropped) element.append(h("span", { class: "gap" }, `${t("piDropped", { n: dropped })}\n`));
      for (const { at, level, text } of lines)
        element.append(
          h("span", { class: level.toLowerCase() }, `${at ? `${wall(branch, at)} ` : ""}${level} ${text}\n`),
        );
    }
    while (element.childElementCount > most) element.firstElementChild!.remove();
    if (atEnd) element.scrollTop = element.scrollHeight;
  };
  return { element, add };
}
