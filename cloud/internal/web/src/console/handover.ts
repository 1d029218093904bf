// Notes from one shift to the next: who left them, and who has done them.

import { api } from "../core/api";
import { whileSeen } from "../core/clock";
import { type Child, each, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { type Resource, resource } from "../core/resource";
import { type Readable, signal } from "../core/signal";
import { who } from "./day/history";
import { keepTyped } from "./draft";
import { attempt, button, dialog, fetched, field, input, submitsOnce } from "./parts";
import { type Branch, mayBook } from "./session";
import { localText, t } from "./text";

type Notes = Schemas["Handovers"];
type Note = Notes["notes"][number];

/** The interval in ms at which the notes are read again: no event announces one. */
const interval = 30_000;

/** The button that opens the notes and shows how many are open. */
export function handoverButton(branch: Branch): HTMLButtonElement {
  const path = `/v2/admin/branches/${branch.branch}/handover`;
  const source = resource(() => api.get<Notes>(path));
  whileSeen(interval, () => void source.refresh());
  const open = () => source.data()?.notes.filter((n) => !n.doneAt).length ?? 0;
  const count = () => (open() ? h("b", { class: "count" }, String(open())) : null);
  return button([t("handover"), count], () => openNotes(branch.branch, path, source));
}

function openNotes(branch: string, path: string, source: Resource<Notes>): void {
  void source.refresh();
  dialog(
    t("handover"),
    () => [
      noteForm(path, source.refresh),
      fetched(source, (data) => [
        when(
          () => data().notes.length === 0,
          () => h("p", { class: "nothing" }, t("handoverNone")),
        ),
        h(
          "ul",
          { class: "notes" },
          each(
            () => data().notes,
            (n) => n.id,
            (n) => note(branch, path, n, source.refresh),
          ),
        ),
      ]),
    ],
    { kind: "drawer" },
  );
}

function note(branch: string, path: string, n: Readable<Note>, refresh: () => Promise<void>): HTMLElement {
  const { run, view } = attempt();
  const flip = async () => {
    await run(() => api.patch(`${path}/${n.peek().id}`, { done: !n.peek().doneAt }));
    await refresh();
  };
  return h(
    "li",
    { class: () => (n().doneAt ? "done" : "") },
    h("p", null, () => n().text),
    h("small", null, () => t("guestNoteBy", { by: who(n().by), when: localText(n().at, branch) })),
    when(
      () => n().doneAt,
      () =>
        h("small", null, () =>
          n().doneAt ? t("handoverDoneBy", { by: who(n().doneBy ?? ""), when: localText(n().doneAt!, branch) }) : "",
        ),
    ),
    mayBook() ? button(() => t(n().doneAt ? "handoverReopen" : "handoverDone"), flip) : null,
    view(),
  );
}

/** Adds a note with POST to path. */
export function noteForm(path: string, refresh: () => Promise<void>): Child {
  if (!mayBook()) return null;
  const text = signal("");
  const { forget, notice } = keepTyped(`note-${path}`, { text });
  const { run, view } = attempt();
  const add = async () => {
    if (!(await run(() => api.post(path, { text: text.peek().trim() })))) return;
    text.set("");
    forget();
    await refresh();
  };
  return h(
    "form",
    { class: "inline", onsubmit: submitsOnce(add) },
    notice,
    field(t("guestNoteNew"), input(text, { maxlength: 1000, required: true })),
    button(t("guestNoteAdd"), () => {}, { type: "submit" }),
    view(),
  );
}
