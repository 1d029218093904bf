// The branches and their current availability.

import { clockOf, dateOf, day, inZone } from "../booking/time";
import { type Child, h, when } from "../core/dom";
import { resource } from "../core/resource";
import { calendar, chevron, key, payment } from "./icons";
import { lastBranch } from "./last-branch";
import { giveUp } from "./purchase";
import { recent } from "./recent";
import { fetched, heading } from "./screen";
import { type Branch, branchName, getBranches, getCalendar, getToday } from "./service";
import { t } from "./text";

export function home(): Child {
  giveUp();
  const branches = resource(getBranches);
  return [
    heading(t("homeTitle"), t("homeText")),
    recent()
      ? h(
          "a",
          { class: "card row", href: "/book/receipt" },
          h("span", null, h("b", null, t("recentTitle")), h("span", { class: "dim" }, t("recentLink"))),
          chevron(),
        )
      : null,
    fetched(branches, (list) => () => {
      if (list().length === 0) return h("p", { class: "dim" }, t("noBranches"));
      return h(
        "ul",
        { class: "cards" },
        lastFirst(list()).map((b) => h("li", null, card(b))),
      );
    }),
    steps(),
  ];
}

/** The three steps of a booking, for new customers. */
const steps = (): Child =>
  h(
    "ol",
    { class: "steps", "aria-label": t("stepsTitle") },
    [
      [calendar(), t("stepChoose")],
      [payment(), t("stepPay")],
      [key(), t("stepOpen")],
    ].map(([icon, text]) => h("li", null, icon, h("span", null, text))),
  );

const lastFirst = (list: Branch[]): Branch[] => {
  const last = lastBranch();
  return [...list].sort((a, b) => Number(b.branch === last) - Number(a.branch === last));
};

function card(b: Branch): Child {
  const today = resource(() => todayAt(b));
  return h(
    "a",
    { class: "card row", href: `/b/${b.branch}` },
    h(
      "span",
      null,
      h("b", { class: "big" }, branchName(b)),
      b.address ? h("span", { class: "dim" }, b.address) : null,
      h(
        "span",
        { class: "state" },
        when(
          () => today.data(),
          () => today.data()!.text,
        ),
      ),
    ),
    chevron(),
  );
}

/** The availability of a branch today, in a few words. */
async function todayAt(b: Branch): Promise<{ text: Child }> {
  const now = inZone(b.timeZone);
  const date = dateOf(now);
  const status = (await getCalendar(b.branch, date.slice(0, 7))).find((d) => d.date === date);
  if (status && status.status !== "available")
    return { text: [t("closedToday"), status.reason ? ` (${status.reason})` : ""] };
  const today = await getToday(b.branch, now);
  const rooms = today.rooms.filter((r) => r.enabled);
  const here = Math.floor(now / 10) * 10;
  const free = rooms.filter((r) => today.lengths(r, here, now).length > 0).length;
  if (free > 0) return { text: h("span", { class: "good" }, t(free === 1 ? "freeNowOne" : "freeNow", { n: free })) };
  const starts = rooms.flatMap((r) => today.firstFree(r, here, now - (now % day) + day, now)?.start ?? []);
  return { text: starts.length ? t("freeAt", { time: clockOf(Math.min(...starts)) }) : t("fullToday") };
}
