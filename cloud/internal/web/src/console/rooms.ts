// Switches rooms on and off, and lists the reservations that prevent switching one off.

import { ApiError, api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { fetchDay, isReservation, type Room } from "./day/model";
import { link } from "./link";
import { gather, watch } from "./live";
import {
  attempt,
  button,
  type Column,
  chip,
  dialog,
  explain,
  fetched,
  heading,
  table,
  toast,
  toastWithUndo,
  toggle,
} from "./parts";
import { type Branch, mayChange } from "./session";
import { phoneText, type TextKey, t, won } from "./text";
import { todayOf } from "./today";

export type Conflict = Schemas["Conflict"];

export function roomsScreen(branch: Branch): Child {
  const today = todayOf(branch);
  const source = resource(() => fetchDay(branch.branch, today));
  const refresh = gather(source.refresh);
  watch(branch.branch, today, (event) => {
    if (!event || event.kind === "slot") refresh();
  });
  /** Reads the rooms again. The row of a switch has other texts then, so the focus would be lost with it. */
  const reread = async ({ roomNo }: Room) => {
    await source.refresh();
    const name = t("roomSwitch", { n: roomNo });
    const switches = [...document.querySelectorAll<HTMLElement>("[role=switch]")];
    if (document.activeElement === document.body) switches.find((e) => e.getAttribute("aria-label") === name)?.focus();
  };
  const flip = async (room: Room, enabled: boolean) => {
    try {
      await api.patch(`/admin/machines/${branch.branch}/${room.roomNo}`, { enabled });
    } catch (error) {
      const conflicts = error instanceof ApiError ? (error.data as { conflicts?: Conflict[] } | null)?.conflicts : null;
      if (conflicts)
        openConflicts(branch, conflicts, {
          title: t("conflictTitle", { n: room.roomNo }),
          text: t("conflictText", { n: conflicts.length }),
          action: t("conflictAgain"),
          run: () => flip(room, enabled),
        });
      else toast(explain(error), "bad");
      await reread(room);
      return;
    }
    await reread(room); // before the message: the next press on the switch takes the change back
    toastWithUndo(t(enabled ? "roomSwitchedOn" : "roomSwitchedOff", { n: room.roomNo }), async () => {
      await api.patch(`/admin/machines/${branch.branch}/${room.roomNo}`, { enabled: !enabled });
      await reread(room);
    });
  };
  return [
    heading(t("navRooms")),
    h("p", { class: "lead" }, t("roomsLead")),
    fetched(
      source,
      (data) => () =>
        table<Room>(
          t("navRooms"),
          [
            { title: t("room"), cell: (r) => h("b", null, t("roomNo", { n: r.roomNo })) },
            { title: t("machine"), kind: "wide", cell: (r) => [r.machine, " ", r.grade ? chip(r.grade) : null] },
            { title: t("price"), cell: (r) => price(r) },
            {
              title: t("todayCount"),
              kind: "number",
              cell: (r) =>
                t("countReservations", {
                  n: data().blocks.filter((b) => b.room === r.roomNo && isReservation(b)).length,
                }),
            },
            {
              title: t("inUse"),
              kind: "action",
              cell: (r) => [
                h("span", { class: "hint" }, t(r.enabled ? "on" : "off")),
                " ",
                toggle(
                  t("roomSwitch", { n: r.roomNo }),
                  () => r.enabled,
                  (on) => flip(r, on),
                  () => !mayChange(),
                ),
              ],
            },
          ],
          data().rooms,
        ),
    ),
  ];
}

export function price({ pricing }: Pick<Room, "pricing">): string {
  const parts = (
    [
      ["min10", pricing.min10],
      ["min30", pricing.min30],
      ["min60", pricing.min60],
    ] as const
  ).filter(([, v]) => v !== null);
  return parts.map(([k, v]) => `${t(k)} ${won(v!)}`).join(" · ") || t("noPrice");
}

interface Question {
  title: string;
  text: string;
  /** The name of the action that the conflicts prevented. */
  action: string;
  run: () => Promise<unknown>;
}

/** Lists the reservations that a change conflicts with. */
export function openConflicts(branch: Branch, conflicts: Conflict[], { title, text, action, run }: Question): void {
  dialog(title, (close) => {
    const trial = attempt();
    return [
      h("p", null, text),
      conflictTable(title, conflicts, () => branch.branch, close),
      trial.view(),
      h(
        "div",
        { class: "footer" },
        button(t("close"), close, { kind: "plain" }),
        button(
          action,
          async () => {
            if (await trial.run(run)) close();
          },
          { kind: "primary" },
        ),
      ),
    ];
  });
}

/** The reservations that are in the way, each with a link to its day, which calls followed. */
export function conflictTable<T extends Omit<Conflict, "type" | "status"> & { type: string }>(
  title: string,
  conflicts: readonly T[],
  branchOf: (c: T) => string,
  followed: () => void,
  more: Column<T>[] = [],
): HTMLElement {
  const day = (c: T) => `/console/${branchOf(c)}/day/${c.startTime.slice(0, 10).replaceAll("/", "-")}`;
  return table<T>(
    title,
    [
      ...more,
      {
        title: t("colWhen"),
        cell: (c) => link(day(c), `${c.startTime.slice(5)}–${c.endTime.slice(11)}`, { onclick: followed }),
      },
      { title: t("room"), cell: (c) => t("roomNo", { n: c.room }) },
      { title: t("colState"), cell: (c) => chip(t(`conflict_${c.type}` as TextKey) ?? c.statusDescription) },
      { title: t("colName"), cell: (c) => c.name || "–" },
      { title: t("mobile"), cell: (c) => phoneText(c.mobileNum) || "–" },
      { title: t("orderId"), cell: (c) => h("code", { class: "long" }, c.orderId || "–") },
    ],
    conflicts,
  );
}
