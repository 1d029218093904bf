// The audit log: actor, action, target, time and origin.

import { clockOf, dateOf, inZone } from "../booking/time";
import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import { submits } from "../core/form";
import type { Schemas } from "../core/interface";
import { go } from "../core/router";
import { computed, signal } from "../core/signal";
import { who } from "./day/history";
import { wall } from "./doors";
import { link } from "./link";
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
  "partner-booking",
  "quarantine",
  "door",
  "pin",
  "code",
  "room",
  "airconditioner",
  "administrator",
  "agent",
  "message",
  "settings",
  "alert",
  "guest",
  "handover",
  "channel",
  "difference",
  "personal",
  "export",
  "branch",
  "token",
  "webhook",
  "company",
  "entity",
];

/** The values that are not empty. */
const given = (values: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value));

export function auditScreen(branch: Branch): Child {
  // The address keeps the filters, for a reload or another administrator.
  const address = new URLSearchParams(location.search);
  const kept = (name: string) => signal(address.get(name) ?? "");
  const [action, actor, from, to] = [kept("action"), kept("actor"), kept("from"), kept("to")];
  const wanted = () => given({ action: action.peek(), actor: actor.peek().trim(), from: from.peek(), to: to.peek() });
  const asked = signal(wanted());
  const fetch = (limit: number) => async (before: string) => {
    const query = { limit, ...asked.peek(), ...given({ before }) };
    return (await api.get<{ entries: Entry[] }>(`/v2/admin/branches/${branch.branch}/audit`, query)).entries;
  };
  const list = computed(() => {
    asked();
    return pages(fetch(size), size);
  });
  const save = async () => {
    await api.post(`/v2/admin/branches/${branch.branch}/exports`, { what: "audit" });
    const all = await list.peek().all();
    downloadCSV(
      `${branch.branch}-audit.csv`,
      [
        t("entryNo"),
        t("colWhen"),
        t("colWho"),
        t("colWhat"),
        t("target"),
        t("colDetail"),
        t("address"),
        t("requestId"),
      ],
      all.map((e) => [
        e.id,
        sheetTime(branch, e.at),
        e.actor,
        deed(e.action),
        e.target,
        detail(e.detail),
        e.address,
        e.requestId,
      ]),
    );
  };
  const ask = () => {
    asked.set(wanted());
    go(`?${new URLSearchParams(asked.peek())}`, { replace: true });
  };
  return [
    heading(t("navAudit"), button(t("downloadCsv"), save)),
    h("p", { class: "lead" }, t("auditLead")),
    h(
      "form",
      { class: "inline", onsubmit: submits(ask) },
      field(
        t("auditAction"),
        select(action, () =>
          groups.map((g) => ({ value: g, text: g ? (t(`auditGroup_${g}` as TextKey) ?? g) : t("all") })),
        ),
      ),
      field(t("colWho"), input(actor, { maxlength: 100, placeholder: "hq" })),
      field(t("dateFrom"), input(from, { type: "date" })),
      field(t("dateTo"), input(to, { type: "date" })),
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
                  ? link(`/console/${branch.branch}/day?r=${e.target}`, e.target)
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

/** An instant as a spreadsheet reads it, in the branch's time. */
const sheetTime = (branch: Branch, at: string): string => {
  const minute = inZone(branch.timeZone, Date.parse(at));
  return `${dateOf(minute)} ${clockOf(minute)}`;
};

export const deed = (action: string): string => t(`deed_${action}` as TextKey) ?? action;

const detail = (d: Entry["detail"]): string =>
  Object.entries(d)
    .filter(([, v]) => v !== "" && v !== null)
    .map(([k, v]) =>
      k === "changes" && Array.isArray(v)
        ? v.join("; ")
        : `${k}: ${typeof v === "object" ? JSON.stringify(v) : String(v)}`,
    )
    .join(", ");
