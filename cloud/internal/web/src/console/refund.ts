// The dialogs that end a refund: a part of the payment, money returned outside the provider, a second administrator's
// approval.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { signal } from "../core/signal";
import { keptAttempt } from "./draft";
import { wholeIn } from "./numbers";
import { attempt, button, dialog, field, input, toast } from "./parts";
import { refundAccount } from "./refund-account";
import { t, won } from "./text";

/** One key per draft: pressing twice, or again after a lost answer, makes one refund. */
async function refund(reservation: string, key: string, body: object, done: string): Promise<void> {
  const result = await api.once<Schemas["RefundResult"]>(key, `/v2/admin/reservations/${reservation}/refunds`, body);
  toast(result.approvalRequired ? t("refundWaits") : done);
}

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
  dialog(t("partRefund"), (close) => {
    const key = signal(newKey());
    const [amount, reason] = [signal(""), signal("")];
    const account = method === "가상계좌" ? refundAccount("chooseBank") : null;
    const { run, view } = keptAttempt(`refund-${reservation}`, { amount, reason, key });
    const submit = () =>
      run(async () => {
        await refund(
          reservation,
          key.peek(),
          { amount: wholeIn(t("refundWon"), amount.peek()), reason: reason.peek().trim(), ...account?.body() },
          t("refundStarted"),
        );
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
        account?.fields() ?? null,
      ),
      view(),
      footer(
        close,
        t("partRefundDo"),
        submit,
        () =>
          amount().trim() !== "" &&
          reason().trim() !== "" &&
          (!account || (account.bank() !== "" && account.number() !== "" && account.holder().trim() !== "")),
      ),
    ];
  });
}

/** Records money that was returned outside the provider; the reservation ends, and the provider refunds its extensions. */
export function openOutside(reservation: string, amount: number, refresh: () => void, extensions = 0): void {
  const key = newKey();
  byHand(refresh, {
    id: reservation,
    title: t("outside"),
    text: [
      t("outsideText", { amount: won(amount) }),
      extensions ? t("outsideExtensions", { amount: won(extensions) }) : "",
    ].join(" "),
    how: t("outsideHow"),
    reference: t("outsideReference"),
    act: t("outsideDo"),
    send: (settledOutside) =>
      refund(reservation, key, { amount: amount || undefined, settledOutside }, t("outsideDone")),
  });
}

/** Records a cash receipt that was issued or canceled by hand. */
export function openReceiptOutside(reservation: string, refresh: () => void): void {
  byHand(refresh, {
    id: reservation,
    title: t("cashOutside"),
    text: t("cashOutsideText"),
    how: t("cashOutsideHow"),
    reference: t("cashOutsideReference"),
    act: t("cashOutsideDo"),
    send: async (settledOutside) => {
      await api.post(`/v2/admin/reservations/${reservation}/cash-receipt`, { settledOutside });
      toast(t("cashOutsideDone"));
    },
  });
}

interface ByHand {
  id: string; // of the reservation
  title: string;
  text: string;
  how: string;
  reference: string;
  act: string;
  send: (evidence: { how: string; reference: string }) => Promise<void>;
}

/** Asks how an administrator ended something by hand. */
function byHand(refresh: () => void, form: ByHand): void {
  dialog(form.title, (close) => {
    const [how, reference] = [signal(""), signal("")];
    const { run, view } = keptAttempt(`by-hand-${form.id}-${form.title}`, { how, reference });
    const submit = () =>
      run(async () => {
        await form.send({ how: how.peek().trim(), reference: reference.peek().trim() });
        refresh();
        close();
      });
    return [
      h("p", null, form.text),
      h(
        "div",
        { class: "form" },
        field(form.how, input(how, { maxlength: 100, autofocus: true })),
        field(form.reference, input(reference, { maxlength: 200 })),
      ),
      view(),
      footer(close, form.act, submit, () => how().trim() !== "" && reference().trim() !== ""),
    ];
  });
}

/** Approves the refund that another administrator has requested; account is null if only its amount is to be approved. */
export function openApproval(reservation: string, amount: number, account: string | null, refresh: () => void): void {
  const title = account ? t("approveAccount") : t("approveRefund");
  decide(title, reservation, refresh, {
    text: account ? t("approveAccountText", { account }) : t("approveRefundText", { amount: won(amount) }),
    send: (path) => api.post(path, {}),
    done: t("refundStarted"),
  });
}

/** Declines the refund that an administrator has requested. */
export function openDecline(reservation: string, amount: number, refresh: () => void): void {
  decide(t("declineRefund"), reservation, refresh, {
    text: t("declineRefundText", { amount: won(amount) }),
    send: (path) => api.delete(path),
    done: t("refundDeclined"),
  });
}

interface Decision {
  text: string;
  send: (path: string) => Promise<unknown>;
  done: string;
}

function decide(title: string, reservation: string, refresh: () => void, decision: Decision): void {
  dialog(title, (close) => {
    const { run, view } = attempt();
    const submit = () =>
      run(async () => {
        await decision.send(`/v2/admin/reservations/${reservation}/refund/approval`);
        toast(decision.done);
        refresh();
        close();
      });
    return [h("p", null, decision.text), view(), footer(close, title, submit, () => true)];
  });
}
