// The money desk: what waits for a person over all of one's branches, each with the actions that end it.

import { api } from "../core/api";
import { now, ticking, whileSeen } from "../core/clock";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { computed, type Readable } from "../core/signal";
import { branchTitle } from "./alerts";
import { link } from "./link";
import { gather, watchAll } from "./live";
import { openResolve, openRetry } from "./money";
import { attempt, button, chip, dialog, fetched, heading, table, toast } from "./parts";
import { openApproval, openDecline, openOutside, openReceiptOutside } from "./refund";
import { refundAccount } from "./refund-account";
import { isHQ, mayRefund } from "./session";
import { ago, t, won } from "./text";

type Item = Schemas["MoneyDeskItem"];

/** The interval in ms at which the list is read again: no event announces what waits. */
const interval = 15_000;
/** The number of items that the service lists at most, the oldest. */
const most = 500;

export function deskScreen(): Child {
  const source = resource(() => api.get<Schemas["MoneyDesk"]>("/v2/admin/money-desk"));
  const refresh = gather(source.refresh);
  watchAll(refresh);
  whileSeen(interval, refresh);
  const second = ticking();
  const minute = computed(() => Math.floor(second() / 60_000));
  return [
    heading(t("navDesk")),
    h("p", { class: "lead" }, t("deskLead")),
    // The focus and the errors of the actions stay while nothing changes.
    fetched(source, (data) =>
      match(
        () => JSON.stringify(data().items.map((i) => [i, due(i)])),
        () => [
          queue(data.peek().items, minute, refresh),
          data.peek().items.length < most ? null : h("p", { class: "hint" }, t("deskCut", { n: most })),
        ],
      ),
    ),
  ];
}

function queue(items: Item[], minute: Readable<number>, refresh: () => void): Child {
  return table<Item>(
    t("navDesk"),
    [
      {
        title: t("deskSince"),
        kind: "brief",
        cell: (i) => () => {
          minute(); // the text changes in place
          return ago(now() - Date.parse(i.since));
        },
      },
      { title: t("branch"), cell: (i) => (i.branch ? branchTitle(i.branch) : t("noBranch")) },
      { title: t("colWhat"), kind: "brief", cell: (i) => chip(t(`desk_${i.kind}`), late(i) ? "bad" : "hold") },
      {
        title: t("reservation"),
        cell: (i) =>
          i.branch && i.reservationId
            ? link(`/console/${i.branch}/day?r=${i.reservationId}`, i.reservationId)
            : h("code", { class: "long" }, i.orderId),
      },
      { title: t("amount"), kind: "number", cell: (i) => (i.amount ? won(i.amount) : "–") },
      { title: t("colDetail"), kind: "wide", cell: (i) => [i.detail, i.account].filter(Boolean).join(" · ") },
      { title: "", kind: "action", cell: (i) => actions(i, refresh) },
    ],
    items,
    t("deskNone"),
  );
}

/** Whether an item is not only in progress. */
const late = (i: Item): boolean => i.kind !== "pending" || due(i);
const due = (i: Item): boolean => i.dueAt !== null && Date.parse(i.dueAt) <= now();

/** Returns the actions that end an item, the usual one first. */
function actions(i: Item, refresh: () => void): Child {
  const id = i.reservationId;
  const list: Child[] = [];
  if (id && i.kind === "cash-receipt")
    return mayRefund()
      ? [retryReceipt(id, refresh), button(t("cashOutside"), () => openReceiptOutside(id, refresh))]
      : list;
  if (id && mayRefund()) {
    if (i.kind === "name-mismatch" || i.kind === "approval") {
      const account = i.kind === "approval" ? null : i.account;
      const title = account ? t("approveAccount") : t("approveRefund");
      list.push(button(title, () => openApproval(id, i.amount, account, refresh), { kind: "primary" }));
    }
    if (i.kind === "approval") list.push(button(t("declineRefund"), () => openDecline(id, i.amount, refresh)));
    if (i.refundId && ["failed", "late", "name-mismatch"].includes(i.kind))
      list.push(button(t("refundRetry"), () => openRetry({ reservationId: id, amount: i.amount }, refresh)));
    if (i.kind !== "failed" && i.kind !== "name-mismatch" && i.kind !== "approval") list.push(check(id, refresh));
    if (i.refundId ? i.kind !== "approval" && (i.kind !== "pending" || due(i)) : i.kind === "refused")
      list.push(button(t("outside"), () => openOutside(id, i.byHand ?? i.amount, refresh, i.extensionsBalance)));
  }
  const difference = i.differenceId;
  if (difference && isHQ()) {
    if (i.kind === "orphan")
      list.push(button(t("deskOrphan"), () => openOrphan(difference, refresh), { kind: "primary" }));
    list.push(button(t("resolve"), () => openResolve({ ...i, id: difference }, refresh)));
  }
  return list;
}

/** Issues a cash receipt, or cancels it, again. */
function retryReceipt(reservation: string, refresh: () => void): Child {
  const { run, view } = attempt();
  const retry = () =>
    run(async () => {
      await api.post(`/v2/admin/reservations/${reservation}/cash-receipt`, {});
      toast(t("cashRetried"));
      refresh();
    });
  return [button(t("cashRetry"), retry, { kind: "primary" }), view()];
}

function check(reservation: string, refresh: () => void): Child {
  const { run, view } = attempt();
  const ask = () =>
    run(async () => {
      await api.post(`/v2/admin/reservations/${reservation}/check`, {});
      toast(t("deskChecked"));
      refresh();
    });
  return [button(t("deskCheck"), ask), view()];
}

/** Refunds a payment without a reservation. */
function openOrphan(difference: string, refresh: () => void): void {
  dialog(t("deskOrphan"), (close) => {
    const account = refundAccount("chooseBank");
    const { run, view } = attempt();
    const submit = () =>
      run(async () => {
        const to = account.bank.peek() ? account.body() : {};
        await api.post(`/v2/admin/differences/${difference}/refund`, to);
        toast(t("refundStarted"));
        refresh();
        close();
      });
    return [
      h("p", null, t("deskOrphanText")),
      h("div", { class: "form" }, account.fields()),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("deskOrphan"), submit, { kind: "primary" }),
      ),
    ];
  });
}
