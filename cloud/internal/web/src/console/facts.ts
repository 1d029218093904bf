// The facts about a company that the law requires, and forms of text fields.

import type { Child } from "../core/dom";
import { type Signal, signal } from "../core/signal";
import { field, input } from "./parts";
import { type TextKey, t } from "./text";

export const facts = [
  "name",
  "representative",
  "address",
  "phone",
  "email",
  "businessNumber",
  "mailOrderNumber",
  "hostingProvider",
] as const;

export type Facts = Record<(typeof facts)[number], Signal<string>>;

export const labelOf = (key: string): string => t(`fact_${key}` as TextKey);

export const factFields = (company: Facts): Child =>
  facts.map((key) => field(labelOf(key), input(company[key], { maxlength: 200 })));

export const signalsOf = <K extends string>(keys: readonly K[], values: { [key in K]?: string }) =>
  Object.fromEntries(keys.map((key) => [key, signal(values[key] ?? "")])) as Record<K, Signal<string>>;

export const valuesOf = (signals: Record<string, Signal<string>>) =>
  Object.fromEntries(Object.entries(signals).map(([key, value]) => [key, value.peek().trim()]));
