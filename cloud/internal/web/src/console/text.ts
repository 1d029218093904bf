// The console's texts in the language of the page.

import { clockOf, dateOf, day, type Minute } from "../booking/time";
import { brandEn, brandKo } from "../core/brand";
import { now } from "../core/clock";
import { formats } from "../core/format";
import { english, type Language, language, speak, translator } from "../core/language";
import { ko, type Texts } from "../locales/console-ko";
import { branchByCode, branches } from "./session";

export type TextKey = keyof Texts;

const tables: Partial<Record<Language, Texts>> = { ko: { ...ko, brand: brandKo } };

let errors: Record<string, string> = {};

/** The English text of a message of the service, if it has one. */
export const errorText = (message: string): string | undefined => errors[message];

/** Loads the texts of a language. Without a network the page stays Korean, whose texts are built in. */
export async function speakIn(next: Language): Promise<void> {
  try {
    if (next === "en") {
      const texts = await import("../locales/console-en");
      tables.en ??= { ...texts.en, brand: brandEn };
      errors = texts.errors;
    }
  } catch {
    next = "ko";
  }
  speak(next);
  document.documentElement.lang = next;
}

export const t = translator<TextKey>(() => tables[language.peek()] ?? ko);

const { dateText: shortDate, ...others } = formats(t);
export const { won, span, monthText, weekdayText } = others;

/** Reports whether the month and day of a time, without its year, could be those of a nearer one. */
const isFar = (milliseconds: number): boolean => Math.abs(milliseconds - now()) > 183 * day * 60_000;

/** 11월 22일 (일), and 2025년 11월 22일 (토) if it is far. */
export function dateText(m: Minute): string {
  if (!isFar(m * 60_000)) return shortDate(m);
  const year = dateOf(m).slice(0, 4);
  return english() ? `${shortDate(m)} ${year}` : `${year}년 ${shortDate(m)}`;
}

const methods: Record<string, TextKey> = {
  카드: "methodCard",
  간편결제: "methodEasyPay",
  가상계좌: "virtualAccountName",
  휴대폰: "methodPhone",
  관리자: "methodStaff",
};

/** The name of a payment method, which the interface names in Korean. */
export const methodText = (method: string | null): string => {
  const key = method ? methods[method] : undefined;
  return key && english() ? t(key) : (method ?? "");
};

/** The English words of remote controls, by the words that agents use. */
const remoteWords: Record<string, string> = {
  "전원 끄기": "Off",
  "전원 켜기": "On",
  자동: "Auto",
  냉방: "Cool",
  난방: "Heat",
  제습: "Dry",
  송풍: "Fan",
  최약: "Lowest",
  약: "Low",
  중: "Medium",
  강: "High",
  최강: "Highest",
  정숙: "Quiet",
  터보: "Turbo",
  회전: "Swing",
  고정: "Fixed",
};

/** An option of an air conditioner in the language of the page. */
export const optionText = (name: string): string => {
  if (!english()) return name;
  return remoteWords[name] ?? name.replace(/^(\d)단$/, "Level $1");
};

/** 15:00–16:20 */
export const timesText = (start: Minute, end: Minute): string => `${clockOf(start)}–${endText(start, end)}`;

/** Shows an end at midnight as 24:00 and marks an end on the next day; a later one has its date. */
function endText(start: Minute, end: Minute): string {
  if (dateOf(end) === dateOf(start)) return clockOf(end);
  if (dateOf(end) !== dateOf(start + day)) return `${dateText(end)} ${clockOf(end)}`;
  return end % day === 0 ? "24:00" : t("nextDay", { time: clockOf(end) });
}

/** The time zone of a branch; without one, that of all of the administrator's branches, or the browser's if they differ. */
function zoneOf(code: string): string | undefined {
  const zones = new Set((branchByCode(code) ? [branchByCode(code)!] : branches()).map((b) => b.timeZone));
  return zones.size === 1 ? [...zones][0] : undefined;
}

/** An instant in the time zone of a branch, with its year if it is far. */
export const localText = (at: string, branch = ""): string =>
  new Intl.DateTimeFormat(english() ? "en-GB" : "ko-KR", {
    year: isFar(Date.parse(at)) ? "numeric" : undefined,
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    hourCycle: "h23",
    timeZone: zoneOf(branch),
  }).format(Date.parse(at));

/** 010-1234-5678 */
export const phoneText = (mobile: string): string =>
  /^01\d{8,9}$/.test(mobile) ? mobile.replace(/^(\d{3})(\d{3,4})(\d{4})$/, "$1-$2-$3") : mobile;

/** The elapsed time in rounded words, which stay true for a while. */
export function ago(milliseconds: number): string {
  const seconds = Math.max(0, Math.round(milliseconds / 1000));
  if (seconds < 60) return t("justNow");
  if (seconds < 3600) return t("minutesAgo", { n: Math.floor(seconds / 60) });
  if (seconds < 48 * 3600) return t("hoursAgo", { n: Math.floor(seconds / 3600) });
  return t("daysAgo", { n: Math.floor(seconds / 86400) });
}
