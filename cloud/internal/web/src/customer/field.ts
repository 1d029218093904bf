// Form fields: a label, an input, and what is wrong with it.

import { type Child, h, when } from "../core/dom";
import { type Signal, signal } from "../core/signal";

export interface Field {
  view: Child;
  value: Signal<string>;
  /** Checks the value, shows what is wrong, and says whether all is well. */
  check(): boolean;
  focus(): void;
}

export interface FieldOptions {
  id: string;
  label: string;
  value?: string;
  /** Describes what is wrong with a value; empty when nothing is. */
  problem?: (value: string) => string;
  /** Puts a value into its usual form when the field is left or checked. */
  tidy?: (value: string) => string;
  /** More attributes of the input. */
  attributes?: Record<string, string | number | boolean>;
}

export function field({
  id,
  label,
  value: initial = "",
  problem = () => "",
  tidy,
  attributes = {},
}: FieldOptions): Field {
  const value = signal(initial);
  const wrong = signal("");
  const input = h("input", {
    id,
    name: id,
    type: "text",
    ...attributes,
    value: () => value(),
    "aria-invalid": () => (wrong() ? "true" : null),
    "aria-describedby": () => (wrong() ? `${id}-problem` : null),
    oninput: () => {
      value.set(input.value);
      if (wrong.peek()) wrong.set(problem(input.value));
    },
    onblur: () => neat(),
  });
  const neat = () => tidy && value.set(tidy(value.peek()));
  const check = () => {
    neat(); // Enter sends the form while the field has the focus, and a field that the browser fills never had it
    wrong.set(problem(value.peek().trim()));
    return wrong.peek() === "";
  };
  const view = h("div", { class: "field" }, h("label", { for: id }, label), input, problemText(id, wrong));
  return { view, value, check, focus: () => input.focus() };
}

export function select(
  id: string,
  label: string,
  blank: string,
  options: () => { value: string; text: string }[],
  problem: string,
): Field {
  const value = signal("");
  const wrong = signal("");
  const input = h(
    "select",
    {
      id,
      name: id,
      "aria-invalid": () => (wrong() ? "true" : null),
      "aria-describedby": () => (wrong() ? `${id}-problem` : null),
      onchange: () => {
        value.set(input.value);
        wrong.set("");
      },
    },
    h("option", { value: "" }, blank),
    () => options().map((o) => h("option", { value: o.value }, o.text)),
  );
  const check = () => {
    wrong.set(value.peek() ? "" : problem);
    return wrong.peek() === "";
  };
  return {
    view: h("div", { class: "field" }, h("label", { for: id }, label), input, problemText(id, wrong)),
    value,
    check,
    focus: () => input.focus(),
  };
}

const problemText = (id: string, wrong: Signal<string>): Child =>
  when(
    () => wrong(),
    () => h("p", { class: "problem", id: `${id}-problem` }, () => wrong()),
  );

/** Checks all fields and leads to the first that is wrong. */
export function checkAll(fields: Field[]): boolean {
  const wrong = fields.filter((f) => !f.check());
  wrong[0]?.focus();
  return wrong.length === 0;
}

export function tick(id: string, label: Child, checked: Signal<boolean>, more: Child = null): Child {
  const input = h("input", {
    type: "checkbox",
    id,
    checked: () => checked(),
    onchange: () => checked.set(input.checked),
  });
  return h("div", { class: "tick" }, h("label", { for: id }, input, h("span", null, label)), more);
}

/** 010 has eight more digits, the older prefixes seven or eight. */
const korean = /^(010)(\d{4})(\d{4})$|^(01[16789])(\d{3,4})(\d{4})$/;

/** Writes a number in ASCII: keyboards type full-width digits, and address books copy dashes and invisible marks. */
export const plainNumber = (text: string): string =>
  text
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .replace(/\p{Pd}/gu, "-")
    .replace(/\p{Zs}/gu, " ")
    .trim();

/**
 * Groups the digits of a Korean mobile number, also one with the country code instead of its zero. Anything else stays as it was
 * typed, so that a mistake stays visible.
 */
export function tidyMobile(text: string): string {
  const plain = plainNumber(text);
  const parts = korean.exec(plain.replace(/\D/g, "").replace(/^(00)?820?(?=1)/, "0"));
  return parts && !plain.includes("+") ? parts.slice(1).filter(Boolean).join("-") : plain;
}

/** Whether a text is a Korean mobile number, or an international number of 8 to 15 digits after a plus sign. */
export function looksLikeMobile(text: string): boolean {
  if (!/^\+?[\d\-(). ]{8,20}$/.test(text)) return false;
  const digits = text.replace(/\D/g, "");
  return text.startsWith("+") ? digits.length >= 8 && digits.length <= 15 : korean.test(digits);
}

/** Whether a mobile number is outside Korea. The message provider reaches Korean numbers only. */
export const isAbroad = (mobile: string): boolean => /^\+(?!82)/.test(mobile.replace(/[^\d+]/g, ""));

/** The contact that receives the key. A guest with a number outside Korea gets it by e-mail. */
export const keyRecipient = (mobile: string, email: string | null): string => (isAbroad(mobile) && email) || mobile;

export const looksLikeEmail = (text: string): boolean =>
  text.length <= 100 && /^[^\s@<>,;"]+@[^\s@<>,;"]+\.[^\s@<>,;"]+$/.test(text);
