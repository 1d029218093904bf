// The branches and their current availability.

import { clockOf, parseMinute } from "../booking/time";
import { type Child, h, when } from "../core/dom";
import { resource } from "../core/resource";
import { batch, effect, onCleanup, type Signal, signal } from "../core/signal";
import { calendar, chevron, key, payment } from "./icons";
import { lastBranch } from "./last-branch";
import { giveUp } from "./purchase";
import { recent } from "./recent";
import { button, fetched, heading } from "./screen";
import { type BranchNow, branchName, getBranchesNow } from "./service";
import { thumbnail } from "./showcase";
import { t } from "./text";

export function home(): Child {
  giveUp();
  const search = signal("");
  const first = resource(() => getBranchesNow(search.peek(), null));
  const more = signal<BranchNow[]>([]);
  const next = signal<string | null>(null);
  effect(() => {
    next.set(first.data()?.next ?? null);
    more.set([]);
  });
  const busy = signal(false);
  const loadMore = async () => {
    busy.set(true);
    try {
      const page = await getBranchesNow(search.peek(), next.peek());
      batch(() => {
        more.set([...more.peek(), ...page.branches]);
        next.set(page.next);
      });
    } finally {
      busy.set(false);
    }
  };
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
    fetched(first, (data) => [
      data.peek().next ? searchBox(search, () => void first.refresh()) : null,
      () => {
        const list = [...data().branches, ...more()];
        if (list.length === 0) return h("p", { class: "dim" }, t(search.peek() ? "noMatch" : "noBranches"));
        return h(
          "ul",
          { class: "cards" },
          lastFirst(list).map((b) => h("li", null, card(b))),
        );
      },
      when(next, () => button(t("moreBranches"), () => void loadMore(), { kind: "soft", busy })),
    ]),
    steps(),
  ];
}

const typingDelay = 300; // ms

/** A search field that searches while the customer types. */
function searchBox(search: Signal<string>, run: () => void): Child {
  let timer: ReturnType<typeof setTimeout> | undefined;
  onCleanup(() => clearTimeout(timer));
  const input = h("input", {
    type: "search",
    id: "search",
    maxlength: 50,
    autocomplete: "off",
    oninput: () => {
      search.set(input.value.trim());
      clearTimeout(timer);
      timer = setTimeout(run, typingDelay);
    },
  });
  return h("div", { class: "field" }, h("label", { for: "search" }, t("searchBranch")), input);
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

const lastFirst = (list: BranchNow[]): BranchNow[] => {
  const last = lastBranch();
  return [...list].sort((a, b) => Number(b.branch === last) - Number(a.branch === last));
};

const card = (b: BranchNow): Child =>
  h(
    "a",
    { class: "card row", href: `/b/${b.branch}` },
    b.photo ? thumbnail(b.photo) : null,
    h(
      "span",
      null,
      h("b", { class: "big" }, branchName(b)),
      b.address ? h("span", { class: "dim", lang: "ko" }, b.address) : null,
      h("span", { class: "state" }, availability(b)),
      b.online || b.status !== "available" ? null : h("span", { class: "state wait" }, t("branchOffline")),
    ),
    chevron(),
  );

/** The availability of a branch today, in a few words. */
function availability(b: BranchNow): Child {
  if (b.status !== "available")
    return [t("closedToday"), b.reason ? [" (", h("span", { lang: "ko" }, b.reason), ")"] : ""];
  if (b.freeRooms > 0)
    return h(
      "span",
      { class: b.online ? "good" : "" },
      t(b.freeRooms === 1 ? "freeNowOne" : "freeNow", { n: b.freeRooms }),
    );
  if (b.nextFreeDateTime) return t("freeAt", { time: clockOf(parseMinute(b.nextFreeDateTime)) });
  return t("fullToday");
}
