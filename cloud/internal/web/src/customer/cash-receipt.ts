// The cash receipt (현금영수증) of a deposit: asking for it before the payment, and its state.

import { type Child, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { type Signal, signal } from "../core/signal";
import { type Field, field, looksLikeMobile, plainNumber, tidyMobile } from "./field";
import { t, won } from "./text";

type Wish = Schemas["CashReceiptWish"];

export interface ReceiptChoice {
  view: Child;
  type: Signal<Wish["type"] | "">;
  number: Signal<string>;
  /** The field to check before the form is sent. */
  fields(): Field[];
}

/** Asks for no receipt, one for a person, or one for a business. */
export function receiptChoice(type: Wish["type"] | "", number: string, mobile: Signal<string>): ReceiptChoice {
  const chosen = signal<Wish["type"] | "">(type);
  const entry = field({
    id: "receipt-number",
    label: t("cashNumber"),
    value: number,
    tidy: (v) => (chosen.peek() === "personal" ? tidyMobile(v) : plainNumber(v)),
    problem: (v) => (fits(chosen.peek(), v) ? "" : t(chosen.peek() === "business" ? "needBusiness" : "needMobile")),
    attributes: { inputmode: "numeric", maxlength: 20, autocomplete: "off" },
  });
  const input = h(
    "select",
    {
      id: "receipt-type",
      name: "receipt-type",
      onchange: () => {
        chosen.set(input.value as Wish["type"] | "");
        entry.value.set(input.value === "personal" ? mobile.peek() : "");
      },
    },
    [
      ["", t("cashNone")],
      ["personal", t("cashPersonal")],
      ["business", t("cashBusiness")],
    ].map(([value, text]) => h("option", { value: value!, selected: value === type }, text!)),
  );
  const fields = () => (chosen.peek() ? [entry] : []);
  return {
    view: [
      h("div", { class: "field" }, h("label", { for: "receipt-type" }, t("cashWish")), input),
      when(
        () => chosen() !== "",
        () => [entry.view, h("p", { class: "fine" }, t("cashUse"))],
      ),
    ],
    type: chosen,
    number: entry.value,
    fields,
  };
}

/** Whether a number has the form of its type. The service checks it exactly. */
const fits = (type: string, number: string): boolean =>
  type === "business" ? number.replace(/[-\s]/g, "").length === 10 : looksLikeMobile(number);

/** The state of a receipt, with a link to it. */
export function receiptStatus(r: Schemas["CashReceipt"]): Child {
  const text = statusText[r.status];
  return [
    `${t(text)}${r.amount ? ` · ${won(r.amount)}` : ""}${r.number ? ` · ${r.number}` : ""} `,
    r.url && r.amount ? h("a", { href: r.url, rel: "noreferrer", target: "_blank" }, t("view")) : null,
  ];
}

const statusText = {
  requested: "cashRequested",
  issuing: "cashRequested",
  issued: "cashIssued",
  completed: "cashCompleted",
  canceling: "cashCanceling",
  canceled: "cashCanceled",
  failed: "cashFailed",
  outside: "cashOutside",
  "with-payment": "cashCompleted",
} as const;
