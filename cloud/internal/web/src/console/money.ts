// The money of a branch: payments, unfinished refunds, and discrepancies with the provider's books.

import { dateOf, inZone, parseMinute } from "../booking/time";
import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { signal } from "../core/signal";
import { fileLink } from "./confirm";
import { who } from "./day/history";
import { wall } from "./doors";
import { keptAttempt } from "./draft";
import { link } from "./link";
import { gather, watch } from "./live";
import { pages } from "./pages";
import { attempt, button, chip, dialog, fetched, field, heading, input, section, table, toast } from "./parts";
import { openApproval, openOutside } from "./refund";
import { refundAccount } from "./refund-account";
import { type Branch, isHQ, mayRefund } from "./session";
import { dateText, methodText, type TextKey, t, timesText, won } from "./text";

type Payment = Schemas["MoneyPayment"];
type Refund = Schemas["MoneyRefund"];
type Difference = Schemas["Discrepancy"];
type Money = Schemas["MoneyOverview"];

export function moneyScreen(branch: Branch): Child {
  const today = dateOf(inZone(branch.timeZone));
  const month = signal(today.slice(0, 7));
  return [
    heading(
      t("navMoney"),
      h("input", {
        type: "month",
        "aria-label": t("month"),
        value: month,
        max: "2200-12",
        onchange: (e: Event) => month.set((e.target as HTMLInputElement).value || today.slice(0, 7)),
      }),
    ),
    match(month, (shown) => {
      const source = resource(() => api.get<Money>(`/v2/admin/branches/${branch.branch}/money`, { yearMonth: shown }));
      const refresh = gather(source.refresh);
      watch(branch.branch, today, (event) => {
        if (!event || event.kind === "payment") refresh();
      });
      return fetched(source, (data) =>
        // Without a connection, the screen is read again every few seconds: the list must not restart then.
        match(
          () => JSON.stringify(data()),
          () => [
            sums(data.peek()),
            section(t("refundsOpen"), refunds(branch, data.peek().refunds, refresh)),
            section(t("differences"), differences(branch, data.peek().differences, refresh)),
            section(t("payments"), paymentPages(branch, shown)),
          ],
        ),
      );
    }),
  ];
}

/** The sums of the month: by the books what came in and went out, by the reservations what is awaited. */
function sums({ sums, totals, refunds, differences }: Money): HTMLElement {
  const figure = (label: string, value: string, more: string) =>
    h("div", { class: "figure" }, h("dt", null, label), h("dd", null, h("b", null, value), h("small", null, more)));
  const waiting = sums.filter((s) => s.state === "WAITING_FOR_DEPOSIT");
  return h(
    "dl",
    { class: "figures" },
    figure(t("sumDone"), won(totals.paid), t("sumNet", { won: won(totals.net) })),
    figure(
      t("sumWaiting"),
      won(waiting.reduce((sum, s) => sum + s.amount, 0)),
      t("countPayments", { n: waiting.reduce((count, s) => count + s.count, 0) }),
    ),
    figure(
      t("sumBack"),
      won(totals.paid - totals.net),
      totals.outside > 0 ? t("sumOutside", { won: won(totals.outside) }) : "",
    ),
    figure(
      t("refundsOpen"),
      String(refunds.length),
      t("countFailed", { n: refunds.filter((r) => r.state === "FAILED").length }),
    ),
    figure(t("differences"), String(differences.filter((d) => !d.resolvedAt).length), t("unresolved")),
  );
}

const paymentPage = 50;

/** Shows the payments page by page. A change of any payment restarts the list at the newest. */
function paymentPages(branch: Branch, yearMonth: string): Child {
  const path = `/v2/admin/branches/${branch.branch}/payments`;
  let next: string | null = null; // the place of the next page: a payment that changes leaves its own
  const list = pages<Payment>(async (before) => {
    const query = { yearMonth, limit: paymentPage, ...(before ? { before: next ?? before } : {}) };
    const page = await api.get<{ payments: Payment[]; next: string | null }>(path, query);
    next = page.next;
    return page.payments;
  }, paymentPage);
  return [
    list.view((rows) => payments(branch, rows)),
    h(
      "div",
      { class: "row" },
      fileLink(() => `/api${path}.csv?yearMonth=${yearMonth}`, t("downloadCsv")),
    ),
  ];
}

function payments(branch: Branch, list: Payment[]): Child {
  return table<Payment>(
    t("payments"),
    [
      { title: t("paidAt"), kind: "brief", cell: (p) => (p.paidAt ? wall(branch, p.paidAt) : "–") },
      {
        title: t("reservation"),
        cell: (p) =>
          link(
            `/console/${branch.branch}/day?r=${p.id}`,
            `${dateText(parseMinute(p.start))} ${timesText(parseMinute(p.start), parseMinute(p.end))} · ${t("roomNo", { n: p.roomNo })}`,
          ),
      },
      { title: t("colName"), cell: (p) => p.name ?? "–" },
      { title: t("method"), cell: (p) => methodText(p.method) },
      { title: t("amount"), kind: "number", cell: (p) => won(p.amount) },
      {
        title: t("colState"),
        cell: (p) =>
          chip(
            t(`payment_${p.state}` as TextKey) ?? p.state,
            p.state === "DONE" ? "good" : p.state === "WAITING_FOR_DEPOSIT" ? "waiting" : "over",
          ),
      },
    ],
    list,
    t("paymentsNone"),
  );
}

