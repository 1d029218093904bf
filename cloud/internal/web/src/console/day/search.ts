// Search for reservations of any day and branch.

import { dateOf } from "../../booking/time";
import { api } from "../../core/api";
import { h, match } from "../../core/dom";
import { submits } from "../../core/form";
import { go } from "../../core/router";
import { signal } from "../../core/signal";
import { attempt, button, chip, dialog, field, input, table } from "../parts";
import { type Branch, branchByCode, branchName } from "../session";
import { dateText, t, timesText } from "../text";
import { type Block, kindText, toBlock, type Wire } from "./model";

type Found = Block & { branch: string };

export function openSearch(_: Branch, words: string): void {
  dialog(t("searchAll"), (close) => {
    const text = signal(words);
    const found = signal<Found[] | null>(null);
    const { run, view } = attempt();
    const search = () =>
      run(async () => {
        const { reservations } = await api.get<{ reservations: (Wire & { branch: string })[] }>(
          "/v2/admin/reservations",
          { query: text.peek().trim() },
        );
        found.set(reservations.map((w) => ({ ...toBlock(w), branch: w.branch })));
      });
    if (words.trim().length >= 2) void search();
    const open = (b: Found) => {
      close();
      go(`/console/${b.branch}/day/${dateOf(b.start)}?r=${b.id}`);
    };
    return [
      h(
        "form",
        {
          class: "inline",
          onsubmit: submits(search),
        },
        field(
          t("searchLabel"),
          input(text, { type: "search", minlength: 2, maxlength: 100, required: true, autofocus: true }),
          t("searchHint"),
        ),
        button(t("search"), () => {}, { kind: "primary", type: "submit" }),
      ),
      view(),
      match(
        found,
        (rows) =>
          rows &&
          table<Found>(
            t("searchAll"),
            [
              { title: t("colWhen"), cell: (b) => `${dateText(b.start)} ${timesText(b.start, b.end)}` },
              {
                title: t("branch"),
                cell: (b) => `${branchName(branchByCode(b.branch)!)} ${t("roomNo", { n: b.room })}`,
              },
              { title: t("colName"), cell: (b) => [b.name, b.mobile].filter(Boolean).join(" · ") || "–" },
              { title: t("colState"), cell: (b) => chip(kindText(b.kind), b.kind) },
              { title: "", kind: "action", cell: (b) => button(t("open"), () => open(b)) },
            ],
            rows,
            t("searchNothing"),
          ),
      ),
    ];
  });
}
