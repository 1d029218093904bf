// The dialogs that end a refund: a part of the payment, money returned outside the provider, a second administrator's
// approval.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import { type Signal, signal } from "../core/signal";
import { getBanks } from "./banks";
import { attempt, button, dialog, field, input, select, toast } from "./parts";
import { t, won } from "./text";

const digits = (text: Signal<string>): number => Number(text().replace(/\D/g, ""));

/** One key per dialog: pressing twice, or again after a lost answer, makes one refund. */
const refund = (reservation: string, key: string, body: object): Promise<unknown> =>
  api.once(key, `/v2/admin/reservations/${reservation}/refunds`, body);

const newKey = (): string => `${Date.now()}-${Math.random().toString(36).slice(2)}`;

function footer(close: () => void, text: string, submit: () => void, ready: () => boolean): Child {
  return h(
    "div",
    { class: "footer" },
    button(t("back"), close, { kind: "plain" }),
    button(text, submit, { kind: "primary", disabled: () => !ready() }),
  );
}

/** Returns a part of a payment; the reservation stays. */
export function openPartRefund(reservation: string, method: string | null, refresh: () => void): void {
  const key = newKey();
  dialog(t("partRefund"), (close) => {
    const [amount, reason, bank, account, holder] = [signal(""), signal(""), signal(""), signal(""), signal("")];
    const banks = signal<{ value: string; text: string }[]>([]);
    const deposit = method === "가상계좌";
    if (deposit) void getBanks().then((list) => banks.set(list.map((b) => ({ value: b.code, text: b.name }))));
    const { run, view } = attempt();
    const submit = () =>
      run(async () => {
        const to = deposit
          ? {
              refundBankCode: bank.peek(),
              refundAccount: account.peek().replace(/\D/g, ""),
              refundHolder: holder.peek().trim(),
            }
          : {};
        await refund(reservation, key, { amount: digits(amount), reason: reason.peek().trim(), ...to });
        toast(t("refundStarted"));
        refresh();
        close();
      });
    return [
      h("p", null, t("partRefundText")),
      h(
        "div",
        { class: "form" },
        field(t("refundWon"), input(amount, { inputmode: "numeric", maxlength: 10, autofocus: true })),
        field(t("refundReason"), input(reason, { maxlength: 200 })),
        deposit
          ? [
              field(
                t("refundBank"),
                select(bank, () => [{ value: "", text: t("chooseBank") }, ...banks()]),
              ),
              field(t("refundNumber"), input(account, { inputmode: "numeric", maxlength: 20 })),
              field(t("refundHolder"), input(holder, { maxlength: 60 })),
            ]
          : null,
      ),
      view(),
      footer(
        close,
        t("partRefundDo"),
        submit,
        () =>
          digits(amount) > 0 &&
          reason().trim() !== "" &&
          (!deposit || (bank() !== "" && account() !== "" && holder().trim() !== "")),
      ),
    ];
  });
}

/** Records money that was returned outside the provider; the reservation ends. */
export function openOutside(reservation: string, amount: number, refresh: () => void): void {
  const key = newKey();
  dialog(t("outside"), (close) => {
    const [how, reference] = [signal(""), signal("")];
    const { run, view } = attempt();
    const submit = () =>
      run(async () => {
        await refund(reservation, key, {
          settledOutside: { how: how.peek().trim(), reference: reference.peek().trim() },
        });
        toast(t("outsideDone"));
        refresh();
        close();
      });
    return [
      h("p", null, t("outsideText", { amount: won(amount) })),
      h(
        "div",
        { class: "form" },
        field(t("outsideHow"), input(how, { maxlength: 100, autofocus: true })),
        field(t("outsideReference"), input(reference, { maxlength: 200 })),
      ),
      view(),
      footer(close, t("outsideDo"), submit, () => how().trim() !== "" && reference().trim() !== ""),
    ];
  });
}

/** Approves the account that another administrator has entered. */
export function openApproval(reservation: string, account: string, refresh: () => void): void {
  dialog(t("approveAccount"), (close) => {
    const { run, view } = attempt();
    const submit = () =>
      run(async () => {
        await api.post(`/v2/admin/reservations/${reservation}/refund/approval`, {});
        toast(t("refundStarted"));
        refresh();
        close();
      });
    return [
      h("p", null, t("approveAccountText", { account })),
      view(),
      footer(close, t("approveAccount"), submit, () => true),
    ];
  });
}
