// The keypads at the doors of a branch: what they take, how often a static PIN was disclosed, and whether the agents know
// the current passes.

import { api } from "../core/api";
import { now } from "../core/clock";
import { type Child, each, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { computed, type Readable, signal } from "../core/signal";
import { doorName } from "./doors";
import { attempt, button, chip, dialog, field, input, section, table, toast } from "./parts";
import { type Branch, mayChange } from "./session";
import { ago, type TextKey, t } from "./text";

type Door = Schemas["Door"];
type Doors = Schemas["DoorOverview"];
type Agent = Schemas["PassAgent"];

/** Doors that share a line: each keypad with a static PIN has its own, all others of a kind are one. */
interface Line {
  keypad: Door["keypad"];
  doors: Door[];
}

/** What the address of a PIN names: all front doors have the same PIN. */
const pinDevice = (d: Door): string => (d.kind === "front" ? "front" : d.device);

function linesOf(doors: readonly Door[]): Line[] {
  const lines = new Map<string, Line>();
  for (const door of doors) {
    const key = door.keypad === "standalone" ? pinDevice(door) : door.keypad;
    const line = lines.get(key);
    if (line) line.doors.push(door);
    else lines.set(key, { keypad: door.keypad, doors: [door] });
  }
  return [...lines.values()];
}

const nameOf = (door: Door): string => doorName(pinDevice(door));
const namesOf = (line: Line): string => [...new Set(line.doors.map(nameOf))].join(", ");

export function keypadsPart(branch: Branch, data: Readable<Doors>, refresh: () => Promise<void>): Child {
  const lines = computed(() => linesOf(data().doors));
  return section(
    t("keypads"),
    h(
      "ul",
      { class: "keypads" },
      each(
        lines,
        (line) => (line.keypad === "standalone" ? pinDevice(line.doors[0]!) : line.keypad),
        (line) => row(branch, line, refresh),
      ),
    ),
    () => (lines().some((line) => line.keypad === "agent") ? passLists(data().passes) : null),
  );
}

function row(branch: Branch, line: Readable<Line>, refresh: () => Promise<void>): HTMLElement {
  const name = namesOf(line.peek());
  return h(
    "li",
    null,
    h("b", null, () => namesOf(line())),
    h("p", null, () => {
      const { keypad, doors } = line();
      return [t(`keypad_${keypad}`), keypad === "standalone" ? [" ", pinState(doors[0]!)] : null];
    }),
    line.peek().keypad === "standalone" && mayChange()
      ? button(t("pinRecord"), () => openPIN(branch, pinDevice(line.peek().doors[0]!), name, refresh), {
          label: `${name} ${t("pinRecord")}`,
        })
      : null,
  );
}

function pinState({ pin }: Door): Child {
  if (pin.kind === "none") return chip(t("pinMissing"), "warn");
  return [
    pin.revealsSinceChange > 0
      ? chip(t("pinReveals", { n: pin.revealsSinceChange }), "bad")
      : chip(t("pinKept"), "good"),
    pin.changedAt
      ? h("span", { class: "hint" }, ` ${t("pinChanged", { when: ago(now() - Date.parse(pin.changedAt)) })}`)
      : null,
  ];
}

/** Whether each agent has the current list of passes. */
const passLists = (agents: readonly Agent[]): Child =>
  table<Agent>(
    t("passLists"),
    [
      { title: t("passAgent"), kind: "brief", cell: (a) => h("code", null, a.username) },
      {
        title: t("passLists"),
        kind: "wide",
        cell: (a) => [
          a.appliedVersion === a.version ? chip(t("passCurrent"), "good") : chip(t("passBehind"), "warn"),
          " ",
          a.appliedVersion > 0
            ? t("passApplied", { n: a.appliedVersion, when: ago(now() - Date.parse(a.appliedAt!)) })
            : t("passNone"),
        ],
      },
      { title: t("passCodes"), cell: (a) => t((a.codes ? "passCodesYes" : "passCodesNo") as TextKey) },
    ],
    agents,
    t("passListsNone"),
  );

/** Records the PIN that staff have set at a keypad. device is front or room_<n>. */
export function openPIN(branch: Branch, device: string, name: string, refresh: () => Promise<void>): void {
  dialog(`${t("setPin")} · ${name}`, (close) => {
    const pin = signal("");
    const { run, view } = attempt();
    const save = () =>
      run(async () => {
        await api.put(`/v2/admin/branches/${branch.branch}/doors/${device}/pin`, { pin: pin.peek() });
        toast(t("saved"));
        await refresh();
        close();
      });
    return [
      field(
        t("keypadPin"),
        input(pin, { inputmode: "numeric", maxlength: 12, autocomplete: "off", autofocus: true }),
        t("keypadPinHint"),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary", disabled: () => !/^\d{4,12}$/.test(pin()) }),
      ),
    ];
  });
}
