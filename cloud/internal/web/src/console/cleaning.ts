// The rooms to clean: the page of cleaners, for a phone.

import { api } from "../core/api";
import { now, ticking, whileSeen } from "../core/clock";
import { type Child, each, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { computed, type Readable, signal } from "../core/signal";
import { branchTitle } from "./alerts";
import { attempt, button, fetched, heading, toast } from "./parts";
import { branches } from "./session";
import { ago, localText, t } from "./text";
import { uploadOf } from "./upload";

type Room = Schemas["RoomToClean"];

/** The interval of updates in ms. */
const interval = 20_000;

export function cleaningScreen(): Child {
  const source = resource(() => api.get<{ rooms: Room[] }>("/v2/admin/cleaning"));
  whileSeen(interval, () => void source.refresh());
  return [
    heading(t("navCleaning")),
    h("p", { class: "lead" }, t("cleaningLead")),
    fetched(source, (data) => {
      const rooms = computed(() => data().rooms);
      return when(
        () => rooms().length > 0,
        () =>
          h(
            "ul",
            { class: "alerts", "aria-label": t("navCleaning") },
            each(
              rooms,
              (r) => `${r.branch} ${r.roomNo} ${r.endedAt}`,
              (r) => task(r, () => void source.refresh()),
            ),
          ),
        () => h("p", { class: "nothing" }, t("cleaningNone")),
      );
    }),
  ];
}

/** A room with its actions. A photo that was chosen stays while the next arrival changes. */
function task(latest: Readable<Room>, changed: () => void): HTMLElement {
  const room = latest.peek();
  const { run, view } = attempt();
  const name = t("roomNo", { n: room.roomNo });
  const path = `/v2/admin/cleaning/${room.branch}/${room.roomNo}`;
  const open = (door: "front" | "room") =>
    run(async () => {
      const { opened } = await api.post<{ opened: boolean }>(`${path}/unlock`, { door });
      toast(t(opened ? "cleaningOpened" : "cleaningFailed"), opened ? "good" : "bad");
    });
  const photo = signal<File | null>(null);
  const done = async () => {
    const file = photo.peek();
    const ended = () =>
      file ? uploadOf(file, longestSide).then((data) => api.post(`${path}/done`, { data })) : api.post(`${path}/done`);
    if (await run(ended)) changed();
  };
  const time = ticking();
  return h(
    "li",
    { class: "alert" },
    h(
      "p",
      { class: "what" },
      h("b", null, branches().length > 1 ? `${branchTitle(room.branch)} ${name}` : name),
      " ",
      room.machine,
    ),
    h(
      "p",
      { class: "since" },
      () => t("cleaningSince", { when: ago(Math.max(time(), now()) - Date.parse(room.endedAt)) }),
      () => {
        const { branch, nextArrival } = latest();
        return nextArrival ? ` · ${t("nextGuest", { when: localText(nextArrival, branch) })}` : null;
      },
    ),
    h(
      "p",
      { class: "row" },
      button(t("frontDoor"), () => open("front"), { label: `${t("frontDoor")} ${t("openDo")}` }),
      button(t("openRoomDoor"), () => open("room"), { label: `${name} ${t("openDo")}` }),
      button(t("cleaningDone"), done, { kind: "primary", label: `${name} ${t("cleaningDone")}` }),
    ),
    h(
      "p",
      { class: "row" },
      h(
        "label",
        { class: "button soft file" },
        h("input", {
          type: "file",
          class: "hidden",
          accept: "image/*",
          capture: "environment",
          "aria-label": `${name} ${t("cleaningPhoto")}`,
          onchange: (e: Event) => photo.set((e.target as HTMLInputElement).files?.[0] ?? null),
        }),
        () => t(photo() ? "cleaningPhotoTaken" : "cleaningPhoto"),
      ),
    ),
    view(),
  );
}

/** The longer side of an uploaded photo in pixels: enough to see whether a room is clean, also on a poor network. */
const longestSide = 1280;
