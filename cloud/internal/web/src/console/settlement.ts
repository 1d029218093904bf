// The settlement of a month: what was paid, refunded and charged by the provider, by legal entity, by branch, or by day and
// method.

import { dateOf, inZone, parseDate } from "../booking/time";
import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { computed, signal } from "../core/signal";
import { branchTitle } from "./alerts";
import { branchSelect } from "./branches";
import { fileLink } from "./confirm";
import { type Column, fetched, field, heading, input, section, table } from "./parts";
import { branchByCode, branches, homeBranch } from "./session";
import { dateText, methodText, t, won } from "./text";

type Settlement = Schemas["Settlement"];
type Sums = Schemas["SettlementTotals"];
type Row = Settlement["rows"][number];
type Seller = Settlement["sellers"][number];

const amounts = ["paid", "refunded", "outside", "fee", "vat", "net"] as const;

export function settlementScreen(): Child {
  const home = homeBranch() ?? "";
  const thisMonth = dateOf(inZone(branchByCode(home)?.timeZone ?? "Asia/Seoul")).slice(0, 7);
  const branch = signal(branches.peek().length > 1 ? "" : home);
  const month = signal(thisMonth);
  const entity = signal<string | undefined>(undefined); // undefined: all; empty: that of the settings
  const query = computed(() => ({
    month: month() || thisMonth,
    ...(branch() ? { branch: branch() } : {}),
    ...(entity() === undefined ? {} : { entity: entity()! }),
  }));
  const picker = branchSelect(branch);
  const choose = (code: string) => {
    branch.set(code);
    picker.focus(); // the pressed button disappears
  };
  const chooseSeller = (code?: string) => {
    entity.set(code);
    picker.focus();
  };
  const file = (kind: "csv" | "xlsx", text: string) =>
    fileLink(() => `/api/v2/admin/settlement.${kind}?${new URLSearchParams(query())}`, text);
  return [
    heading(t("navSettlement"), file("csv", t("downloadCsv")), file("xlsx", t("downloadXlsx"))),
    h("p", { class: "lead" }, t("settlementLead")),
    h(
      "div",
      { class: "inline" },
      field(t("branch"), picker),
      field(t("month"), input(month, { type: "month", max: "2200-12" })),
    ),
    match(query, (asked) => {
      const source = resource(() => api.get<Settlement>("/v2/admin/settlement", asked));
      return fetched(source, (data) => () => [
        data().complete ? null : h("p", { class: "notice", role: "status" }, t("settlementIncomplete")),
        totals(data().totals),
        data().sellers.length > 1 || asked.entity !== undefined
          ? section(t("entities"), bySeller(data().sellers, asked.entity, chooseSeller))
          : null,
        section(t("navSettlement"), asked.branch ? byDay(data().rows) : byBranch(data().rows, choose)),
      ]);
    }),
  ];
}

const totals = (sums: Sums): HTMLElement =>
  h(
    "dl",
    { class: "figures" },
    amounts.map((name) =>
      h(
        "div",
        { class: "figure" },
        h("dt", null, t(`settlement_${name}`)),
        h("dd", null, h("b", null, won(sums[name]))),
      ),
    ),
  );

const columns = <T extends Sums>(): Column<T>[] =>
  amounts.map((name) => ({ title: t(`settlement_${name}`), kind: "number", cell: (r) => won(r[name]) }));

/** One line per legal entity, which narrows screen and files down to it. */
const bySeller = (sellers: readonly Seller[], chosen: string | undefined, choose: (code?: string) => void): Child => [
  table<Seller>(
    t("entities"),
    [
      {
        title: t("entities"),
        kind: "wide",
        cell: ({ entity, name, retired }) => [
          h(
            "button",
            {
              type: "button",
              class: "button plain",
              "aria-pressed": chosen === (entity ?? ""),
              onclick: () => choose(entity ?? ""),
            },
            name ?? entity ?? t("entityOfSettings"),
          ),
          retired ? t("entityRetired") : null,
        ],
      },
      ...columns<Seller>(),
    ],
    sellers,
    t("settlementNone"),
  ),
  chosen === undefined
    ? null
    : h("button", { type: "button", class: "button", onclick: () => choose() }, t("entitiesAll")),
];

const byDay = (rows: readonly Row[]): Child =>
  table<Row>(
    t("navSettlement"),
    [
      { title: t("date"), kind: "brief", cell: (r) => dateText(parseDate(r.date)) },
      { title: t("method"), cell: (r) => methodText(r.method) },
      ...columns<Row>(),
      { title: t("payoutDate"), kind: "brief", cell: (r) => (r.payoutDate ? dateText(parseDate(r.payoutDate)) : "–") },
    ],
    rows,
    t("settlementNone"),
  );

type Total = Sums & { branch: string };

/** One line per branch, which leads to its days. */
function byBranch(rows: readonly Row[], choose: (branch: string) => void): Child {
  const found = new Map<string, Total>();
  for (const row of rows) {
    const total = found.get(row.branch) ?? {
      branch: row.branch,
      paid: 0,
      refunded: 0,
      outside: 0,
      fee: 0,
      vat: 0,
      net: 0,
    };
    for (const name of amounts) total[name] += row[name];
    found.set(row.branch, total);
  }
  return table<Total>(
    t("navSettlement"),
    [
      {
        title: t("branch"),
        kind: "wide",
        cell: (r) =>
          h(
            "button",
            { type: "button", class: "button plain", onclick: () => choose(r.branch) },
            branchTitle(r.branch),
          ),
      },
      ...columns<Total>(),
    ],
    [...found.values()],
    t("settlementNone"),
  );
}
