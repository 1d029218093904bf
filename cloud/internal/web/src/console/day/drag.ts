// Dragging on the timeline. A press on free space chooses a time, a press on a reservation moves it, a press on its edge
// changes its length. Escape cancels. A finger has to rest first, because moving it at once scrolls. Keys do the same:
// Alt and arrows move a reservation, Shift changes its length, Enter drops it.
//
//	press ── moved 4 px (mouse) / rested 400 ms (finger) ──▶ dragging ── release ──▶ commit
//	  └── released earlier: a click                            └── Escape, cancel: nothing
//
// During a drag the layout is not read: positions are measured when the press begins and adjusted by the scroll offset,
// pointer moves are handled once per frame, and the slot under the pointer is calculated.

import { day as dayLength, type Minute, slot } from "../../booking/time";
import { onCleanup, type Readable, type Signal } from "../../core/signal";
import type { Plane } from "./grid";
import { type Block, type Day, longest } from "./model";

/** The time that is being chosen, or the reservation that is being moved. */
export interface Ghost {
  room: string;
  start: Minute;
  end: Minute;
  /** The reservation that is moved; absent while a new time is chosen. */
  block?: Block;
}

const threshold = 4; // px
const rest = 400; // ms
const patience = 8; // px a resting finger may move
const edgeZone = 40; // px from the border in which the timeline scrolls automatically

interface Press {
  pointer: number;
  x: number;
  y: number;
  touch: boolean;
  start: Minute; // under the pointer when it went down
  row: number;
  block?: Block;
  resize: boolean;
  dragging: boolean;
  timer: number;
}

/** Only paid or registered reservations can be moved (docs/specification.md, Administration 3). */
export const movable = (b: Block): boolean => b.kind === "paid" || b.kind === "staff" || b.kind === "partner";

