// Fetched data: loading, ready or failed.

import { released } from "./press";
import { onCleanup, type Readable, signal } from "./signal";

export type Fetched<T> = { is: "loading" } | { is: "ready"; data: T } | { is: "failed"; error: unknown };

export interface Resource<T> extends Readable<Fetched<T>> {
  /**
   * Fetches again. The present data stays until the new data arrives. If the fetch fails, it is repeated: no other change may
   * follow that would cause one. During a press the data stays until the click: a button that is replaced while it is pressed is
   * not clicked.
   */
  refresh(): Promise<void>;
  /** Discards the state and fetches again. */
  retry(): void;
  data(): T | undefined;
}

const repeatAfter = 10_000; // ms

export function resource<T>(fetcher: () => Promise<T>): Resource<T> {
  const state = signal<Fetched<T>>({ is: "loading" });
  let latest = 0; // request
  let shown = 0; // the request whose answer is shown
  let gone = false;
  let repetition = 0; // timer
  onCleanup(() => {
    gone = true;
    clearTimeout(repetition);
  });
  const refresh = async () => {
    const mine = ++latest;
    clearTimeout(repetition);
    try {
      const data = await fetcher();
      await released();
      // Not only the latest one: requests that take longer than the interval between them would never be shown.
      if (mine <= shown || gone) return;
      shown = mine;
      state.set({ is: "ready", data });
    } catch (error) {
      if (mine !== latest || gone) return;
      if (state.peek().is === "ready") repetition = setTimeout(refresh, repeatAfter);
      else state.set({ is: "failed", error });
    }
  };
  const retry = () => {
    state.set({ is: "loading" });
    shown = latest; // earlier answers are of other parameters
    void refresh();
  };
  void refresh();
  const data = () => {
    const now = state();
    return now.is === "ready" ? now.data : undefined;
  };
  return Object.assign(() => state(), { peek: state.peek, refresh, retry, data });
}
