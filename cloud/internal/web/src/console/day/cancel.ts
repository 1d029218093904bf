// Cancelling a reservation: releases a hold, closes a virtual account or refunds a payment.

import { api } from "../../core/api";
import { h, when } from "../../core/dom";
import { signal } from "../../core/signal";
import { bankChoices } from "../banks";
import { keptAttempt } from "../draft";
import { button, dialog, field, input, select, toast } from "../parts";
import { t, won } from "../text";
import type { Record } from "./record";

const reasons = ["guest-request", "mistake", "double-booking", "out-of-order", "misuse", "other"] as const;

export function openCancel(data: Record, refresh: () => void): void {
  const returned = data.balance + data.extensionsBalance;
  const refunds = data.state === "DONE" && returned > 0;
  dialog(t(refunds ? "refundTitle" : "cancelTitle"), (close) => {
    const [bank, number, holder] = [signal(""), signal(""), signal("")];
    const banks = data.needsRefundAccount ? bankChoices() : () => [];
    const reason = signal("");
    const { run, view } = keptAttempt(`cancel-${data.id}`, { reason });
    const ready = () =>
      !data.needsRefundAccount || (bank() !== "" && /^[\d -]{1,20}$/.test(number().trim()) && holder().trim() !== "");
    const submit = () =>
      run(async () => {
        const account = data.needsRefundAccount
          ? {
              refundReceiveAccountBank: bank.peek(),
              refundReceiveAccountNumber: number.peek().replace(/\D/g, ""),
              refundReceiveAccountHolderName: holder.peek().trim(),
            }
          : {};
        const why = reason.peek() ? { reason: reason.peek() } : {};
        await api.delete(
          `/admin/reservation/${data.id}`,
          { bookingStatus: data.bookingStatus },
          { ...account, ...why },
        );
        toast(t(refunds ? "refundStarted" : "canceled"));
        refresh();
        close();
      });
    return [
      h(
        "p",
        null,
        refunds
          ? t("refundText", { name: data.name ?? "", amount: won(returned) })
          : t(data.state === "CONFIRMING" ? "cancelUnclearText" : "cancelText", { name: data.name ?? "–" }),
      ),
      when(
        () => data.needsRefundAccount,
        () =>
          h(
            "div",
            { class: "form" },
            field(
              t("refundBank"),
              select(bank, () => [{ value: "", text: t("choose") }, ...banks()]),
            ),
            field(t("refundNumber"), input(number, { inputmode: "numeric", maxlength: 20 })),
            field(t("refundHolder"), input(holder, { maxlength: 60 })),
          ),
      ),
      field(
        t("reasonOptional"),
        select(reason, () => [
          { value: "", text: t("choose") },
          ...reasons.map((r) => ({ value: r, text: t(`cancelReason_${r}`) })),
        ]),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t(refunds ? "refundDo" : "cancelDo"), submit, { kind: "danger", disabled: () => !ready() }),
      ),
    ];
  });
}
