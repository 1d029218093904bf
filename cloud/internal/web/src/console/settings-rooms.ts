// Rooms and their prices.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { type Readable, signal } from "../core/signal";
import { edited, keptAttempt } from "./draft";
import { openPIN } from "./keypads";
import { FieldError, priceIn, wholeIn } from "./numbers";
import { attempt, button, check, chip, dialog, explain, field, input, select, table, toast } from "./parts";
import { price } from "./rooms";
import { type Branch, mayChange } from "./session";
import type { Settings } from "./settings";
import { openPrices } from "./settings-prices";
import { openShowcase } from "./settings-showcase";
import { t } from "./text";

type Room = Schemas["RoomSettings"];

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
          { title: t("lock"), cell: (r) => lockChips(r) },
          {
            title: "",
            kind: "action",
            cell: (r) => (mayChange() ? actions(branch, r, refresh) : null),
          },
        ],
        data().rooms,
      ),
    mayChange() ? button(t("addRoom"), () => openRoom(branch, null, refresh)) : null,
  ];
}

/** Whether guests can open the room, and what is missing if they cannot. */
function lockChips(r: Room): Child {
  if (r.lock === "none") return chip(t("lockNone"));
  if (r.lock === "fitted" && r.hasPin) return chip(t("lockFitted"), "good");
  return [
    r.lock === "unproven" && !r.doorSeen ? [chip(t("lockNoDoor"), "bad"), " "] : null,
    r.hasPin ? null : chip(t("lockNoPin"), "bad"),
    r.lock === "unproven" && r.doorSeen && r.hasPin ? chip(t("lockReady"), "waiting") : null,
  ];
}

function actions(branch: Branch, r: Room, refresh: () => Promise<void>): Child {
  const name = t("roomNo", { n: r.roomNo });
  const act = (what: string, run: () => unknown) => button(what, run, { label: `${what} ${name}` });
  const flip = async () => {
    try {
      await api.patch(`/admin/machines/${branch.branch}/${r.roomNo}`, { enabled: true });
      toast(t("roomSwitchedOn", { n: r.roomNo }));
    } catch (error) {
      toast(explain(error), "bad");
    }
    await refresh();
  };
  return h(
    "div",
    { class: "row wrap" },
    act(t("edit"), () => openRoom(branch, r, refresh)),
    act(t("priceRules"), () => openPrices(branch, r.roomNo)),
    act(t("showcase"), () => openShowcase(branch, r.roomNo)),
    r.lock === "none"
      ? null
      : act(t("setPin"), () => openPIN(branch, `room_${r.roomNo}`, t("roomNo", { n: r.roomNo }), refresh)),
    r.enabled ? null : act(t("putOnSale"), flip),
    r.enabled ? null : act(t("delete"), () => openDelete(branch, r, refresh)),
  );
}

function openDelete(branch: Branch, room: Room, refresh: () => Promise<void>): void {
  dialog(`${t("delete")} · ${t("roomNo", { n: room.roomNo })}`, (close) => {
    const { run, view } = attempt();
    const remove = () =>
      run(async () => {
        await api.delete(`/v2/admin/branches/${branch.branch}/rooms/${room.roomNo}`);
        toast(t("deleted"));
        await refresh();
        close();
      });
    return [
      h("p", null, t("deleteRoomText")),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("delete"), remove, { kind: "danger" }),
      ),
    ];
  });
}

/** What the form of a room edits. */
const valuesOf = (room: Room | null) => ({
  machine: room?.machine ?? "",
  grade: room?.grade ?? "",
  min10: text(room?.pricing.min10),
  min30: text(room?.pricing.min30),
  min60: text(room?.pricing.min60),
  turnoverMinutes: String(room?.turnoverMinutes ?? 10),
  noLock: room?.lock === "none",
});

type Values = ReturnType<typeof valuesOf>;

/** Rejects a save over fields that another administrator has changed since the form was opened. */
async function unchanged(branch: Branch, read: Room, fields: (keyof Values)[], refresh: () => Promise<void>) {
  const { rooms } = await api.get<Settings>(`/v2/admin/branches/${branch.branch}/settings`);
  const now = rooms.find((r) => r.roomNo === read.roomNo);
  if (!now || fields.every((f) => valuesOf(now)[f] === valuesOf(read)[f])) return;
  await refresh();
  throw new FieldError(t("roomNewer"));
}

function openRoom(branch: Branch, room: Room | null, refresh: () => Promise<void>): void {
  dialog(room ? t("roomNo", { n: room.roomNo }) : t("addRoom"), (close) => {
    const number = signal(room?.roomNo ?? "");
    const read = valuesOf(room);
    const machine = signal(read.machine);
    const grade = signal(read.grade);
    const prices = { min10: signal(read.min10), min30: signal(read.min30), min60: signal(read.min60) };
    const turnover = signal(read.turnoverMinutes);
    const noLock = signal(read.noLock);
    const { run, view } = keptAttempt(`room-${branch.branch}-${room?.roomNo ?? "new"}`, {
      number,
      machine: edited(machine),
      grade: edited(grade),
      min10: edited(prices.min10),
      min30: edited(prices.min30),
      min60: edited(prices.min60),
      turnover: edited(turnover),
    });
    const save = () =>
      run(async () => {
        const shown: Values = {
          machine: machine.peek(),
          grade: grade.peek(),
          min10: prices.min10.peek(),
          min30: prices.min30.peek(),
          min60: prices.min60.peek(),
          turnoverMinutes: turnover.peek(),
          noLock: noLock.peek(),
        };
        const all: Schemas["RoomRequest"] = {
          machine: shown.machine.trim(),
          grade: shown.grade || null,
          min10: priceIn(t("min10"), shown.min10),
          min30: priceIn(t("min30"), shown.min30),
          min60: priceIn(t("min60"), shown.min60),
          turnoverMinutes: wholeIn(t("turnover"), shown.turnoverMinutes),
          noLock: shown.noLock,
        };
        // Fields that are not edited are not sent: another administrator may have changed them since.
        const changed = (Object.keys(shown) as (keyof Values)[]).filter((f) => !room || shown[f] !== read[f]);
        if (room) await unchanged(branch, room, changed, refresh);
        await api.put(`/v2/admin/branches/${branch.branch}/rooms/${number.peek().trim()}`, {
          ...Object.fromEntries(changed.map((f) => [f, all[f]])),
          create: !room,
        });
        toast(t(room ? "saved" : "roomAdded"));
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
        field(t("turnover"), input(turnover, { inputmode: "numeric", maxlength: 2 }), t("turnoverHint")),
        check(t("noLock"), noLock),
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
