// The climate policy of the rooms: when the air conditioner of a room is switched for its stays, and what guests may choose.

import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { computed, effect, type Signal, signal } from "../core/signal";
import { tabStore } from "../core/storage";
import { type Edits, keptEdits, newerNotice, restoredNotice } from "./draft";
import { priceIn } from "./numbers";
import {
  attempt,
  button,
  type Choice,
  chip,
  dialog,
  fetched,
  field,
  input,
  section,
  select,
  table,
  toast,
} from "./parts";
import { type Branch, mayChange } from "./session";
import { t, won } from "./text";

type State = Schemas["ClimatePolicyState"];
type Policy = State["rooms"][number];

const path = (branch: Branch): string => `/v2/admin/branches/${branch.branch}/climate-policy`;

/** Lists all rooms with their policies. saved is called after a change. */
export function policyPart(branch: Branch, saved: () => Promise<void>): Child {
  const source = resource(() => api.get<State>(path(branch)));
  const refresh = async () => {
    await Promise.all([source.refresh(), saved()]);
  };
  return section(
    t("climatePolicy"),
    h("p", { class: "hint" }, t("climatePolicyHint")),
    fetched(source, (data) => () => rooms(branch, data(), refresh)),
  );
}

interface Line {
  room: string;
  policy: Policy | undefined;
}

function rooms(branch: Branch, state: State, refresh: () => Promise<void>): Child {
  if (state.options.length === 0) return h("p", { class: "nothing" }, t("noAirconditioner"));
  const lines = state.roomNumbers.map((room) => ({ room, policy: policyOf(state, room) }));
  const shown = (view: (p: Policy) => Child) => (line: Line) => (line.policy ? view(line.policy) : "–");
  return table<Line>(
    t("climatePolicy"),
    [
      { title: t("roomColumn"), kind: "brief", cell: (l) => t("roomNo", { n: l.room }) },
      { title: t("unit"), cell: shown((p) => p.unit) },
      {
        title: t("arriveOption"),
        cell: shown((p) => [text(state, p.arriveOption), h("br"), minutes("leadShort", p.leadMinutes)]),
      },
      {
        title: t("leaveOption"),
        cell: shown((p) => [text(state, p.leaveOption), h("br"), minutes("lagShort", p.lagMinutes)]),
      },
      { title: t("band"), kind: "brief", cell: shown((p) => `${p.low}–${p.high} °C`) },
      { title: t("guestOptions"), cell: shown((p) => p.guestOptions?.map((o) => text(state, o)).join(", ") || "–") },
      { title: t("sensor"), cell: shown((p) => p.sensor ?? chip(t("noSensor"), "hold")) },
      { title: t("hourlyCost"), kind: "number", cell: shown((p) => (p.hourlyCost == null ? "–" : won(p.hourlyCost))) },
      {
        title: "",
        kind: "action",
        cell: (l) =>
          mayChange()
            ? button(t("edit"), () => open(branch, state, l.room, refresh), {
                label: `${t("edit")} ${t("roomNo", { n: l.room })}`,
              })
            : null,
      },
    ],
    lines,
  );
}

const minutes = (key: "leadShort" | "lagShort", n: number): HTMLElement => h("small", null, t(key, { n }));

const policyOf = (state: State, room: string): Policy | undefined => state.rooms.find((p) => p.room === room);

/** The name of an option. An agent may have announced others since it was chosen. */
const text = (state: State, id: string): string =>
  state.options.find((o) => o.id === id)?.path.join(" · ") ?? t("optionGone");

/** What the form holds: texts, so that a half-typed number survives. */
interface Draft {
  unit: string;
  arriveOption: string;
  leaveOption: string;
  leadMinutes: string;
  lagMinutes: string;
  low: string;
  high: string;
  guest1: string;
  guest2: string;
  guest3: string;
  hourlyCost: string;
}

const draftOf = (p: Policy | undefined, state: State): Draft => {
  const units = unitsOf(state);
  const [guest1 = "", guest2 = "", guest3 = ""] = p?.guestOptions ?? [];
  return {
    unit: p?.unit ?? (units.length === 1 ? units[0]! : ""),
    arriveOption: p?.arriveOption ?? "",
    leaveOption: p?.leaveOption ?? "",
    leadMinutes: String(p?.leadMinutes ?? 15),
    lagMinutes: String(p?.lagMinutes ?? 0),
    low: String(p?.low ?? 22),
    high: String(p?.high ?? 26),
    guest1,
    guest2,
    guest3,
    hourlyCost: p?.hourlyCost == null ? "" : String(p.hourlyCost),
  };
};

/** A number, or null if there is none. The service reports what is missing or out of range. */
const number = (typed: string): number | null => {
  const n = Number(typed.replace(",", "."));
  return typed.trim() === "" || Number.isNaN(n) ? null : n;
};

