// Opening a branch: what is left to do until guests can reserve, each step with its action. The steps are read from the state of
// the branch, so the screen can be left and continued at any time, on a phone in front of the doors too.

import { dateOf, inZone } from "../booking/time";
import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { go } from "../core/router";
import { computed, signal } from "../core/signal";
import { openDoor } from "./door";
import { doorName } from "./doors";
import { keptAttempt } from "./draft";
import { openEnroll } from "./enroll";
import { openPIN } from "./keypads";
import { gather, watch } from "./live";
import { openPaste } from "./opening-rooms";
import { button, chip, dialog, explain, fetched, field, heading, input, select, table, toast } from "./parts";
import { type Branch, branches, branchName, identify, mayBook, mayChange } from "./session";
import type { Settings } from "./settings";
import { type TextKey, t } from "./text";

type Doors = Schemas["DoorOverview"];

interface State {
  settings: Settings;
  doors: Doors;
}

/** A door that guests need. */
interface Needed {
  device: string;
  roomNo: string | null;
  seen: boolean;
  pin: boolean;
  opened: boolean;
}

export function openingScreen(branch: Branch): Child {
  const path = `/v2/admin/branches/${branch.branch}`;
  const source = resource<State>(async () => {
    const [settings, doors] = await Promise.all([
      api.get<Settings>(`${path}/settings`),
      api.get<Doors>(`${path}/doors`),
    ]);
    return { settings, doors };
  });
  const refresh = gather(source.refresh);
  watch(branch.branch, dateOf(inZone(branch.timeZone)), (event) => {
    if (!event || event.kind === "agent" || event.kind === "door" || event.kind === "slot") refresh();
  });
  return [
    heading(t("openingTitle")),
    h("p", { class: "lead" }, t("openingLead")),
    fetched(source, (data) => {
      const rooms = computed(() => data().settings.rooms);
      const doors = computed(() => neededDoors(data()));
      const ready = computed(() => doors().every((d) => d.seen && d.pin));
      const onSale = computed(() => rooms().filter((r) => r.enabled).length);
      const settings = h("a", { class: "button soft", href: `/console/${branch.branch}/settings` }, t("navSettings"));
      return h(
        "ol",
        { class: "opening" },
        step("facts", () => Boolean(data().settings.address && data().settings.phone), settings),
        step(
          "rooms",
          () => rooms().length > 0,
          () => t("openingRooms", { n: rooms().length }),
          mayChange() ? button(t("pasteRooms"), () => openPaste(branch, source.refresh)) : null,
        ),
        step(
          "agent",
          () => data().doors.online,
          () => (data().doors.online ? chip(t("online"), "good") : chip(t("offline"), "bad")),
          mayChange() ? button(t("enroll"), () => openEnroll(branch)) : null,
        ),
        step(
          "doors",
          () => ready() && doors().some((d) => d.roomNo) && doors().every((d) => d.opened),
          () => doorTable(branch, doors(), source.refresh),
        ),
        step(
          "sale",
          () => onSale() > 0,
          () => t("openingSale", { n: onSale(), of: rooms().length }),
          mayChange()
            ? button(t("sellAll"), () => sellAll(branch, data().settings, source.refresh), {
                kind: "primary",
                disabled: () => rooms().length === 0 || onSale() === rooms().length,
              })
            : null,
        ),
      );
    }),
  ];
}

/** A step with its state in words, not only in colour. */
function step(name: string, done: () => boolean, ...content: Child[]): HTMLElement {
  return h(
    "li",
    { class: () => `card ${done() ? "done" : ""}` },
    h("div", { class: "row" }, h("h2", null, t(`opening_${name}` as TextKey)), () =>
      done() ? chip(t("openingDone"), "good") : chip(t("openingOpen"), "waiting"),
    ),
    h("p", { class: "hint" }, t(`opening_${name}_text` as TextKey)),
    h("div", { class: "content" }, content),
  );
}

