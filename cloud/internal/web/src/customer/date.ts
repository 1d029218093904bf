// The choice of a day: the next days as chips, all others in a calendar month.

import { dateOf, day, inZone, type Minute, parseDate, weekday } from "../booking/time";
import { ticking } from "../core/clock";
import { type Child, h, match } from "../core/dom";
import { resource } from "../core/resource";
import { query } from "../core/router";
import { computed } from "../core/signal";
import { exchangeNote } from "./exchange";
import { missing } from "./missing";
import { giveUp } from "./purchase";
import { failure, fetched, heading, loading } from "./screen";
import { seller } from "./seller";
import { type Branch, branchName, type CalendarDay, getBranch, getCalendar, lastDay } from "./service";
import { dateText, monthText, t, weekdayText } from "./text";

const week = 7;

export function datePage({ branch = "" }: Record<string, string>): Child {
  void giveUp();
  return fetched(
    resource(() => getBranch(branch)),
    (found) => () => {
      const b = found();
      return b ? screen(b) : missing();
    },
  );
}

function screen(b: Branch): Child {
  seller.set(b.seller);
  const time = ticking();
  const days = computed(() => parseDate(dateOf(inZone(b.timeZone, time()))));
  // The page may stay open past midnight.
  return match(days, (today) => choice(b, today, lastDay(b, today)));
}

function choice(b: Branch, today: Minute, last: Minute): Child {
  const month = () => validMonth(query().get("month"), today, last);
  return [
    exchangeNote(b.branch),
    heading(
      `${branchName(b)}, ${t("dateTitle")}`,
      b.address ? h("span", { lang: "ko" }, b.address) : null,
      t("branchPage", { branch: branchName(b) }),
    ),
    chips(b, today, last),
    match(month, (shown) => calendar(b, shown, today, last)),
  ];
}

const monthOf = (m: Minute): string => dateOf(m).slice(0, 7);

function validMonth(asked: string | null, today: Minute, last: Minute): string {
  return asked && asked >= monthOf(today) && asked <= monthOf(last) ? asked : monthOf(today);
}

const dayOfMonth = (m: Minute): string => String(new Date(m * 60_000).getUTCDate());

const href = (b: Branch, m: Minute): string => `/b/${b.branch}/${dateOf(m)}`;

/** The days of a month by date, fetched for each month shown. */
const daysOf = async (b: Branch, months: string[]): Promise<Map<string, CalendarDay>> =>
  new Map((await Promise.all(months.map((m) => getCalendar(b.branch, m)))).flat().map((d) => [d.date, d]));

function chips(b: Branch, today: Minute, last: Minute): Child {
  const days = Array.from({ length: week }, (_, i) => today + i * day).filter((m) => m <= last);
  const months = resource(() => daysOf(b, [...new Set(days.map(monthOf))]));
  const near = [t("today"), t("tomorrow")];
  const label = (m: Minute, i: number) => near[i] || weekdayText(weekday(m));
  return h(
    "ul",
    { class: "day-chips" },
    days.map((m, i) =>
      // Only closed days are rendered again, because the user may be touching another one.
      h(
        "li",
        null,
        match(
          () => offText(months.data()?.get(dateOf(m))),
          (off) => {
            const inside: Child = [
              h("span", null, label(m, i)),
              h("b", { "aria-hidden": "true" }, dayOfMonth(m)),
              h("span", { class: "hidden" }, dateText(m), " ", korean(off)),
            ];
            return off
              ? h("span", { class: "day-chip off" }, inside)
              : h("a", { class: "day-chip", href: href(b, m) }, inside);
          },
        ),
      ),
    ),
  );
}

const offText = (d: CalendarDay | undefined): string => (d && d.status !== "available" ? closedText(d) : "");

/** Reasons and names of holidays exist in Korean only. */
const korean = (reason: string): Child => reason && h("span", { lang: "ko" }, reason);

const closedText = (d: CalendarDay): string => d.reason ?? t(d.status === "holiday" ? "dayHoliday" : "dayClosed");