const bodyOf = (room: string, d: Draft) => ({
  room,
  unit: d.unit || null,
  arriveOption: d.arriveOption || null,
  leaveOption: d.leaveOption || null,
  leadMinutes: number(d.leadMinutes),
  lagMinutes: number(d.lagMinutes),
  low: number(d.low),
  high: number(d.high),
  guestOptions: [...new Set([d.guest1, d.guest2, d.guest3].filter(Boolean))],
  hourlyCost: priceIn(t("hourlyCost"), d.hourlyCost),
});

const unitsOf = (state: State): string[] => [...new Set(state.options.map((o) => o.unit))];

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Edits the policy of a room. The text survives a closed dialog and a reload until it is saved or discarded. */
function open(branch: Branch, state: State, room: string, refresh: () => Promise<void>): void {
  const key = `console-draft-climate-${branch.branch}-${room}`;
  dialog(`${t("climatePolicy")} · ${t("roomNo", { n: room })}`, (close) => {
    const loaded = policyOf(state, room);
    const kept = keptEdits<Policy | undefined, Draft>(key);
    let base = kept ? kept.base : loaded;
    const shown = signal<{ draft: Draft; restored: boolean }>({
      draft: kept?.values ?? draftOf(base, state),
      restored: Boolean(kept),
    });
    let edited = shown.peek().draft;
    const newer = signal(same(loaded, base) ? null : state); // another administrator has changed this room
    const { run, view } = attempt();
    const start = (from: State) => {
      base = policyOf(from, room);
      newer.set(null);
      tabStore.remove(key);
      shown.set({ draft: draftOf(base, from), restored: false });
    };
    const keep = (typed: Draft) => {
      edited = typed;
      if (same(typed, draftOf(base, state))) tabStore.remove(key);
      else tabStore.set(key, JSON.stringify({ base, values: typed } satisfies Edits<Policy | undefined, Draft>));
    };
    /** Replaces the policy of this room in the list as it is now. */
    const put = (body: () => ReturnType<typeof bodyOf> | null) =>
      run(async () => {
        const own = body();
        const now = await api.get<State>(path(branch));
        if (!same(policyOf(now, room), base)) {
          newer.set(now);
          return;
        }
        const others = now.rooms.filter((p) => p.room !== room);
        await api.put(path(branch), { rooms: own ? [...others, own] : others });
        tabStore.remove(key);
        toast(t("saved"));
        close();
        await refresh();
      });
    return [
      newerNotice(newer, start, (other) => {
        base = policyOf(other, room);
        newer.set(null);
        keep(edited);
      }),
      match(shown, ({ draft, restored }) => [
        restored ? restoredNotice(() => start(state)) : null,
        form(state, draft, keep),
      ]),
      view(),
      h(
        "div",
        { class: "footer" },
        loaded ? button(t("climatePolicyOff"), () => put(() => null), { kind: "danger" }) : null,
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), () => put(() => bodyOf(room, edited)), { kind: "primary" }),
      ),
    ];
  });
}

function form(state: State, draft: Draft, keep: (draft: Draft) => void): HTMLElement {
  const values = Object.fromEntries(Object.entries(draft).map(([name, value]) => [name, signal(value)])) as {
    [name in keyof Draft]: Signal<string>;
  };
  effect(() =>
    keep(Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value()])) as unknown as Draft),
  );
  const offered = computed(() => state.options.filter((o) => o.unit === values.unit()));
  const options = (name: keyof Draft, empty: string): (() => Choice[]) => {
    const first = draft[name];
    return () => [
      { value: "", text: empty },
      ...offered().map((o) => ({ value: o.id, text: o.path.join(" · ") })),
      ...(first && !state.options.some((o) => o.id === first) ? [{ value: first, text: t("optionGone") }] : []),
    ];
  };
  const option = (name: keyof Draft, label: string, empty: string) =>
    field(label, select(values[name], options(name, empty)));
  const numeric = (name: keyof Draft, label: string, hint?: string) =>
    field(label, input(values[name], { inputmode: "decimal", maxlength: 6 }), hint);
  const unit = select(values.unit, () => [
    { value: "", text: t("choose") },
    ...unitsOf(state).map((u) => ({ value: u, text: u })),
  ]);
  unit.addEventListener("change", () => {
    // The options of another unit do not exist at this one.
    for (const name of ["arriveOption", "leaveOption", "guest1", "guest2", "guest3"] as const) values[name].set("");
  });
  return h(
    "div",
    { class: "form two" },
    field(t("unit"), unit),
    numeric("hourlyCost", t("hourlyCost"), t("hourlyCostHint")),
    option("arriveOption", t("arriveOption"), t("choose")),
    option("leaveOption", t("leaveOption"), t("choose")),
    numeric("leadMinutes", t("leadMinutes"), t("leadHint")),
    numeric("lagMinutes", t("lagMinutes"), t("lagHint")),
    numeric("low", t("bandLow"), t("bandHint")),
    numeric("high", t("bandHigh")),
    option("guest1", t("guestOption", { n: 1 }), t("guestOptionNone")),
    option("guest2", t("guestOption", { n: 2 }), t("guestOptionNone")),
    option("guest3", t("guestOption", { n: 3 }), t("guestOptionNone")),
  );
}
