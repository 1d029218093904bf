// The timeline: one row per room, one column per ten minutes.

import { price } from "../../booking/price";
import { clockOf, day as dayLength, type Minute, parseDate, slot, slotOf } from "../../booking/time";
import { now as clock } from "../../core/clock";
import { type Child, each, h } from "../../core/dom";
import { countdown } from "../../core/format";
import { computed, effect, onCleanup, type Readable, signal, untracked } from "../../core/signal";
import { localStore } from "../../core/storage";
import { button, toast } from "../parts";
import type { Branch } from "../session";
import { t, timesText, won } from "../text";
import { hoverCard } from "./card";
import { draggable, type Ghost } from "./drag";
import { type Block, type Day, kindText, obstacle, type Room, type Span } from "./model";
import { openMove } from "./move";

interface Options {
  branch: Branch;
  day: Readable<Day>;
  now: Readable<Minute>;
  show: (block: Block) => void;
  reserve: (room: string, start: Minute, end: Minute) => void;
  refresh: () => void;
  mayChange: boolean;
  /** Whether cancelled reservations are shown, too. */
  canceled: Readable<boolean>;
}

const zooms = [5, 8, 12, 18, 28]; // px per ten minutes
const zoomKey = "console-zoom";

/** The geometry that pointer and keyboard handlers need. */
export interface Plane {
  midnight: Minute;
  rooms: () => Room[];
  slotWidth: () => number;
  rowHeight: number;
}

const rowHeight = 52;

export function grid(o: Options): Child {
  const midnight = parseDate(o.day.peek().date);
  const zoom = signal(storedZoom());
  effect(() => localStore.set(zoomKey, String(zoom())));
  const slotWidth = computed(() => zooms[zoom()]!);
  const ghost = signal<Ghost | null>(null);
  const problem = computed(() => {
    const g = ghost();
    return g && obstacle(o.day(), g.room, g.start, g.end, o.now(), g.block);
  });
  const said = h("p", { class: "hidden", "aria-live": "assertive" });
  announce(said, () => sentence(ghost(), problem(), o.day()));
  const commit = (g: Ghost) => {
    const wrong = obstacle(o.day.peek(), g.room, g.start, g.end, o.now.peek(), g.block);
    if (wrong) {
      ghost.set(null);
      toast(t(wrong), "bad");
    } else if (!g.block) {
      ghost.set(null);
      o.reserve(g.room, g.start, g.end);
    } else if (g.room === g.block.room && g.start === g.block.start && g.end === g.block.end) {
      ghost.set(null);
    } else {
      openMove(
        o.branch,
        g.block,
        { room: g.room, start: g.start, end: g.end },
        o.day.peek(),
        () => ghost.set(null),
        o.refresh,
      );
    }
  };
  // All labels share one sticky column: forty sticky elements would be forty compositing layers.
  const labels = h(
    "div",
    { class: "labels", "aria-hidden": "true" },
    each(
      () => o.day().rooms,
      (r) => r.roomNo,
      label,
    ),
  );
  const rows = h(
    "div",
    { class: "lanerows" },
    each(
      () => o.day().rooms,
      (r) => r.roomNo,
      (room) => lane(room, o, midnight),
    ),
  );
  const lanes = h("div", { class: "lanes" }, labels, rows, ghostView(ghost, problem, midnight, slotWidth, o.day));
  const box = h(
    "div",
    { class: "grid", "--row": `${rowHeight}px`, role: "region", "aria-label": t("timeline"), tabindex: 0 },
    h("div", { class: "plane" }, hours(midnight, o.now), lanes, nowLine(midnight, o.now)),
  );
  effect(() => box.style.setProperty("--slot", `${slotWidth()}px`));
  const plane: Plane = { midnight, rooms: () => o.day.peek().rooms, slotWidth: slotWidth.peek, rowHeight };
  if (o.mayChange) {
    draggable(box, lanes, plane, o.day, ghost, commit);
    lanes.append(cursor(plane, o, ghost, commit));
  }
  stayInPlace(box, slotWidth, midnight, o);
  return [
    h(
      "div",
      { class: "gridtools" },
      legend(),
      o.mayChange ? h("p", { class: "hint" }, t("gridHint")) : null,
      h(
        "div",
        { class: "zoom", role: "group", "aria-label": t("zoom") },
        button("−", () => zoom.set(zoom.peek() - 1), {
          kind: "plain",
          label: t("zoomOut"),
          disabled: () => zoom() === 0,
        }),
        button("+", () => zoom.set(zoom.peek() + 1), {
          kind: "plain",
          label: t("zoomIn"),
          disabled: () => zoom() === zooms.length - 1,
        }),
      ),
    ),
    box,
    hoverCard(box, o.day),
    said,
  ];
}

function storedZoom(): number {
  const stored = Number(localStore.get(zoomKey) ?? 2);
  return Number.isInteger(stored) && stored >= 0 && stored < zooms.length ? stored : 2;
}

