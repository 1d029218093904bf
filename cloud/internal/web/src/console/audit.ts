// Who did what, when, from where.

import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { computed, signal } from "../core/signal";
import { who } from "./day/history";
import { wall } from "./doors";
import { pages } from "./pages";
import { button, downloadCSV, field, heading, input, select, table } from "./parts";
import type { Branch } from "./session";
import { type TextKey, t } from "./text";

type Entry = Schemas["AuditEntry"];

const size = 50;
const groups = [
  "",
  "reservation",
  "virtual-account",
  "door",
  "pin",
  "room",
  "airconditioner",
  "administrator",
  "agent",
  "message",
  "settings",
  "channel",
  "difference",
  "personal",
  "export",
  "branch",
];

export function auditScreen(branch: Branch): Child {
  const action = signal("");
  const actor = signal("");
  const asked = signal({ action: "", actor: "" });
  const fetch = (limit: number) => async (before: string) => {
    const { action, actor } = asked.peek();
    const query = { limit, ...(before ? { before } : {}), ...(action ? { action } : {}), ...(actor ? { actor } : {}) };
    return (await api.get<{ entries: Entry[] }>(`/v2/admin/branches/${branch.branch}/audit`, query)).entries;
  };
  const list = computed(() => {
    asked();
    return pages(fetch(size), size);
  });
  const save = async () => {
    const all = await list.peek().all();
    downloadCSV(
      `${branch.branch}-audit.csv`,
      ["id", "at", "actor", "action", "target", "detail", "address", "requestId"],
      all.map((e) => [e.id, e.at, e.actor, e.action, e.target, JSON.stringify(e.detail), e.address, e.requestId]),
    );
  };
  const ask = (e: Event) => {
    e.preventDefault();
    asked.set({ action: action.peek(), actor: actor.peek().trim() });
  };
  return [
    heading(t("navAudit"), button(t("downloadCsv"), save)),
    h("p", { class: "lead" }, t("auditLead")),
    h(
      "form",
      { class: "inline", onsubmit: ask },
      field(
        t("auditAction"),
        select(action, () =>
          groups.map((g) => ({ value: g, text: g ? (t(`auditGroup_${g}` as TextKey) ?? g) : t("all") })),
        ),
      ),
      field(t("colWho"), input(actor, { maxlength: 100, placeholder: "hq" })),
      button(t("filter"), () => {}, { type: "submit" }),
    ),
    match(list, (pages) =>
      pages.view((rows) =>
        table<Entry>(
          t("navAudit"),
          [
            { title: t("colWhen"), kind: "brief", cell: (e) => wall(branch, e.at) },
            { title: t("colWho"), kind: "brief", cell: (e) => who(e.actor) },
            { title: t("colWhat"), kind: "brief", cell: (e) => deed(e.action) },
            {
              title: t("target"),
              cell: (e) =>
                e.action.startsWith("reservation.") && /^\d+$/.test(e.target)
                  ? h("a", { href: `/console/${branch.branch}/day?r=${e.target}` }, e.target)
                  : e.target,
            },
            { title: t("colDetail"), kind: "wide", cell: (e) => detail(e.detail) },
            { title: t("address"), cell: (e) => h("code", null, e.address) },
          ],
          rows,
        ),
      ),
    ),
  ];
}

export const deed = (action: string): string => t(`deed_${action}` as TextKey) ?? action;

const detail = (d: Entry["detail"]): string =>
  Object.entries(d)
    .filter(([, v]) => v !== "" && v !== null)
    .map(([k, v]) => `${k}: ${typeof v === "object" ? JSON.stringify(v) : String(v)}`)
    .join(", ");
