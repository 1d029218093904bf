// Rooms and their prices.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import { type Readable, signal } from "../core/signal";
import type { Room } from "./day/model";
import { attempt, button, dialog, field, input, select, table, toast } from "./parts";
import { price } from "./rooms";
import { type Branch, mayChange } from "./session";
import type { Settings } from "./settings";
import { t } from "./text";

const grades = ["", "Stella", "Crystal", "Superb", "Premium", "Gold", "Standard", "Normal"];

export function roomsPart(branch: Branch, data: Readable<Settings>, refresh: () => Promise<void>): Child {
  return [
    () =>
      table<Room>(
        t("settingsRooms"),
        [
          { title: t("room"), cell: (r) => t("roomNo", { n: r.roomNo }) },
          { title: t("machine"), kind: "wide", cell: (r) => r.machine },
          { title: t("grade"), cell: (r) => r.grade ?? "–" },
          { title: t("price"), cell: (r) => price(r) },
          {
            title: "",
            kind: "action",
            cell: (r) =>
              mayChange()
                ? button(t("edit"), () => openRoom(branch, r, refresh), {
                    label: `${t("edit")} ${t("roomNo", { n: r.roomNo })}`,
                  })
                : null,
          },
        ],
        data().rooms,
      ),
    mayChange() ? button(t("addRoom"), () => openRoom(branch, null, refresh)) : null,
  ];
}

function openRoom(branch: Branch, room: Room | null, refresh: () => Promise<void>): void {
  dialog(room ? t("roomNo", { n: room.roomNo }) : t("addRoom"), (close) => {
    const number = signal(room?.roomNo ?? "");
    const machine = signal(room?.machine ?? "");
    const grade = signal(room?.grade ?? "");
    const prices = {
      min10: signal(text(room?.pricing.min10)),
      min30: signal(text(room?.pricing.min30)),
      min60: signal(text(room?.pricing.min60)),
    };
    const { run, view } = attempt();
    const save = () =>
      run(async () => {
        await api.put(`/v2/admin/branches/${branch.branch}/rooms/${number.peek().trim()}`, {
          machine: machine.peek().trim(),
          grade: grade.peek() || null,
          min10: won(prices.min10.peek()),
          min30: won(prices.min30.peek()),
          min60: won(prices.min60.peek()),
        });
        toast(t("saved"));
        await refresh();
        close();
      });
    return [
      h(
        "div",
        { class: "form" },
        room ? null : field(t("roomNumber"), input(number, { inputmode: "numeric", maxlength: 4, autofocus: true })),
        field(t("machine"), input(machine, { maxlength: 100 })),
        field(
          t("grade"),
          select(grade, () => grades.map((g) => ({ value: g, text: g || "–" }))),
        ),
        field(t("min10"), input(prices.min10, { inputmode: "numeric" }), t("priceHint")),
        field(t("min30"), input(prices.min30, { inputmode: "numeric" })),
        field(t("min60"), input(prices.min60, { inputmode: "numeric" })),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary", disabled: () => !/^\d{1,4}$/.test(number().trim()) }),
      ),
    ];
  });
}

const text = (amount: number | null | undefined): string => (amount ? String(amount) : "");
const won = (text: string): number | null => (text.trim() ? Number(text.replace(/[,\s원]/g, "")) : null);
