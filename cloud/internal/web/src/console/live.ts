// Live changes of a branch over one WebSocket. Without the connection the screens poll every 15 seconds and show that they
// do.

import { whileSeen } from "../core/clock";
import { onCleanup, type Readable, signal } from "../core/signal";

export type Kind = "slot" | "door" | "sensor" | "agent" | "payment" | "branch";

export interface Event {
  kind: Kind;
  /** The subject: a reservation's id, a door's device or a location. */
  target: string;
}

const pollEvery = 15_000; // ms
const retryFirst = 500;
const retryMost = 10_000;
/** The silence after which a connection counts as lost. The service sends a message at least every 20 seconds. */
const silenceTimeout = 45_000;

const state = signal<"idle" | "live" | "polling">("idle");

/** Whether the displayed data is live. */
export const connection: Readable<"idle" | "live" | "polling"> = state;

/**
 * Calls changed with each event of a branch until the owner is disposed of, or with null if events may have been missed
 * and all data has to be fetched again. day is the watched day (YYYY-MM-DD).
 */
export function watch(branch: string, day: string, changed: (event: Event | null) => void): void {
  const tell = (event: Event | null) => {
    changed(event);
    for (const listener of listeners) listener(event);
  };
  follow({ branch, date: day }, tell, (next) => state.set(next));
  whileSeen(pollEvery, () => {
    if (state.peek() !== "live") tell(null);
  });
  onCleanup(() => state.set("idle"));
}

/** Calls changed when the agent or the alerts of a branch in one's scope have changed, until the owner is disposed of. */
export function watchAll(changed: () => void): void {
  let live = false;
  follow({}, changed, (next) => (live = next === "live"));
  whileSeen(pollEvery, () => {
    if (!live) changed();
  });
}

/** Keeps a connection until the owner is disposed of. tell receives null if events may have been missed. */
function follow(
  query: Record<string, string>,
  tell: (event: Event | null) => void,
  report: (state: "live" | "polling") => void,
): void {
  let socket: WebSocket | undefined;
  let timer = 0;
  let wait = retryFirst;
  let gone = false;

  const connect = () => {
    if (gone) return;
    const url = new URL("/api/v2/admin/live", location.href);
    url.protocol = url.protocol.replace("http", "ws");
    url.search = new URLSearchParams(query).toString();
    const mine = new WebSocket(url);
    socket = mine;
    const lost = () => {
      if (gone || socket !== mine) return;
      socket = undefined;
      mine.close();
      clearTimeout(timer);
      report("polling");
      timer = setTimeout(connect, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, retryMost);
    };
    // A network that drops a connection silently, such as a router that restarts, is never noticed by a browser that sends nothing.
    const heard = () => {
      clearTimeout(timer);
      timer = setTimeout(lost, silenceTimeout);
    };
    heard();
    mine.onopen = () => {
      heard();
      tell(null); // the data may be older than the connection
      report("live");
      wait = retryFirst;
    };
    mine.onmessage = (message) => {
      heard();
      for (const event of (JSON.parse(message.data as string) as { events: Event[] }).events) tell(event);
    };
    mine.onclose = lost;
  };
  connect();
  onCleanup(() => {
    gone = true;
    clearTimeout(timer);
    socket?.close();
  });
}

const listeners = new Set<(event: Event | null) => void>();

/** Receives the events of the screen's connection until the owner is disposed of, for drawers over a live screen. */
export function overhear(changed: (event: Event | null) => void): void {
  listeners.add(changed);
  onCleanup(() => listeners.delete(changed));
}

/** Combines many events into one fetch. */
export function gather(fetch: () => unknown, pause = 80): () => void {
  let timer = 0;
  onCleanup(() => clearTimeout(timer));
  return () => {
    timer ||= setTimeout(() => {
      timer = 0;
      void fetch();
    }, pause);
  };
}