const pause = 250; // ms

/** Announces a text to screen readers once it has not changed for a moment, so that a drag does not announce every slot. */
function announce(said: HTMLElement, text: () => string): void {
  let timer = 0;
  effect(() => {
    const next = text();
    clearTimeout(timer);
    timer = setTimeout(() => (said.textContent = next), pause);
  });
  onCleanup(() => clearTimeout(timer));
}

function sentence(g: Ghost | null, problem: ReturnType<typeof obstacle> | null, day: Day): string {
  if (!g) return "";
  const room = day.rooms.find((r) => r.roomNo === g.room)!;
  return `${t("roomNo", { n: room.roomNo })} ${timesText(g.start, g.end)}, ${problem ? t(problem) : t("obstNone")}`;
}

const legend = (): Child =>
  h(
    "ul",
    { class: "legend" },
    (["paid", "hold", "waiting", "staff", "partner", "quarantine", "conflict", "withheld"] as const).map((kind) =>
      h("li", null, h("i", { class: `swatch ${kind}` }), kindText(kind)),
    ),
    h("li", null, h("i", { class: "swatch margin" }), t("margin")),
  );

function hours(midnight: Minute, now: Readable<Minute>): HTMLElement {
  return h(
    "div",
    { class: "hours", "aria-hidden": "true" },
    h("span", { class: "corner" }),
    Array.from({ length: 24 }, (_, i) => h("span", null, clockOf(midnight + i * 60))),
    () => (isOn(now(), midnight) ? h("b", { "--from": from(now(), midnight) }, clockOf(now())) : null),
  );
}

/** A position on the day, in slots. */
const from = (m: Minute, midnight: Minute) => String((m - midnight) / slot);
const length = (s: Span) => String((s.end - s.start) / slot);

function lane(room: Readable<Room>, o: Options, midnight: Minute): HTMLElement {
  const own = computed(() => o.day().blocks.filter((b) => b.room === room().roomNo && b.kind !== "conflict"));
  const beside = computed(() =>
    [...o.day().blocks.filter((b) => b.kind === "conflict"), ...(o.canceled() ? o.day().canceled : [])].filter(
      (b) => b.room === room().roomNo,
    ),
  );
  return h(
    "div",
    {
      class: () => `lane${room().enabled ? "" : " off"}`,
      role: "group",
      "aria-label": () =>
        [t("roomNo", { n: room().roomNo }), room().machine, room().enabled ? "" : t("roomOff")]
          .filter(Boolean)
          .join(", "),
    },
    () =>
      o
        .day()
        .closed.map((s) => h("i", { class: "span closed", "--from": from(s.start, midnight), "--len": length(s) })),
    () =>
      o.day().breaks.map((s) => h("i", { class: "span break", "--from": from(s.start, midnight), "--len": length(s) })),
    each(
      own,
      (b) => b.id,
      (block) => blockView(block, o, midnight),
    ),
    each(
      beside,
      (b) => b.id,
      (block) => besideView(block, o, midnight),
    ),
  );
}

/** A reservation without the room, canceled or in conflict: a strip below those that have its time. */
const besideView = (block: Readable<Block>, o: Options, midnight: Minute): HTMLElement =>
  h(
    "button",
    {
      type: "button",
      class: () => `gone ${block().kind}`,
      "data-id": () => block().id,
      "--from": () => from(block().start, midnight),
      "--len": () => length(block()),
      onclick: () => o.show(block.peek()),
    },
    h("span", null, () => block().name || kindText(block().kind)),
    h("span", { class: "hidden" }, () => `${timesText(block().start, block().end)} ${kindText(block().kind)}`),
  );

function label(room: Readable<Room>): HTMLElement {
  return h(
    "div",
    { class: () => `label${room().enabled ? "" : " off"}` },
    h("b", null, () => room().roomNo),
    h("span", null, () => room().machine),
    h("small", null, () => (room().enabled ? (room().grade ?? "") : t("roomOff"))),
  );
}

function blockView(block: Readable<Block>, o: Options, midnight: Minute): HTMLElement {
  const element = h(
    "button",
    {
      type: "button",
      class: () => `block ${block().kind}`,
      "data-id": () => block().id,
      "--from": () => from(block().start, midnight),
      "--len": () => length(block()),
      onclick: () => o.show(block.peek()),
    },
    h("span", { class: "name" }, () => block().name || kindText(block().kind)),
    h("span", { class: "when" }, () => timesText(block().start, block().end)),
    h("span", { class: "when short", "aria-hidden": "true" }, () => clockOf(block().start)),
    h("span", { class: "hidden" }, () => kindText(block().kind)),
    () => (block().expiresAt ? remaining(block) : null),
    o.mayChange ? h("i", { class: "edge" }) : null,
  );
  return element;
}

