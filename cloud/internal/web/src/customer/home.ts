// The branches and their current availability.

import { clockOf, dateOf, inZone, parseMinute } from "../booking/time";
import { whileSeen } from "../core/clock";
import { type Child, each, h, when } from "../core/dom";
import { clicks, submits } from "../core/form";
import { resource } from "../core/resource";
import { go, query } from "../core/router";
import { batch, effect, onCleanup, signal } from "../core/signal";
import { calendar, chevron, key, payment } from "./icons";
import { lastBranch } from "./last-branch";
import { giveUp } from "./purchase";
import { recent } from "./recent";
import { attempt, button, fetched, heading, trouble } from "./screen";
import { type BranchNow, type BranchSearch, branchName, getBranchesNow } from "./service";
import { thumbnail } from "./showcase";
import { t } from "./text";

const refetch = 60_000; // ms
const many = 8; // branches above which there is a search; home.go has the same

// A guest may have begun to type before the scripts ran.
let typed = document.querySelector<HTMLInputElement>("#search")?.value;
let typing = document.activeElement?.id === "search";

export function home(): Child {
  void giveUp();
  const asked = query();
  let search: BranchSearch = { q: (typed ?? asked.get("q") ?? "").trim(), cursor: asked.get("cursor") };
  typed = undefined;
  const first = resource(() => getBranchesNow(search));
  const more = signal<BranchNow[]>([]);
  const next = signal<string | null>(null);
  effect(() => {
    next.set(first.data()?.next ?? null);
    more.set([]);
  });
  const { busy, problem, run } = attempt();
  const loadMore = () =>
    run(async () => {
      const page = await getBranchesNow({ ...search, cursor: next.peek() });
      batch(() => {
        more.set([...more.peek(), ...page.branches]);
        next.set(page.next);
      });
    });
  const list = () => {
    const found = [...(first.data()?.branches ?? []), ...more()];
    return search.near ? found : lastFirst(found);
  };
  // A page that was left open shows when rooms are free now. More branches that the guest has asked for stay.
  whileSeen(refetch, () => {
    if (more.peek().length === 0) void first.refresh();
  });
  const find = (wanted: BranchSearch) => {
    search = wanted;
    go(`/${addressOf(search)}`, { replace: true });
    return first.refresh();
  };
  return [
    heading(t("homeTitle"), t("homeText"), t("homePage")),
    recent()
      ? h(
          "a",
          { class: "card row", href: "/book/receipt" },
          h("span", null, h("b", null, t("recentTitle")), h("span", { class: "dim" }, t("recentLink"))),
          chevron(),
        )
      : null,
    fetched(first, (data) => [
      data.peek().next || data.peek().branches.length > many || search.q ? searchForm(() => search, find) : null,
      when(
        () => list().length > 0,
        () =>
          h(
            "ul",
            { class: "cards" },
            each(
              list,
              (b) => JSON.stringify(b),
              (b) => h("li", null, card(b.peek(), list().indexOf(b.peek()))),
            ),
          ),
        () => h("p", { class: "dim" }, t(search.q ? "noMatch" : "noBranches")),
      ),
      when(next, () => [
        h(
          "a",
          {
            class: "button soft",
            href: () => `/${addressOf({ q: search.q, cursor: next() })}`,
            "aria-busy": () => (busy() ? "true" : null),
            onclick: clicks(() => busy() || loadMore()),
          },
          t("moreBranches"),
        ),
        trouble(problem),
      ]),
    ]),
    when(() => first().is !== "loading", steps), // not before the branches above it, which would push it down
  ];
}

/** The query of the address that shows a search. It does not contain where the guest is. */
function addressOf({ q, cursor }: BranchSearch): string {
  const query = new URLSearchParams({ ...(q ? { q } : {}), ...(cursor ? { cursor } : {}) }).toString();
  return query && `?${query}`;
}

const typingDelay = 300; // ms

/** A field that searches while the guest types, and a button for the nearest branches. */
function searchForm(now: () => BranchSearch, find: (wanted: BranchSearch) => Promise<void>): Child {
  let timer: ReturnType<typeof setTimeout> | undefined;
  onCleanup(() => clearTimeout(timer));
  const busy = signal(false);
  const problem = signal("");
  const run = () => {
    clearTimeout(timer);
    return find({ ...now(), q: input.value.trim(), cursor: null });
  };
  const input = h("input", {
    type: "search",
    id: "search",
    name: "q",
    value: now().q,
    maxlength: 50,
    autocomplete: "off",
    oninput: () => {
      clearTimeout(timer);
      timer = setTimeout(() => void run(), typingDelay);
    },
  });
  if (typing) queueMicrotask(() => input.focus());
  typing = false;
  const locate = async () => {
    busy.set(true);
    problem.set("");
    try {
      await find({ ...now(), near: await whereabouts(), cursor: null });
    } catch {
      problem.set(t("placeFailed"));
    } finally {
      busy.set(false);
    }
  };
  const nearest = button(t("nearest"), () => void locate(), { kind: "soft", busy });
  nearest.classList.add("scripted");
  return h(
    "form",
    { class: "search", role: "search", action: "/", onsubmit: submits(run) },
    h("div", { class: "field" }, h("label", { for: "search" }, t("searchBranch")), input),
    nearest,
    trouble(problem),
  );
}

const placeTimeout = 10_000; // ms
const placeAge = 300_000; // ms

/** The place of the device to about 100 meters, which is enough to sort branches. */
const whereabouts = (): Promise<string> =>
  new Promise((resolve, reject) => {
    navigator.geolocation.getCurrentPosition(
      ({ coords }) => resolve(`${coords.latitude.toFixed(3)},${coords.longitude.toFixed(3)}`),
      reject,
      { timeout: placeTimeout, maximumAge: placeAge },
    );
  });

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

/** 600 m, 1.2 km */
const distance = (meters: number): string =>
  meters < 950 ? `${Math.round(meters / 100) * 100} m` : `${(meters / 1000).toFixed(1)} km`;

const card = (b: BranchNow, index: number): Child =>
  h(
    "a",
    { class: "card row", href: `/b/${b.branch}` },
    b.photo ? thumbnail(b.photo, index) : null,
    h(
      "span",
      null,
      h("b", { class: "big" }, branchName(b)),
      b.address ? h("span", { class: "dim", lang: "ko" }, b.address) : null,
      h("span", { class: "state" }, availability(b)),
      b.distanceMeters === null ? null : h("span", { class: "dim" }, distance(b.distanceMeters)),
      b.online || b.status !== "available" ? null : h("span", { class: "state wait" }, t("branchOffline")),
    ),
    chevron(),
  );

/** The availability of a branch today and tomorrow, in a few words. */
function availability(b: BranchNow): Child {
  if (b.status !== "available")
    return [t("closedToday"), b.reason ? [" (", h("span", { lang: "ko" }, b.reason), ")"] : ""];
  if (b.freeRooms > 0)
    return h(
      "span",
      { class: b.online ? "good" : "" },
      t(b.freeRooms === 1 ? "freeNowOne" : "freeNow", { n: b.freeRooms }),
    );
  if (!b.nextFreeDateTime) return t("fullToday");
  const next = parseMinute(b.nextFreeDateTime);
  const today = dateOf(next) === dateOf(inZone(b.timeZone));
  return t(today ? "freeAt" : "freeTomorrow", { time: clockOf(next) });
}
