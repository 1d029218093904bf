// The cancellation of a reservation: the reason and, for virtual accounts, the refund account.

import { parseMinute, parseStoredEnd } from "../booking/time";
import { refusedWith } from "../core/api";
import { type Child, h, match } from "../core/dom";
import { resource } from "../core/resource";
import { type Signal, signal } from "../core/signal";
import { checkAll, field, plainNumber, select } from "./field";
import { check, sign } from "./icons";
import { missing } from "./missing";
import { cancelable, loadMine, type Mine } from "./my";
import {
  actions,
  attempt,
  button,
  closeDialog,
  explain,
  facts,
  fetched,
  heading,
  link,
  note,
  notice,
  openDialog,
  trouble,
} from "./screen";
import { seller } from "./seller";
import {
  type Bank,
  branchName,
  cancelPayment,
  getBanks,
  type Quote,
  quoteRefund,
  type RefundAccount,
  refundText,
} from "./service";
import { dateText, t, timesText, won } from "./text";

const longestReason = 200;

export function cancelPage({ id = "" }: Record<string, string>): Child {
  const found = resource(async () => {
    const m = (await loadMine())?.find((one) => String(one.record.id) === id);
    if (!m) return null;
    const open = m.record.status !== "CANCELED" && cancelable(m);
    return { m, quote: open ? await quoteRefund(m.record.id) : null };
  });
  return fetched(found, (data) => {
    const f = data.peek();
    if (!f) return missing();
    seller.set(f.m.branch.seller);
    if (f.m.record.status === "CANCELED") return canceledBefore();
    const canceled = signal(false);
    const present = () => data() ?? f;
    return match(canceled, (is) => (is ? done(present()) : form(f.m, present, found.refresh, canceled)));
  });
}

interface Found {
  m: Mine;
  quote: Quote | null;
}

const refunded = ({ m }: Found): boolean => m.record.status === "DONE";

const canceledBefore = (): Child => notice(sign(check(), "good"), t("cancelDone"), "", link(t("my"), "/my", "primary"));

const amount = ({ quote }: Found): number => quote?.amount ?? 0;

function done(f: Found): Child {
  const text = amount(f)
    ? t("cancelDoneText", { amount: won(amount(f)) })
    : t(refunded(f) ? "cancelDoneNone" : "cancelDoneFree");
  return notice(sign(check(), "good"), t("cancelDone"), text, link(t("my"), "/my", "primary"));
}

/** The refund of present changes while the form is open, if a deadline of the policy passes or a deposit arrives. */
function form(m: Mine, present: () => Found, refresh: () => Promise<void>, canceled: Signal<boolean>): Child {
  const reasons = [t("reasonPlan"), t("reasonMistake"), t("reasonOther"), t("reasonElse")];
  const chosen = signal("");
  const detail = field({
    id: "detail",
    label: t("reasonText"),
    attributes: { maxlength: longestReason - 40, autocomplete: "off" },
  });
  let account: ReturnType<typeof refundFields> | null = null;
  const { busy, problem, run } = attempt(async (error) => {
    if (!refusedWith(error, 401, 409)) return explain(error);
    await refresh(); // without a session, it leads to the login
    return t("refundChanged");
  });
  const submit = () =>
    run(async () => {
      const reason = [chosen(), detail.value().trim()].filter(Boolean).join(": ");
      await cancelPayment(m.record.id, reason.slice(0, longestReason), amount(present()), account?.read() ?? null);
      canceled.set(true);
    });
  const ask = () => {
    problem.set("");
    if (!chosen()) problem.set(t("needReason"));
    else if (!account || checkAll(account.fields)) openDialog(dialog);
  };
  const dialog = h(
    "dialog",
    { class: "ask", "aria-labelledby": "ask-title", "aria-describedby": "ask-text" },
    h("h2", { id: "ask-title" }, t("cancelCheck")),
    h("p", { id: "ask-text" }, t("cancelCheckText")),
    () =>
      refunded(present())
        ? h("p", { class: "total" }, h("span", null, t("refundAmount")), h("b", null, won(amount(present()))))
        : null,
    h(
      "div",
      { class: "pair" },
      button(t("keep"), () => closeDialog(dialog), { kind: "soft" }),
      button(
        t("cancelNow"),
        () => {
          closeDialog(dialog);
          void submit();
        },
        { kind: "danger" },
      ),
    ),
  );
  const start = parseMinute(m.record.startDateTime);
  const summary = () => {
    const { quote } = present();
    return [
      facts([
        [t("labelBranch"), `${branchName(m.branch)} ${t("room", { no: m.record.roomNo })}`],
        [t("labelTime"), `${dateText(start)} ${timesText(start, parseStoredEnd(m.record.endDateTime))}`],
        [t("refundAmount"), refunded(present()) && quote ? h("b", null, won(quote.amount)) : null],
      ]),
      quote ? note(refundText(quote), "good") : null,
    ];
  };
  return [
    heading(t("cancelTitle")),
    summary,
    cancelable(m) ? null : note(t("tooLate"), "warn"),
    h(
      "fieldset",
      { class: "options" },
      h("legend", null, t("cancelReason")),
      reasons.map((text, i) =>
        h(
          "label",
          { class: "option" },
          h("input", {
            type: "radio",
            name: "reason",
            value: i,
            checked: () => chosen() === text,
            onchange: () => chosen.set(text),
          }),
          h("span", null, text),
        ),
      ),
    ),
    detail.view,
    match(
      () => present().quote?.needsAccount ?? false,
      (needed) => {
        account = needed ? refundFields() : null;
        return account?.view ?? null;
      },
    ),
    link(t("keep"), "/my", "plain"),
    // Directly above the button that it moves down, so that the second press of a double press meets no other control.
    trouble(problem),
    actions(button(t("cancelNow"), ask, { kind: "danger", busy, disabled: () => !cancelable(m) })),
    dialog,
  ];
}

export function refundFields() {
  const banks = resource(getBanks);
  const list = () => (banks.data() ?? []).map((b: Bank) => ({ value: b.code, text: b.name }));
  const bank = select("bank", t("fieldBank"), t("pickBank"), list, t("needBank"));
  const number = field({
    id: "account",
    label: t("fieldAccount"),
    tidy: plainNumber,
    problem: (v) => (/^[\d -]{6,20}$/.test(v) ? "" : t("needAccount")),
    attributes: { inputmode: "numeric", autocomplete: "off", maxlength: 20 },
  });
  const holder = field({
    id: "holder",
    label: t("fieldHolder"),
    problem: (v) => (v ? "" : t("needHolder")),
    attributes: { autocomplete: "name", maxlength: 60 },
  });
  const read = (): RefundAccount => ({
    refundReceiveAccountBank: bank.value(),
    refundReceiveAccountNumber: number.value().trim(),
    refundReceiveAccountHolderName: holder.value().trim(),
  });
  return {
    fields: [bank, number, holder],
    read,
    view: h(
      "section",
      { class: "refund" },
      h("h2", null, t("refundTo")),
      fetched(banks, () => bank.view),
      number.view,
      holder.view,
    ),
  };
}
