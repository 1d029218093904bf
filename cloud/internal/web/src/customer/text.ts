// The texts of the customers' screens in the language of the page.

import { clockOf, dateOf, day, type Minute } from "../booking/time";
import { brandEn, brandKo } from "../core/brand";
import { formats } from "../core/format";
import { type Language, language, speak, translator } from "../core/language";
import { ko, type Texts } from "../locales/ko";

const tables: Partial<Record<Language, Texts>> = { ko: { ...ko, brand: brandKo } };

/** The English texts of refusals, by errorType. It is empty until the English texts are loaded. */
export let refusals: Record<string, string> = {};

/** Loads the texts of a language. Korean is part of the bundle. */
async function learn(next: Language): Promise<void> {
  if (next === "ko" || tables.en) return;
  const texts = await import("../locales/en");
  tables.en = { ...texts.en, brand: brandEn };
  refusals = texts.refusals;
}

/**
 * Switches the language of the page. If the texts cannot be loaded, as after a deployment, otherwise is called: a new document names
 * those of the present version.
 */
export const speakIn = (next: Language, otherwise: () => unknown): Promise<unknown> =>
  learn(next).then(() => speak(next), otherwise);

export const t = translator<keyof Texts>(() => tables[language.peek()] ?? ko);

export const { won, span, dateText, monthText, weekdayText } = formats(t);

/** Formats a time range such as 15:00–16:20. An end on the next day is marked. */
export function timesText(start: Minute, end: Minute): string {
  return t("range", { from: clockOf(start), to: clockOnDay(end, start) });
}

/** A time relative to a day: 00:30 becomes "the next day 00:30". */
export function clockOnDay(at: Minute, from: Minute): string {
  const sameDay = dateOf(at) === dateOf(from);
  const midnight = at % day === 0 && at - from < day;
  if (sameDay) return clockOf(at);
  return midnight ? "24:00" : t("nextDay", { time: clockOf(at) });
}
