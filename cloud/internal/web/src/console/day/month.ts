// A month calendar for choosing a day. It marks the days on which the branch is closed.

import { dateOf, inZone, parseDate, weekday } from "../../booking/time";
import { api } from "../../core/api";
import { type Child, h, match } from "../../core/dom";
import type { Schemas } from "../../core/interface";
import { resource } from "../../core/resource";
import { go } from "../../core/router";
import { signal } from "../../core/signal";
import { icon } from "../icons";
import { button, dialog, fetched } from "../parts";
import type { Branch } from "../session";
import { dateText, monthText, t } from "../text";

type CalendarDay = Schemas["CalendarDay"];

export const monthButton = (branch: Branch, date: string): Child =>
  button(icon("day"), () => dialog(t("chooseDay"), (close) => months(branch, date, close)), {
    kind: "plain",
    label: t("chooseDay"),
  });

function months(branch: Branch, date: string, close: () => void): Child {
  const month = signal(date.slice(0, 7));
  const turn = (by: number) => {
    const [year, m] = month.peek().split("-").map(Number) as [number, number];
    month.set(new Date(Date.UTC(year, m - 1 + by, 1)).toISOString().slice(0, 7));
  };
  return h(
    "div",
    { class: "month" },
    h(
      "div",
      { class: "turn" },
      button(icon("left"), () => turn(-1), { kind: "plain", label: t("monthBefore") }),
      h("b", { "aria-live": "polite" }, () => monthText(parseDate(`${month()}-01`))),
      button(icon("right"), () => turn(1), { kind: "plain", label: t("monthAfter") }),
    ),
    match(month, (shown) => {
      const source = resource(
        async () =>
          (await api.get<{ dates: CalendarDay[] }>(`/v2/branches/${branch.branch}/calendar`, { yearMonth: shown }))
            .dates,
      );
      return fetched(source, (dates) => days(branch, dates(), date, close));
    }),
  );
}

function days(branch: Branch, dates: CalendarDay[], date: string, close: () => void): Child {
  const today = dateOf(inZone(branch.timeZone));
  const lead = weekday(parseDate(dates[0]!.date));
  return h(
    "div",
    { class: "days" },
    Array.from({ length: 7 }, (_, i) => h("span", { class: "weekday", "aria-hidden": "true" }, t("weekdays")[i]!)),
    Array.from({ length: lead }, () => h("span", null)),
    dates.map((d) =>
      h(
        "button",
        {
          type: "button",
          class: d.status,
          "aria-current": d.date === date ? "date" : null,
          "data-today": d.date === today || null,
          title: d.reason,
          onclick: () => {
            close();
            go(`/console/${branch.branch}/day/${d.date}`);
          },
        },
        h("span", { class: "hidden" }, dateText(parseDate(d.date)), " "),
        Number(d.date.slice(8)),
        d.status === "available"
          ? null
          : h("span", { class: "hidden" }, ` ${[t("closedDay"), d.reason].filter(Boolean).join(", ")}`),
      ),
    ),
  );
}
