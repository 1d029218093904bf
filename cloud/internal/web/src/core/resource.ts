// Fetched data: loading, ready or failed.

import { onCleanup, type Readable, signal } from "./signal";

export type Fetched<T> = { is: "loading" } | { is: "ready"; data: T } | { is: "failed"; error: unknown };

export interface Resource<T> extends Readable<Fetched<T>> {
  /** Fetches again. The present data stays until the new data arrives, and also if the fetch fails. */
  refresh(): Promise<void>;
  /** Discards the state and fetches again. */
  retry(): void;
  data(): T | undefined;
}

export function resource<T>(fetcher: () => Promise<T>): Resource<T> {
  const state = signal<Fetched<T>>({ is: "loading" });
  let latest = 0;
  let gone = false;
  onCleanup(() => (gone = true));
  const refresh = async () => {
    const mine = ++latest;
    try {
      const data = await fetcher();
      if (mine === latest && !gone) state.set({ is: "ready", data });
    } catch (error) {
      if (mine === latest && !gone && state.peek().is !== "ready") state.set({ is: "failed", error });
    }
  };
  const retry = () => {
    state.set({ is: "loading" });
    void refresh();
  };
  void refresh();
  const data = () => {
    const now = state();
    return now.is === "ready" ? now.data : undefined;
  };
  return Object.assign(() => state(), { peek: state.peek, refresh, retry, data });
}