export function draggable(
  box: HTMLElement,
  lanes: HTMLElement,
  plane: Plane,
  day: Readable<Day>,
  ghost: Signal<Ghost | null>,
  commit: (g: Ghost) => void,
): void {
  let press: Press | undefined;
  let frame = 0;
  let last = { x: 0, y: 0 };
  let moved = false; // since the last frame
  let area = new DOMRect(); // of the box, in the window
  let origin = { x: 0, y: 0 }; // of the first room's midnight, in the window

  const blockOf = (target: EventTarget | null): Block | undefined => {
    const id = (target as Element).closest?.<HTMLElement>(".block")?.dataset.id;
    return id ? day.peek().blocks.find((b) => b.id === id) : undefined;
  };
  const measure = () => {
    const rows = lanes.querySelector(".lanerows")!.getBoundingClientRect();
    area = box.getBoundingClientRect();
    origin = { x: rows.left, y: rows.top };
  };
  const spot = (x: number, y: number): { minute: Minute; row: number } => {
    const row = Math.floor((y - origin.y) / plane.rowHeight);
    const minute = plane.midnight + Math.floor((x - origin.x) / plane.slotWidth()) * slot;
    return {
      minute: Math.max(plane.midnight, Math.min(minute, plane.midnight + dayLength - slot)),
      row: Math.max(0, Math.min(row, plane.rooms().length - 1)),
    };
  };

  const down = (e: PointerEvent) => {
    if (e.button !== 0 || press || !(e.target as Element).closest(".lanerows")) return;
    const block = blockOf(e.target);
    if (block && !movable(block)) return;
    measure();
    const { minute, row } = spot(e.clientX, e.clientY);
    const touch = e.pointerType !== "mouse";
    press = {
      pointer: e.pointerId,
      x: e.clientX,
      y: e.clientY,
      touch,
      start: minute,
      row,
      block,
      resize: Boolean((e.target as Element).closest(".edge")),
      dragging: false,
      timer: 0,
    };
    if (touch) press.timer = setTimeout(begin, rest);
  };
  const begin = () => {
    if (!press) return;
    press.dragging = true;
    lanes.setPointerCapture(press.pointer);
    box.classList.add("dragging");
    if (press.touch) navigator.vibrate?.(15);
    last = { x: press.x, y: press.y };
    follow();
    frame = requestAnimationFrame(tick);
  };
  const move = (e: PointerEvent) => {
    if (!press || e.pointerId !== press.pointer) return;
    const far = Math.hypot(e.clientX - press.x, e.clientY - press.y);
    if (!press.dragging) {
      if (press.touch && far > patience) end();
      else if (!press.touch && far > threshold) begin();
      if (!press?.dragging) return;
    }
    last = { x: e.clientX, y: e.clientY };
    moved = true;
  };
  const follow = () => {
    if (!press) return;
    moved = false;
    const next = target(press, spot(last.x, last.y));
    const shown = ghost.peek();
    if (!shown || shown.room !== next.room || shown.start !== next.start || shown.end !== next.end) ghost.set(next);
  };
  const target = (p: Press, at: { minute: Minute; row: number }): Ghost => {
    const rooms = plane.rooms();
    if (!p.block) {
      const [from, to] = at.minute >= p.start ? [p.start, at.minute + slot] : [at.minute, p.start + slot];
      return { room: rooms[p.row]!.roomNo, start: Math.max(from, to - longest), end: Math.min(to, from + longest) };
    }
    const { block } = p;
    if (p.resize)
      return {
        room: block.room,
        start: block.start,
        end: Math.max(block.start + slot, Math.min(at.minute + slot, block.start + longest)),
        block,
      };
    const start = block.start + at.minute - p.start;
    return { room: rooms[at.row]!.roomNo, start, end: start + block.end - block.start, block };
  };
  const up = (e: PointerEvent) => {
    if (!press || e.pointerId !== press.pointer) return;
    const dragged = press.dragging;
    if (dragged && moved) follow();
    const chosen = dragged ? ghost.peek() : null;
    end(Boolean(chosen));
    if (dragged) swallowClick();
    if (chosen) commit(chosen);
  };
  const end = (keepGhost = false) => {
    if (!press) return;
    clearTimeout(press.timer);
    cancelAnimationFrame(frame);
    if (press.dragging && lanes.hasPointerCapture(press.pointer)) lanes.releasePointerCapture(press.pointer);
    press = undefined;
    box.classList.remove("dragging");
    if (!keepGhost) ghost.set(null);
  };
  /** Suppresses the click event that follows a drag. */
  const swallowClick = () => {
    const swallow = (e: Event) => {
      e.stopPropagation();
      e.preventDefault();
    };
    lanes.addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => lanes.removeEventListener("click", swallow, { capture: true }), 0);
  };
  const tick = () => {
    if (!press?.dragging) return;
    const pull = (at: number, low: number, high: number) =>
      (at < low + edgeZone ? at - low - edgeZone : at > high - edgeZone ? at - high + edgeZone : 0) / 3;
    const [dx, dy] = [pull(last.x, area.left + 120, area.right), pull(last.y, area.top + 28, area.bottom)];
    if (dx || dy) {
      box.scrollBy(dx, dy);
      measure();
      moved = true;
    }
    if (moved) follow();
    frame = requestAnimationFrame(tick);
  };

  const key = (e: KeyboardEvent) => {
    // In the form that a drag has opened, the key closes the form.
    if (e.key === "Escape" && (press?.dragging || (ghost.peek()?.block && !document.querySelector("dialog[open]")))) {
      e.preventDefault();
      e.stopPropagation();
      end();
      ghost.set(null);
      return;
    }
    const block = blockOf(e.target);
    if (!block || !movable(block)) return;
    const held =
      ghost.peek()?.block?.id === block.id
        ? ghost.peek()!
        : { room: block.room, start: block.start, end: block.end, block };
    if (e.key === "Enter" && ghost.peek()?.block?.id === block.id) {
      e.preventDefault();
      commit(held);
      return;
    }
    if (!e.altKey) return;
    const rooms = plane.rooms();
    const row = rooms.findIndex((r) => r.roomNo === held.room);
    const shift = (by: number): Ghost =>
      e.shiftKey
        ? { ...held, end: Math.max(held.start + slot, Math.min(held.end + by, held.start + longest)) }
        : { ...held, start: held.start + by, end: held.end + by };
    const next: Record<string, () => Ghost> = {
      ArrowLeft: () => shift(-slot),
      ArrowRight: () => shift(slot),
      ArrowUp: () => ({ ...held, room: rooms[Math.max(0, row - 1)]!.roomNo }),
      ArrowDown: () => ({ ...held, room: rooms[Math.min(rooms.length - 1, row + 1)]!.roomNo }),
    };
    const step = next[e.key];
    if (!step) return;
    e.preventDefault();
    ghost.set(step());
  };
  const left = (e: FocusEvent) => {
    if (
      !press &&
      ghost.peek()?.block &&
      (e.target as Element).matches?.(".block") &&
      !document.querySelector("dialog[open]")
    )
      ghost.set(null);
  };
  /** Prevents scrolling during a drag: a browser that starts to scroll cancels the pointer. */
  const hold = (e: TouchEvent) => {
    if (press?.dragging) e.preventDefault();
  };

  lanes.addEventListener("pointerdown", down);
  lanes.addEventListener("pointermove", move);
  lanes.addEventListener("pointerup", up);
  lanes.addEventListener("pointercancel", () => end());
  lanes.addEventListener("touchmove", hold, { passive: false });
  box.addEventListener(
    "scroll",
    () => {
      if (!press?.dragging) return;
      measure();
      moved = true;
    },
    { passive: true },
  );
  lanes.addEventListener("contextmenu", (e) => press?.touch && e.preventDefault());
  lanes.addEventListener("focusout", left);
  document.addEventListener("keydown", key);
  onCleanup(() => {
    end();
    document.removeEventListener("keydown", key);
  });
}