function calendar(b: Branch, month: string, today: Minute, last: Minute): Child {
  const first = parseDate(`${month}-01`);
  const step = (to: string, text: string, sign: string): Child =>
    to < monthOf(today) || to > monthOf(last)
      ? h("span", { class: "icon-button text idle", "aria-hidden": "true" }, sign)
      : h(
          "a",
          {
            class: "icon-button text",
            "aria-label": text,
            href: `/b/${b.branch}?month=${to}`,
            "data-replace": true, // the way back leads past the months
          },
          sign,
        );
  const days = resource(() => daysOf(b, [month]));
  return h(
    "section",
    { class: "calendar" },
    h(
      "div",
      { class: "month" },
      step(monthOf(first - 1), t("previousMonth"), "‹"),
      h("h2", { "aria-live": "polite" }, monthText(first)),
      step(monthOf(first + 31 * day), t("nextMonth"), "›"),
    ),
    () => {
      const now = days();
      if (now.is === "loading") return loading();
      if (now.is === "failed") return failure(now.error, days.retry);
      return [table(b, first, now.data, today, last), reasons([...now.data.values()], today)];
    },
  );
}

function table(b: Branch, first: Minute, days: Map<string, CalendarDay>, today: Minute, last: Minute): Child {
  const start = first - weekday(first) * day;
  const month = monthOf(first);
  const weeks = [];
  for (let at = start; at < first + 31 * day && (monthOf(at) === month || at < first); at += week * day) weeks.push(at);
  const cell = (m: Minute): Child => {
    if (monthOf(m) !== month) return h("td", null);
    const d = days.get(dateOf(m));
    const never = m < today ? t("dayPast") : m > last ? t("dayFar") : "";
    const off = never || offText(d);
    const current = m === today ? "date" : null;
    // The cell shows the number; its label has the whole date and its status.
    const inside: Child = [
      h("span", { "aria-hidden": "true" }, dayOfMonth(m)),
      h(
        "span",
        { class: "hidden" },
        m === today && `${t("today")} `,
        dateText(m),
        " ",
        never || korean(off || (d?.reason ?? "")),
      ),
    ];
    if (off) return h("td", { class: m < today ? "past" : "off" }, h("span", { "aria-current": current }, inside));
    return h(
      "td",
      { class: d?.reason ? "festive" : null },
      h("a", { href: href(b, m), "aria-current": current }, inside),
    );
  };
  return h(
    "table",
    null,
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        Array.from({ length: week }, (_, i) => h("th", { scope: "col" }, weekdayText(i))),
      ),
    ),
    h(
      "tbody",
      null,
      weeks.map((w) =>
        h(
          "tr",
          null,
          Array.from({ length: week }, (_, i) => cell(w + i * day)),
        ),
      ),
    ),
  );
}

/** The reasons for closed days, listed below the month and grouped by reason. */
function reasons(days: CalendarDay[], today: Minute): Child {
  const list = (wanted: (d: CalendarDay) => boolean): [string, string][] => {
    const byReason = new Map<string, number[]>();
    for (const d of days) {
      if (parseDate(d.date) < today || !wanted(d)) continue;
      const text = closedText(d);
      byReason.set(text, [...(byReason.get(text) ?? []), Number(d.date.slice(8))]);
    }
    return [...byReason].map(([text, numbers]) => [text, t("days", { list: numbers.join(", ") })]);
  };
  const section = (title: string, rows: [string, string][]): Child =>
    rows.length === 0
      ? null
      : h(
          "div",
          { class: "reasons" },
          h("h3", null, title),
          h(
            "ul",
            null,
            rows.map(([reason, numbers]) => h("li", null, h("b", null, numbers), " ", korean(reason))),
          ),
        );
  return [
    section(
      t("closedDays"),
      list((d) => d.status !== "available"),
    ),
    section(
      t("openHolidays"),
      list((d) => d.status === "available" && d.reason !== null),
    ),
  ];
}
