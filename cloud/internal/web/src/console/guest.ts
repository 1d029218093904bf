// A guest: all stays under one phone number, notes of staff, and whether the number may reserve.

import { dateOf } from "../booking/time";
import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import type { Params } from "../core/router";
import { signal } from "../core/signal";
import { branchTitle } from "./alerts";
import { who } from "./day/history";
import { kindText, toBlock } from "./day/model";
import { keepTyped } from "./draft";
import { noteForm } from "./handover";
import { link } from "./link";
import { attempt, button, chip, dialog, facts, fetched, field, heading, input, section, table, toast } from "./parts";
import { type Branch, mayBook, mayChange } from "./session";
import { dateText, localText, phoneText, t, timesText, won } from "./text";

type Guest = Schemas["Guest"];
type Note = Guest["notes"][number];

/** The number of stays that the service lists at most, the latest. */
const mostStays = 100;

export function guestScreen(branch: Branch, { id }: Params): Child {
  const path = `/v2/admin/reservations/${id}/guest`;
  const source = resource(() => api.get<Guest>(path));
  return [
    heading(t("guestPage")),
    fetched(source, (data) => [
      match(data, (guest) => [
        section(
          guest.name || t("guestPage"),
          facts([
            [t("mobile"), h("a", { href: `tel:${guest.mobileNum}` }, phoneText(guest.mobileNum))],
            [t("guestStays"), `${guest.reservations.length}${guest.reservations.length < mostStays ? "" : "+"}`],
          ]),
          blocking(branch, path, guest, source.refresh),
        ),
      ]),
      section(
        t("guestNotes"),
        () => notes(path, data().notes, source.refresh),
        noteForm(`${path}/notes`, source.refresh),
      ),
      section(t("guestStays"), () => stays(data().reservations)),
    ]),
  ];
}

function blocking(branch: Branch, path: string, { block }: Guest, refresh: () => Promise<void>): Child {
  if (!block)
    return mayChange()
      ? h(
          "div",
          { class: "row" },
          button(t("guestBlock"), () => openBlock(path, refresh), { kind: "danger" }),
        )
      : null;
  const { run, view } = attempt();
  const unblock = async () => {
    if (await run(() => api.delete(`${path}/block`))) toast(t("guestUnblockDone"));
    await refresh();
  };
  return [
    h(
      "div",
      { class: "notice row wrap" },
      chip(t("guestBlocked"), "bad"),
      h("p", null, block.reason),
      h("small", null, t("guestNoteBy", { by: who(block.by), when: localText(block.at, branch.branch) })),
    ),
    view(),
    mayChange() ? h("div", { class: "row" }, button(t("guestUnblock"), unblock)) : null,
  ];
}

function openBlock(path: string, refresh: () => Promise<void>): void {
  dialog(t("guestBlockTitle"), (close) => {
    const reason = signal("");
    const { forget, notice } = keepTyped(`block-${path}`, { reason });
    const { run, view } = attempt();
    const block = async () => {
      if (!(await run(() => api.put(`${path}/block`, { reason: reason.peek().trim() })))) return;
      forget();
      close();
      toast(t("guestBlockDone"));
      await refresh();
    };
    return [
      h("p", null, t("guestBlockText")),
      notice,
      field(t("guestBlockReason"), input(reason, { maxlength: 200, autofocus: true })),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("guestBlock"), block, { kind: "danger", disabled: () => !reason().trim() }),
      ),
    ];
  });
}

function notes(path: string, list: Note[], refresh: () => Promise<void>): Child {
  if (list.length === 0) return h("p", { class: "nothing" }, t("guestNoteNone"));
  const remove = async (n: Note) => {
    await api.delete(`${path}/notes/${n.id}`);
    await refresh();
  };
  return h(
    "ul",
    { class: "notes" },
    list.map((n) =>
      h(
        "li",
        null,
        h("p", null, n.text),
        h(
          "small",
          null,
          t("guestNoteBy", { by: who(n.by), when: localText(n.at, n.branch) }),
          ` · ${branchTitle(n.branch)}`,
        ),
        mayBook() ? button(t("delete"), () => remove(n), { kind: "plain", label: `${t("delete")}: ${n.text}` }) : null,
      ),
    ),
  );
}

const stays = (list: Guest["reservations"]): Child =>
  table(
    t("guestStays"),
    [
      {
        title: t("colWhen"),
        cell: (r) => {
          const b = toBlock(r);
          return link(
            `/console/${r.branch}/day/${dateOf(b.start)}?r=${r.id}`,
            `${dateText(b.start)} ${timesText(b.start, b.end)}`,
          );
        },
      },
      { title: t("branch"), cell: (r) => `${branchTitle(r.branch)} ${t("roomNo", { n: r.roomNo })}` },
      { title: t("colName"), cell: (r) => r.name ?? "–" },
      { title: t("amount"), kind: "number", cell: (r) => (r.amount ? won(r.amount) : "–") },
      { title: t("colState"), cell: (r) => chip(kindText(toBlock(r).kind), toBlock(r).kind) },
    ],
    list,
  );