/** The front doors, and the doors of the rooms that have a lock. */
function neededDoors({ settings, doors }: State): Needed[] {
  const opened = new Set(doors.events.filter((e) => e.kind === "SUCCESS").map((e) => e.device));
  const front = doors.doors
    .filter((d) => d.kind === "front")
    .map((d) => ({
      device: d.device,
      roomNo: null,
      seen: d.fitted,
      pin: d.pin.kind !== "none",
      opened: opened.has(d.device) || opened.has("front"), // a press opens all front doors
    }));
  const rooms = settings.rooms
    .filter((r) => r.lock !== "none")
    .map((r) => ({
      device: `room_${r.roomNo}`,
      roomNo: r.roomNo as string | null,
      seen: r.doorSeen,
      pin: r.hasPin,
      opened: opened.has(`room_${r.roomNo}`),
    }));
  return [...front, ...rooms];
}

function doorTable(branch: Branch, doors: Needed[], refresh: () => Promise<void>): Child {
  return table<Needed>(
    t("opening_doors"),
    [
      { title: t("colDoor"), cell: (d) => doorName(d.device) },
      {
        title: t("colState"),
        kind: "wide",
        cell: (d) => [
          d.seen ? chip(t("openingSeen"), "good") : chip(t("lockNoDoor"), "bad"),
          " ",
          d.pin ? chip(t("openingPin"), "good") : chip(t("lockNoPin"), "bad"),
          " ",
          d.opened ? chip(t("openingOpened"), "good") : null,
        ],
      },
      {
        title: "",
        kind: "action",
        cell: (d) =>
          h(
            "div",
            { class: "row" },
            mayChange()
              ? button(t("setPin"), () => openPIN(branch, d.roomNo ? d.device : "front", doorName(d.device), refresh), {
                  label: `${doorName(d.device)} ${t("setPin")}`,
                })
              : null,
            d.seen && mayBook()
              ? button(t("openDo"), () => openDoor(branch, d.roomNo ? "room" : "front", d.roomNo ?? undefined), {
                  label: `${doorName(d.device)} ${t("openDo")}`,
                })
              : null,
          ),
      },
    ],
    doors,
  );
}

/** Puts every room on sale whose door is proven. The service decides which those are; the first refusal is shown. */
async function sellAll(branch: Branch, { rooms }: Settings, refresh: () => Promise<void>): Promise<void> {
  let refusal: unknown;
  for (const room of rooms.filter((r) => !r.enabled)) {
    try {
      await api.patch(`/admin/machines/${branch.branch}/${room.roomNo}`, { enabled: true });
    } catch (error) {
      refusal ??= error;
    }
  }
  if (refusal) toast(explain(refusal), "bad");
  else toast(t("openingOnSale"));
  await refresh();
}

/** Asks for the facts of a new branch and leads to its opening. */
export function openNewBranch(): void {
  dialog(t("newBranch"), (close) => {
    const [code, nameKo, nameEn, address, phone, copyFrom] = [
      signal(""),
      signal(""),
      signal(""),
      signal(""),
      signal(""),
      signal(""),
    ];
    const { run, view } = keptAttempt("new-branch", { code, nameKo, nameEn, address, phone, copyFrom });
    const add = () =>
      run(async () => {
        const { branch } = await api.post<{ branch: string }>("/v2/admin/branches", {
          branch: code.peek().trim(),
          nameKo: nameKo.peek().trim(),
          nameEn: nameEn.peek().trim(),
          address: address.peek().trim(),
          phone: phone.peek().trim(),
          ...(copyFrom.peek() ? { copyFrom: copyFrom.peek() } : {}),
        });
        await identify();
        close();
        go(`/console/${branch}/opening`);
      });
    return [
      h(
        "div",
        { class: "form" },
        field(t("branchCode"), input(code, { maxlength: 40, autofocus: true }), t("branchCodeHint")),
        field(t("nameKo"), input(nameKo, { maxlength: 100 })),
        field(t("nameEn"), input(nameEn, { maxlength: 100 })),
        field(t("branchAddress"), input(address, { maxlength: 200 })),
        field(t("phone"), input(phone, { maxlength: 30, type: "tel" })),
        field(
          t("copyFrom"),
          select(copyFrom, () => [
            { value: "", text: t("copyNothing") },
            ...branches().map((b) => ({ value: b.branch, text: branchName(b) })),
          ]),
          t("copyFromHint"),
        ),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("newBranchDo"), add, {
          kind: "primary",
          disabled: () => !/^[a-z0-9][a-z0-9-]*$/.test(code().trim()) || !nameKo().trim() || !nameEn().trim(),
        }),
      ),
    ];
  });
}
