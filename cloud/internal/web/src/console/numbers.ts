// Whole numbers that are typed into forms.

import { t } from "./text";

/** A mistake in a field. It is shown in the form, and nothing is sent. */
export class FieldError extends Error {}

/** The number of digits such as "30000", "30,000" and "30,000원"; NaN for any other text. */
export function whole(typed: string): number {
  const text = typed.replace(/[\s원]/g, "");
  return /^(\d+|\d{1,3}(,\d{3})+)$/.test(text) ? Number(text.replaceAll(",", "")) : Number.NaN;
}

/** A number as text. In a stored draft, null is a text that was no number. */
export const textOf = (n: number | null): string => String(n ?? "");

/** The number in the field with a label. Any other text throws a FieldError. */
export function wholeIn(label: string, typed: string): number {
  const n = whole(typed);
  if (Number.isNaN(n)) throw new FieldError(t("fieldNotWhole", { field: label }));
  return n;
}

/** The number in the field with a label, decimals included. Any other text throws a FieldError. */
export function decimalIn(label: string, typed: string): number {
  const text = typed.trim();
  if (!/^\d+(\.\d+)?$/.test(text)) throw new FieldError(t("fieldNotWhole", { field: label }));
  return Number(text);
}

/** The price in the field with a label, or null if the field is empty. */
export const priceIn = (label: string, typed: string): number | null => (typed.trim() ? wholeIn(label, typed) : null);
