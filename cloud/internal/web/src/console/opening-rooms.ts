// Rooms pasted from a sheet.

import { api } from "../core/api";
import { h } from "../core/dom";
import { computed, signal } from "../core/signal";
import { keptAttempt } from "./draft";
import { button, dialog, field, table, toast } from "./parts";
import { price } from "./rooms";
import type { Branch } from "./session";
import { t } from "./text";

interface Row {
  roomNo: string;
  machine: string;
  grade: string | null;
  pricing: { min10: number | null; min30: number | null; min60: number | null };
}

/** Reads lines of number, machine, grade and the prices of 10, 30 and 60 minutes, as cells of a sheet or separated by commas. */
function parseRooms(text: string): { rows: Row[]; wrong: string[] } {
  const rows: Row[] = [];
  const wrong: string[] = [];
  for (const line of text.split("\n").filter((l) => l.trim())) {
    const cells = line.split(line.includes("\t") ? "\t" : ",").map((c) => c.trim());
    const [roomNo = "", machine = "", grade = "", ...prices] = cells;
    const [min10 = null, min30 = null, min60 = null] = prices.map((p) => {
      const digits = p.replace(/[\s원₩.]/g, "");
      return digits === "" ? null : Number(digits.replaceAll(",", ""));
    });
    const pricing = { min10, min30, min60 };
    const number = roomNo.replace(/\D*$/, "");
    if (!/^\d{1,4}$/.test(number) || Object.values(pricing).some(Number.isNaN) || prices.length > 3) wrong.push(line);
    else rows.push({ roomNo: number, machine, grade: grade || null, pricing });
  }
  return { rows, wrong };
}

export function openPaste(branch: Branch, refresh: () => Promise<void>): void {
  dialog(t("pasteRooms"), (close) => {
    const text = signal("");
    const found = computed(() => parseRooms(text()));
    const { run, view } = keptAttempt(`rooms-${branch.branch}`, { text });
    const save = () =>
      run(async () => {
        const { rows } = found.peek();
        try {
          for (const { roomNo, machine, grade, pricing } of rows)
            await api.put(`/v2/admin/branches/${branch.branch}/rooms/${roomNo}`, { machine, grade, ...pricing });
        } finally {
          await refresh(); // rooms before a rejected one are stored
        }
        toast(t("roomsPasted", { n: rows.length }));
        close();
      });
    return [
      field(
        t("pasteLabel"),
        h("textarea", {
          rows: 8,
          autofocus: true,
          spellcheck: false,
          value: () => text(),
          oninput: (e: Event) => text.set((e.target as HTMLTextAreaElement).value),
        }),
        t("pasteHint"),
      ),
      () =>
        found().wrong.length
          ? h("p", { class: "problem", role: "alert" }, t("pasteWrong", { line: found().wrong[0]! }))
          : null,
      () =>
        found().rows.length
          ? table<Row>(
              t("settingsRooms"),
              [
                { title: t("room"), cell: (r) => t("roomNo", { n: r.roomNo }) },
                { title: t("machine"), kind: "wide", cell: (r) => r.machine },
                { title: t("grade"), cell: (r) => r.grade ?? "–" },
                { title: t("price"), cell: (r) => price(r) },
              ],
              found().rows,
            )
          : null,
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("pasteDo"), save, {
          kind: "primary",
          disabled: () => found().rows.length === 0 || found().wrong.length > 0,
        }),
      ),
    ];
  });
}
