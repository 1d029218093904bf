// The doors of a branch: opens them and shows their events.

import { clockOf, dateOf, inZone, type Minute } from "../booking/time";
import { api } from "../core/api";
import { now, ticking, whileSeen } from "../core/clock";
import { type Child, each, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { computed, type Readable } from "../core/signal";
import { who } from "./day/history";
import { type Block, fetchDay, isReservation } from "./day/model";
import { openDoor } from "./door";
import { keypadsPart } from "./keypads";
import { link, linkButton } from "./link";
import { gather, watch } from "./live";
import { button, chip, fetched, heading, section, table } from "./parts";
import { type Branch, mayBook } from "./session";
import { ago, dateText, type TextKey, t } from "./text";
import { todayOf } from "./today";

type Door = Schemas["Door"];
type DoorEvent = Schemas["DoorEvent"];
type Doors = Schemas["DoorOverview"];

/** The interval at which the lists of passes are read, whose acknowledgement is no live event. */
const passInterval = 15_000; // ms

export function doorsScreen(branch: Branch): Child {
  const today = todayOf(branch);
  const source = resource(() => api.get<Doors>(`/v2/admin/branches/${branch.branch}/doors`));
  const stays = resource(() => fetchDay(branch.branch, today));
  const refresh = gather(source.refresh);
  const refreshStays = gather(stays.refresh);
  watch(branch.branch, today, (event) => {
    if (!event || event.kind === "door" || event.kind === "agent") refresh();
    if (!event || event.kind === "slot" || event.kind === "payment") refreshStays();
  });
  whileSeen(passInterval, refresh);
  return [
    heading(t("navDoors"), linkButton(`/console/levels?branch=${branch.branch}`, t("navLevels"))),
    fetched(source, (data) => [
      when(
        () => !data().online,
        () =>
          h(
            "p",
            { class: "notice" },
            data.peek().seenAt
              ? t("agentOfflineSince", { when: ago(now() - Date.parse(data.peek().seenAt!)) })
              : t("agentNever"),
          ),
      ),
      tiles(branch, data, () => stays.data()?.blocks ?? []),
      keypadsPart(branch, data, source.refresh),
      section(t("doorEvents"), () => events(branch, data().events)),
    ]),
  ];
}

/** The tiles are updated in place, so that a focused button stays focused while the branch is busy. */
function tiles(branch: Branch, data: Readable<Doors>, stays: () => Block[]): HTMLElement {
  const second = ticking();
  const minute = computed(() => inZone(branch.timeZone, second()));
  const front = computed(() => data().doors.filter((d) => d.kind === "front"));
  const rooms = computed(() => data().doors.filter((d) => d.kind === "room"));
  return h(
    "div",
    { class: "doors" },
    h(
      "article",
      { class: "door front" },
      h("h2", null, t("frontDoor")),
      h("p", null, () => [
        front().length > 1 ? t("frontDoors", { n: front().length }) : "",
        leaf(front().map((d) => d.leaf)),
      ]),
      mayBook()
        ? button(t("openDo"), () => openDoor(branch, "front"), {
            kind: "primary",
            label: `${t("frontDoor")} ${t("openDo")}`,
          })
        : null,
    ),
    each(
      rooms,
      (d) => d.device,
      (d) => room(branch, d, data, () => occupants(stays(), d().roomNo!, minute())),
    ),
  );
}

/** The guest whose stay it is now, and the next one today. */
function occupants(stays: Block[], room: string, minute: Minute): Child {
  const own = stays
    .filter((b) => b.room === room && b.end > minute && isReservation(b))
    .sort((a, b) => a.start - b.start);
  const now = own.find((b) => b.start <= minute);
  const next = own.find((b) => b.start > minute);
  return [
    now ? h("span", { class: "occupant" }, t("doorNow", { name: now.name || "–", until: clockOf(now.end) })) : null,
    next
      ? h("span", { class: "occupant" }, t("doorNext", { name: next.name || "–", from: clockOf(next.start) }))
      : null,
  ];
}

function room(branch: Branch, door: Readable<Door>, data: Readable<Doors>, stays: () => Child): HTMLElement {
  const number = door.peek().roomNo!;
  const last = computed(() => data().events.find((e) => e.device === door().device && e.kind in outcomes));
  return h(
    "article",
    { class: () => `door ${last() && bad.has(last()!.kind) ? "failed" : ""}` },
    h("h2", null, t("roomNo", { n: number })),
    h("p", null, () => [
      !door().fitted ? chip(t("noLockHere"), "bad") : leaf([door().leaf]),
      last() && bad.has(last()!.kind) ? [" ", chip(t(`doorEvent_${last()!.kind}` as TextKey), "bad")] : null,
    ]),
    stays,
    mayBook()
      ? button(t("openDo"), () => openDoor(branch, "room", number), {
          label: `${t("roomNo", { n: number })} ${t("openDo")}`,
          disabled: () => data().online && !door().fitted,
        })
      : null,
  );
}

/** The events that are the outcome of a request. */
const outcomes = { SUCCESS: true, FAILED: true, UNKNOWN: true };

function leaf(leaves: Door["leaf"][]): Child {
  if (leaves.includes("open")) return chip(t("leafOpen"), "warn");
  if (leaves.includes("closed")) return chip(t("leafClosed"));
  return h("span", { class: "hint" }, t("leafUnknown"));
}

const good = new Set(["SUCCESS", "pass-opened"]);
const warn = new Set(["forced", "pass-refused"]);
const bad = new Set(["FAILED", "UNKNOWN", "pass-failed", "pass-unknown", "held", "relay-error", "was-energized"]);

function events(branch: Branch, list: DoorEvent[]): Child {
  return table<DoorEvent>(
    t("doorEvents"),
    [
      { title: t("colWhen"), kind: "brief", cell: (e) => wall(branch, e.at) },
      { title: t("colDoor"), cell: (e) => doorName(e.device) },
      {
        title: t("colWhat"),
        cell: (e) => [
          chip(
            t(`doorEvent_${e.kind}` as TextKey) ?? e.kind,
            bad.has(e.kind) ? "bad" : good.has(e.kind) ? "good" : warn.has(e.kind) ? "warn" : "",
          ),
          e.source === "pin" || e.source === "code" ? h("small", null, ` ${t(`doorSource_${e.source}`)}`) : null,
        ],
      },
      {
        title: t("colWho"),
        cell: (e) =>
          e.reservationId
            ? link(`/console/${branch.branch}/day?r=${e.reservationId}`, t("guestOf", { id: e.reservationId }))
            : e.by
              ? who(e.by)
              : "–",
      },
      {
        title: t("colLatency"),
        kind: "number",
        cell: (e) => (e.latencyMs === null ? "" : `${(e.latencyMs / 1000).toFixed(2)} s`),
      },
      { title: t("colDetail"), cell: (e) => e.detail ?? "" },
    ],
    list,
    t("doorEventsNone"),
  );
}

export function doorName(device: string): string {
  const room = /^room_(.+)$/.exec(device);
  if (room) return t("roomNo", { n: room[1]! });
  const front = /^front(?:_(\d+))?$/.exec(device);
  return front ? `${t("frontDoor")}${front[1] ? ` ${front[1]}` : ""}` : device;
}

/** An instant in the branch's time zone, to the second. */
export function wall(branch: Branch, at: string): string {
  const minute = inZone(branch.timeZone, Date.parse(at));
  const today = dateOf(minute) === dateOf(inZone(branch.timeZone));
  return `${today ? "" : `${dateText(minute)} `}${clockOf(minute)}:${new Date(Date.parse(at)).toISOString().slice(17, 19)}`;
}
