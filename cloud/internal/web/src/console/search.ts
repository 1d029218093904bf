// One search over branches, rooms, guests and reservations, usable by keyboard alone: a combobox with a list of results.

import { dateOf } from "../booking/time";
import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { go } from "../core/router";
import { computed, effect, onCleanup, signal } from "../core/signal";
import { branchTitle } from "./alerts";
import { kindText, toBlock } from "./day/model";
import { attempt, chip, dialog, field, input } from "./parts";
import { type Branch, branches, branchName, firstScreen, hasScreen } from "./session";
import { dateText, type TextKey, t, timesText } from "./text";

type Found = Schemas["ReservationSearch"];

interface Hit {
  id: string;
  group: TextKey;
  title: string;
  rest?: string;
  mark?: Child;
  href: string;
}

const pause = 250; // ms after the last key, because each search for personal data is recorded
const mostBranches = 8;
const mostGuests = 5;
/** The numbers of reservations and rooms that the service finds at most. */
const [mostReservations, mostRooms] = [50, 20];

function branchesNamed(words: string): Branch[] {
  const text = words.toLowerCase();
  return branches().filter((b) => `${b.branch} ${b.nameKo} ${b.nameEn}`.toLowerCase().includes(text));
}

const branchHits = (found: readonly Branch[]): Hit[] =>
  found.slice(0, mostBranches).map((b) => ({
    id: `b-${b.branch}`,
    group: "searchBranches",
    title: branchName(b),
    href: `/console/${b.branch}/${firstScreen()}`,
  }));

const foundHits = ({ rooms, reservations }: Found): Hit[] => [
  ...rooms.map(
    (r): Hit => ({
      id: `m-${r.branch}-${r.roomNo}`,
      group: "searchRooms",
      title: `${branchTitle(r.branch)} ${t("roomNo", { n: r.roomNo })}`,
      rest: r.machine,
      href: `/console/${r.branch}/day`,
    }),
  ),
  ...guestHits(reservations),
  ...reservations.map((r): Hit => {
    const block = toBlock(r);
    return {
      id: `r-${r.id}`,
      group: "searchReservations",
      title: [block.name, block.mobile].filter(Boolean).join(" · ") || "–",
      rest: `${dateText(block.start)} ${timesText(block.start, block.end)} · ${branchTitle(r.branch)} ${t("roomNo", { n: r.roomNo })}`,
      mark: chip(kindText(block.kind), block.kind),
      href: `/console/${r.branch}/day/${dateOf(block.start)}?r=${r.id}`,
    };
  }),
];

/** The guests of reservations. Numbers are masked, so two guests of one name and the same last digits are one entry. */
function guestHits(reservations: Found["reservations"]): Hit[] {
  const byGuest = new Map<string, Hit>();
  for (const r of reservations) {
    if (!r.name || !r.mobileNum) continue;
    const title = `${r.name} · ${r.mobileNum}`;
    if (!byGuest.has(title))
      byGuest.set(title, {
        id: `g-${r.id}`,
        group: "searchGuests",
        title,
        href: `/console/${r.branch}/guest/${r.id}`,
      });
  }
  return [...byGuest.values()].slice(0, mostGuests);
}

const groups: TextKey[] = ["searchBranches", "searchRooms", "searchGuests", "searchReservations"];

export function openSearch(): void {
  dialog(t("searchAll"), (close) => searchView(close));
}

function searchView(close: () => void): Child {
  const text = signal("");
  const words = computed(() => text().trim());
  const found = signal<{ words: string; hits: Hit[]; cut: boolean }>({ words: "", hits: [], cut: false });
  const { run, view } = attempt();
  let timer = 0;
  const ask = (wanted: string) =>
    run(async () => {
      const answer = await api.get<Found>("/v2/admin/reservations", { query: wanted });
      const cut = answer.reservations.length >= mostReservations || answer.rooms.length >= mostRooms;
      if (words.peek() === wanted) found.set({ words: wanted, hits: foundHits(answer), cut });
    });
  effect(() => {
    const wanted = words();
    clearTimeout(timer);
    if (wanted.length >= 2 && hasScreen("day")) timer = setTimeout(() => void ask(wanted), pause);
  });
  onCleanup(() => clearTimeout(timer));
  const named = computed(() => (words() ? branchesNamed(words()) : []));
  const hits = computed(() => [...branchHits(named()), ...(words().length >= 2 ? found().hits : [])]);
  const cut = computed(() => named().length > mostBranches || (words().length >= 2 && found().cut));
  const chosen = signal("");
  const active = computed(() => hits().find((x) => x.id === chosen()) ?? hits()[0]);
  const open = (hit: Hit) => {
    close();
    go(hit.href);
  };
  const step = (by: number) => {
    const list = hits.peek();
    const at = list.findIndex((x) => x.id === active.peek()?.id);
    const next = list[(at + by + list.length) % list.length];
    if (!next) return;
    chosen.set(next.id);
    document.getElementById(next.id)?.scrollIntoView({ block: "nearest" });
  };
  const box = input(text, {
    type: "search",
    maxlength: 100,
    autofocus: true,
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-controls": "found",
    "aria-expanded": () => String(hits().length > 0),
    "aria-activedescendant": () => active()?.id ?? null,
    onkeydown: (e: KeyboardEvent) => {
      if (e.isComposing) return; // the key belongs to the syllable
      const hit = active.peek();
      if (e.key === "ArrowDown") step(1);
      else if (e.key === "ArrowUp") step(-1);
      else if (e.key === "Enter" && hit) open(hit);
      else return;
      e.preventDefault();
    },
  });
  const option = (hit: Hit): HTMLElement =>
    h(
      "li",
      {
        id: hit.id,
        role: "option",
        "aria-selected": () => String(active()?.id === hit.id),
        onclick: () => open(hit),
      },
      h("b", null, hit.title),
      hit.mark,
      hit.rest ? h("small", null, hit.rest) : null,
    );
  const settled = computed(() => words().length >= 2 && (found().words === words() || !hasScreen("day")));
  return [
    field(t("searchLabel"), box),
    view(),
    h("div", { id: "found", class: "found", role: "listbox", "aria-label": t("searchAll") }, () =>
      groups.map((group) => {
        const own = hits().filter((x) => x.group === group);
        if (own.length === 0) return null;
        return h(
          "ul",
          { role: "group", "aria-label": t(group) },
          h("li", { class: "group", role: "presentation" }, t(group)),
          own.map(option),
        );
      }),
    ),
    h("p", { class: "hint", role: "status" }, () => {
      if (hits().length > 0) return t("searchCount", { n: hits().length }) + (cut() ? ` ${t("searchCut")}` : "");
      return t(settled() ? "searchNothing" : "searchHint");
    }),
  ];
}