/** The time left for a hold or a deposit. */
function remaining(block: Readable<Block>): HTMLElement {
  const left = signal("");
  const tick = () => left.set(countdown(block.peek().expiresAt - clock()));
  tick();
  const timer = setInterval(tick, 1000);
  onCleanup(() => clearInterval(timer));
  return h("span", { class: "left" }, () => left());
}

const isOn = (now: Minute, midnight: Minute) => now >= midnight && now < midnight + dayLength;

function nowLine(midnight: Minute, now: Readable<Minute>): Child {
  return () => (isOn(now(), midnight) ? h("div", { class: "now", "--from": from(now(), midnight) }) : null);
}

/** The selection or the moved reservation with its margins, in a layer of its own: moving it repaints nothing else. */
function ghostView(
  ghost: Readable<Ghost | null>,
  problem: Readable<ReturnType<typeof obstacle> | null>,
  midnight: Minute,
  slotWidth: Readable<number>,
  day: Readable<Day>,
): Child {
  const text = document.createTextNode("");
  const element = h("div", { class: "ghost", hidden: true }, h("span", null, text));
  const width = computed(() => {
    const g = ghost();
    return g ? ((g.end - g.start) / slot) * slotWidth() : 0;
  });
  effect(() => (element.style.width = `${width()}px`));
  effect(() => {
    const g = ghost();
    element.hidden = !g;
    if (!g) return;
    const wrong = problem();
    const row = untracked(day).rooms.findIndex((r) => r.roomNo === g.room);
    element.style.transform = `translate(${((g.start - midnight) / slot) * slotWidth()}px, ${row * rowHeight + 3}px)`;
    element.classList.toggle("bad", Boolean(wrong));
    const cost = !g.block && row >= 0 ? price(untracked(day).rooms[row]!, g.start, g.end - g.start) : null;
    const next = [timesText(g.start, g.end), wrong ? t(wrong) : cost ? won(cost) : ""].filter(Boolean).join(" · ");
    if (text.data !== next) text.data = next;
  });
  return h("div", { class: "overlay", "aria-hidden": "true" }, element);
}

/** A keyboard cursor on the timeline. Shift extends the selection, Enter reserves it. */
function cursor(
  plane: Plane,
  o: Options,
  ghost: { set(g: Ghost | null): void },
  commit: (g: Ghost) => void,
): HTMLElement {
  let row = 0;
  const now = o.now.peek();
  let start = isOn(now, plane.midnight)
    ? Math.min(slotOf(now), plane.midnight + dayLength - 60)
    : opening(o.day.peek(), plane.midnight);
  let length = 60;
  const chosen = (): Ghost => ({ room: plane.rooms()[row]!.roomNo, start, end: start + length });
  const element = h("button", { type: "button", class: "cursor", "aria-label": t("cursorLabel") });
  const place = () => ghost.set(chosen());
  element.addEventListener("focus", () => plane.rooms().length > 0 && place());
  element.addEventListener("blur", () => ghost.set(null));
  element.addEventListener("click", () => commit(chosen()));
  element.addEventListener("keydown", (e) => {
    const last = plane.midnight + dayLength - slot;
    if (e.key === "ArrowRight" && e.shiftKey) length = Math.min(length + slot, 300);
    else if (e.key === "ArrowLeft" && e.shiftKey) length = Math.max(length - slot, slot);
    else if (e.key === "ArrowRight") start = Math.min(start + slot, last);
    else if (e.key === "ArrowLeft") start = Math.max(start - slot, plane.midnight);
    else if (e.key === "ArrowDown") row = Math.min(row + 1, plane.rooms().length - 1);
    else if (e.key === "ArrowUp") row = Math.max(row - 1, 0);
    else if (e.key === "Escape") return element.blur();
    else return;
    e.preventDefault();
    place();
    element.style.setProperty("--from", from(start, plane.midnight));
    element.style.setProperty("--at", String(row));
    element.scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  element.style.setProperty("--from", from(start, plane.midnight));
  element.style.setProperty("--at", "0");
  return element;
}

/** The start of business: the end of the morning closure, or 08:00 without one. */
const opening = (day: Day, midnight: Minute): Minute => {
  const end = day.closed.find((s) => s.start <= midnight)?.end ?? midnight + 8 * 60;
  return end < midnight + dayLength ? end : midnight + 8 * 60;
};

/** Scrolls to the present or to the start of business, and keeps the centre in place when the zoom changes. */
function stayInPlace(box: HTMLElement, slotWidth: Readable<number>, midnight: Minute, o: Options): void {
  let width = slotWidth.peek();
  const now = o.now.peek();
  const first = isOn(now, midnight) ? now - 60 : opening(o.day.peek(), midnight) - 30;
  requestAnimationFrame(() => (box.scrollLeft = ((first - midnight) / slot) * width));
  effect(() => {
    const next = slotWidth();
    const middle = (box.scrollLeft + box.clientWidth / 2) / width;
    if (next !== width) box.scrollLeft = middle * next - box.clientWidth / 2;
    width = next;
  });
}
