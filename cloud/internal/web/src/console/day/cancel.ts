// Cancelling a reservation: releases a hold, closes a virtual account or refunds a payment.

import { api } from "../../core/api";
import { h } from "../../core/dom";
import { signal } from "../../core/signal";
import { keptAttempt } from "../draft";
import { button, dialog, field, select, toast } from "../parts";
import { refundAccount } from "../refund-account";
import { isHQ } from "../session";
import { t, won } from "../text";
import type { Record } from "./record";

const reasons = ["guest-request", "mistake", "double-booking", "out-of-order", "misuse", "other"] as const;

export function openCancel(data: Record, refresh: () => void): void {
  const returned = data.balance + data.extensionsBalance;
  const refunds = data.state === "DONE" && returned > 0;
  dialog(t(refunds ? "refundTitle" : "cancelTitle"), (close) => {
    const account = data.needsRefundAccount ? refundAccount("choose") : null;
    const reason = signal("");
    const { run, view } = keptAttempt(`cancel-${data.id}`, { reason });
    const ready = () =>
      !account ||
      (account.bank() !== "" && /^[\d -]{1,20}$/.test(account.number().trim()) && account.holder().trim() !== "");
    const submit = () =>
      run(async () => {
        const why = reason.peek() ? { reason: reason.peek() } : {};
        await api.delete(
          `/admin/reservation/${data.id}`,
          { bookingStatus: data.bookingStatus },
          { ...account?.receiveBody(), ...why },
        );
        toast(t(refunds ? ((await waits(data)) ? "refundWaits" : "refundStarted") : "canceled"));
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
      account ? h("div", { class: "form" }, account.fields()) : null,
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

/** Whether the account that was entered waits for another administrator. */
const waits = async ({ id, needsRefundAccount }: Record): Promise<boolean> => {
  if (!needsRefundAccount || isHQ.peek()) return false;
  const now = await api.get<Record>(`/v2/admin/reservations/${id}`).catch(() => null);
  return Boolean(now?.history.some((e) => e.kind === "refund" && e.detail.code === "APPROVAL_REQUIRED"));
};
