// Rooms on and off. What stands in the way of switching one off is told one by one.

import { dateOf, inZone } from "../booking/time";
import { ApiError, api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { fetchDay, type Room } from "./day/model";
import { gather, watch } from "./live";
import { button, chip, dialog, explain, fetched, heading, table, toast, toggle } from "./parts";
import { type Branch, mayChange } from "./session";
import { phoneText, type TextKey, t, won } from "./text";

type Conflict = Schemas["Conflict"];

export function roomsScreen(branch: Branch): Child {
  const today = dateOf(inZone(branch.timeZone));
  const source = resource(() => fetchDay(branch.branch, today));
  const refresh = gather(source.refresh);
  watch(branch.branch, today, (event) => {
    if (!event || event.kind === "slot") refresh();
  });
  const flip = async (room: Room, enabled: boolean) => {
    try {
      await api.patch(`/admin/machines/${branch.branch}/${room.roomNo}`, { enabled });
      toast(t(enabled ? "roomSwitchedOn" : "roomSwitchedOff", { n: room.roomNo }));
    } catch (error) {
      if (error instanceof ApiError && error.type === "SettingConflictException")
        openConflicts(branch, room, (error.data as { conflicts: Conflict[] }).conflicts, () => flip(room, enabled));
      else toast(explain(error), "bad");
    }
    await source.refresh();
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
              cell: (r) => t("countReservations", { n: data().blocks.filter((b) => b.room === r.roomNo).length }),
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

export function price({ pricing }: Room): string {
  const parts = (
    [
      ["min10", pricing.min10],
      ["min30", pricing.min30],
      ["min60", pricing.min60],
    ] as const
  ).filter(([, v]) => v !== null);
  return parts.map(([k, v]) => `${t(k)} ${won(v!)}`).join(" · ") || t("noPrice");
}

function openConflicts(branch: Branch, room: Room, conflicts: Conflict[], again: () => Promise<unknown>): void {
  dialog(t("conflictTitle", { n: room.roomNo }), (close) => [
    h("p", null, t("conflictText", { n: conflicts.length })),
    table<Conflict>(
      t("conflictTitle", { n: room.roomNo }),
      [
        {
          title: t("colWhen"),
          cell: (c) =>
            h("a", { href: day(branch, c), onclick: close }, `${c.startTime.slice(5)}–${c.endTime.slice(11)}`),
        },
        { title: t("colState"), cell: (c) => chip(t(`conflict_${c.type}` as TextKey) ?? c.statusDescription) },
        { title: t("colName"), cell: (c) => c.name || "–" },
        { title: t("mobile"), cell: (c) => phoneText(c.mobileNum) || "–" },
        { title: t("orderId"), cell: (c) => h("code", null, c.orderId || "–") },
      ],
      conflicts,
    ),
    h(
      "div",
      { class: "footer" },
      button(t("close"), close, { kind: "plain" }),
      button(
        t("conflictAgain"),
        () => {
          close();
          again();
        },
        { kind: "primary" },
      ),
    ),
  ]);
}

const day = (branch: Branch, c: Conflict) =>
  `/console/${branch.branch}/day/${c.startTime.slice(0, 10).replaceAll("/", "-")}`;
