// Amounts, lengths and dates in the language of the page. The words are those of the part of the site that asks.

import { type Minute, weekday } from "../booking/time";
import { english, type Params } from "./language";

type Word = "won" | "minutes" | "hours" | "hoursMinutes" | "weekdays" | "monthTitle";

/** 4:07 until an instant */
export function countdown(milliseconds: number): string {
  const seconds = Math.max(0, Math.ceil(milliseconds / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

/** Creates the formats of one part of the site from its translator. */
export function formats(t: (word: Word, params?: Params) => string) {
  /** The name of a day of the week, from Sunday: 월, Mon */
  const weekdayText = (n: number): string =>
    english() ? ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"][n]! : t("weekdays")[n]!;

  return {
    weekdayText,

    /** 12,000원 */
    won: (amount: number): string => t("won", { n: amount.toLocaleString("en-US") }),

    /** 80분, 1시간 20분 */
    span(minutes: number): string {
      const [h, m] = [Math.floor(minutes / 60), minutes % 60];
      if (h === 0) return t("minutes", { n: m });
      return m === 0 ? t("hours", { n: h }) : t("hoursMinutes", { h, m });
    },

    /** 11월 22일 (일) */
    dateText(m: Minute): string {
      const date = new Date(m * 60_000);
      if (english())
        return new Intl.DateTimeFormat("en-GB", {
          weekday: "short",
          day: "numeric",
          month: "short",
          timeZone: "UTC",
        }).format(date);
      return `${date.getUTCMonth() + 1}월 ${date.getUTCDate()}일 (${weekdayText(weekday(m))})`;
    },

    /** 2026년 11월 */
    monthText(m: Minute): string {
      const date = new Date(m * 60_000);
      if (english())
        return new Intl.DateTimeFormat("en-GB", { month: "long", year: "numeric", timeZone: "UTC" }).format(date);
      return t("monthTitle", { year: date.getUTCFullYear(), month: date.getUTCMonth() + 1 });
    },
  };
}
