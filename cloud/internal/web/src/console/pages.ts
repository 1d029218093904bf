// Paged lists, newest first, with more on demand.

import { type Child, h, when } from "../core/dom";
import { type Readable, signal } from "../core/signal";
import { button, explain, loading } from "./parts";
import { t } from "./text";

export interface Pages<T> {
  rows: Readable<T[]>;
  view: (table: (rows: T[]) => Child) => Child;
  reload: () => Promise<void>;
  /** Fetches all rows, for a file. */
  all: () => Promise<T[]>;
}

/** fetch returns the page before an id ("" returns the newest page). A short page is the last one. */
export function pages<T extends { id: string }>(fetch: (before: string) => Promise<T[]>, size: number): Pages<T> {
  const rows = signal<T[]>([]);
  const state = signal<"loading" | "more" | "end" | "failed">("loading");
  const problem = signal("");
  let failed = ""; // the page that did not load
  let latest = 0; // request
  let extending = false; // the latest request is for a further page
  const load = async (before: string) => {
    const mine = ++latest;
    extending = before !== "";
    try {
      const next = await fetch(before);
      if (mine !== latest) return; // a later request decides
      rows.set(before ? [...rows.peek(), ...next] : next);
      problem.set("");
      state.set(next.length < size ? "end" : "more");
    } catch (error) {
      if (mine !== latest) return;
      failed = before;
      problem.set(explain(error));
      state.set("failed");
    }
    extending = false;
  };
  void load("");
  return {
    rows,
    // A page that the user waits for is not dropped.
    reload: async () => {
      if (!extending) await load("");
    },
    all: async () => {
      const list: T[] = [];
      for (;;) {
        const next = await fetch(list[list.length - 1]?.id ?? "");
        list.push(...next);
        if (next.length < size) return list;
      }
    },
    view: (table) =>
      h(
        "div",
        { class: "pages" },
        when(
          () => state() === "loading",
          loading,
          () => () => (rows().length === 0 && problem() ? null : table(rows())),
        ),
        when(
          () => state() === "failed",
          () =>
            h(
              "div",
              { class: "card failed", role: "alert" },
              h("p", null, () => problem()),
              button(t("retry"), () => load(failed)),
            ),
        ),
        when(
          () => state() === "more",
          () =>
            h(
              "div",
              { class: "row" },
              button(t("more"), () => load(rows.peek()[rows.peek().length - 1]!.id)),
            ),
        ),
      ),
  };
}