function refunds(branch: Branch, list: Refund[], refresh: () => void): Child {
  return table<Refund>(
    t("refundsOpen"),
    [
      { title: t("createdAt"), kind: "brief", cell: (r) => wall(branch, r.createdAt) },
      {
        title: t("reservation"),
        cell: (r) => link(`/console/${branch.branch}/day?r=${r.reservationId}`, r.reservationId),
      },
      { title: t("amount"), kind: "number", cell: (r) => won(r.amount) },
      {
        title: t("colState"),
        cell: (r) => chip(t(`refund_${r.state}` as TextKey) ?? r.state, r.state === "FAILED" ? "bad" : "hold"),
      },
      { title: t("problem"), cell: (r) => [r.errorCode, r.errorMessage].filter(Boolean).join(" ") },
      { title: t("colWho"), cell: (r) => who(r.requestedBy) },
      {
        title: "",
        kind: "action",
        cell: (r) =>
          mayRefund()
            ? [
                r.approvalOf
                  ? button(foreign(r) ? t("approveAccount") : t("approveRefund"), () =>
                      openApproval(r.reservationId, r.amount, foreign(r), refresh),
                    )
                  : null,
                r.state === "FAILED"
                  ? button(t("refundRetry"), () => openRetry(r, refresh), { kind: "primary" })
                  : null,
                button(t("outside"), () =>
                  openOutside(r.reservationId, r.byHand ?? r.amount, refresh, r.extensionsBalance),
                ),
              ]
            : null,
      },
    ],
    list,
    t("refundsNone"),
  );
}

/** The account that another administrator has to approve; null if none has to be approved. */
const foreign = (r: Refund): string | null => (r.errorCode === "APPROVAL_REQUIRED" ? r.account : null);

/** Sends a failed refund again, to the same account or another. */
export function openRetry(refund: Pick<Refund, "reservationId" | "amount">, refresh: () => void): void {
  dialog(t("refundRetry"), (close) => {
    const account = refundAccount("sameAccount");
    const { run, view } = attempt();
    const submit = () =>
      run(async () => {
        // A number without its bank is refused: without an account, the money would go to the same one again.
        const to = [account.bank, account.number, account.holder].some((part) => part.peek().trim())
          ? account.receiveBody()
          : {};
        await api.post(`/v2/admin/reservations/${refund.reservationId}/refund`, to);
        toast(t("refundStarted"));
        refresh();
        close();
      });
    return [
      h("p", null, t("refundRetryText", { amount: won(refund.amount) })),
      h("div", { class: "form" }, account.fields()),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("refundRetry"), submit, { kind: "primary" }),
      ),
    ];
  });
}

function differences(branch: Branch, list: Difference[], refresh: () => void): Child {
  return table<Difference>(
    t("differences"),
    [
      { title: t("colWhen"), cell: (d) => wall(branch, d.foundAt) },
      { title: t("orderId"), cell: (d) => h("code", { class: "long" }, d.orderId) },
      { title: t("colWhat"), kind: "brief", cell: (d) => t(`difference_${d.kind}` as TextKey) ?? d.kind },
      { title: t("colDetail"), kind: "wide", cell: (d) => d.detail },
      {
        title: t("colState"),
        cell: (d) => (d.resolvedAt ? chip(t("resolved"), "good") : chip(t("unresolved"), "bad")),
      },
      {
        title: "",
        kind: "action",
        cell: (d) =>
          d.resolvedAt
            ? d.resolution === "settled"
              ? t("settledAlone")
              : (d.resolution ?? "")
            : isHQ()
              ? button(t("resolve"), () => openResolve(d, refresh))
              : null,
      },
    ],
    list,
    t("differencesNone"),
  );
}

/** Records how a difference was resolved. */
export function openResolve(
  difference: Pick<Difference, "id" | "kind" | "orderId" | "detail">,
  refresh: () => void,
): void {
  dialog(t("resolve"), (close) => {
    const resolution = signal("");
    const { run, view } = keptAttempt(`resolve-${difference.id}`, { resolution });
    const submit = () =>
      run(async () => {
        await api.post(`/v2/admin/differences/${difference.id}/resolution`, { resolution: resolution.peek().trim() });
        toast(t("resolved"));
        refresh();
        close();
      });
    return [
      h(
        "p",
        null,
        t(`difference_${difference.kind}` as TextKey) ?? difference.kind,
        " · ",
        h("code", { class: "long" }, difference.orderId),
      ),
      h("p", { class: "hint" }, difference.detail),
      field(t("resolution"), input(resolution, { maxlength: 500, autofocus: true }), t("resolutionHint")),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("resolve"), submit, { kind: "primary", disabled: () => !resolution().trim() }),
      ),
    ];
  });
}
