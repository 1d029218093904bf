// The day at a branch, as a timeline or a list, with search and reservation tools.

import { dateOf, day, inZone, parseDate } from "../../booking/time";
import { ticking } from "../../core/clock";
import { type Child, h, when } from "../../core/dom";
import { resource } from "../../core/resource";
import { go, type Params, query } from "../../core/router";
import { computed, effect, onCleanup, signal, untracked } from "../../core/signal";
import { localStore } from "../../core/storage";
import { handoverButton } from "../handover";
import { icon } from "../icons";
import { gather, watch } from "../live";
import { button, check, fetched, heading, segmented } from "../parts";
import { type Branch, mayBook } from "../session";
import { shortcut } from "../shortcuts";
import { dateText, t } from "../text";
import { todayOf } from "../today";
import { grid } from "./grid";
import { list } from "./list";
import { type Block, fetchDay } from "./model";
import { monthButton } from "./month";
import { openQuarantine } from "./quarantine";
import { openRecord } from "./record";
import { openReserve } from "./reserve";

const narrow = matchMedia("(max-width: 760px)");
const viewKey = "console-view";

export function dayScreen(branch: Branch, params: Params): Child {
  const today = todayOf(branch);
  const date = params.date && !Number.isNaN(parseDate(params.date)) ? params.date : today;
  const source = resource(() => fetchDay(branch.branch, date));
  const refresh = gather(source.refresh);
  watch(branch.branch, date, (event) => {
    if (!event || event.kind === "slot" || event.kind === "payment") refresh();
  });
  const second = ticking();
  const now = computed(() => inZone(branch.timeZone, second()));
  const view = signal((!narrow.matches && localStore.get(viewKey)) || (narrow.matches ? "list" : "grid"));
  effect(() => {
    if (!narrow.matches) localStore.set(viewKey, view());
  });
  const canceled = signal(false);
  followRecord(branch);
  const show = (b: Block) => (b.quarantine ? openQuarantine(branch, b, refresh) : go(`?r=${b.conflict ?? b.id}`));
  const reserve = (room?: string, start?: number, end?: number) => {
    const data = source.peek();
    if (data.is === "ready") openReserve(branch, data.data, { room, start, end }, refresh);
  };
  return [
    heading(
      dateText(parseDate(date)),
      h(
        "div",
        { class: "dates" },
        shortcut("k", step(branch, date, -1)),
        today === date
          ? h("span", { class: "today" }, t("today"))
          : shortcut("t", h("a", { class: "button soft", href: `/console/${branch.branch}/day` }, t("today"))),
        shortcut("j", step(branch, date, 1)),
        monthButton(branch, date),
      ),
      shortcut("h", handoverButton(branch)),
      shortcut("w", h("a", { class: "button soft", href: `/console/${branch.branch}/week/${date}` }, t("week"))),
      segmented(t("view"), view, [
        { value: "grid", text: t("viewGrid") },
        { value: "list", text: t("viewList") },
      ]),
      mayBook()
        ? shortcut(
            "n",
            button([icon("plus"), t("reserve")], () => reserve(), {
              kind: "primary",
              disabled: () => source().is !== "ready",
            }),
          )
        : null,
    ),
    fetched(source, (data) => [
      when(
        () => data().status !== "available",
        () =>
          h(
            "p",
            { class: "notice" },
            t(data.peek().status === "holiday" ? "dayHoliday" : "dayClosed", { reason: data.peek().reason ?? "" }),
          ),
      ),
      when(
        () => data().canceled.length > 0,
        () => check(() => t("showCanceled", { n: data().canceled.length }), canceled),
      ),
      when(
        () => view() === "grid",
        () => grid({ branch, day: data, now, show, reserve, refresh, mayChange: mayBook(), canceled }),
        () => list({ day: data, now, second, canceled, show }),
      ),
    ]),
  ];
}

function step(branch: Branch, date: string, by: number): HTMLElement {
  const to = dateOf(parseDate(date) + by * day);
  return h(
    "a",
    {
      class: "button plain",
      href: `/console/${branch.branch}/day/${to}`,
      "aria-label": t(by < 0 ? "dayBefore" : "dayAfter"),
    },
    icon(by < 0 ? "left" : "right"),
  );
}

/** Opens the record that the address names. Closing it returns to the address of the day. */
function followRecord(branch: Branch): void {
  let open: { id: string; close: () => void } | undefined;
  effect(() => {
    const id = query().get("r");
    untracked(() => {
      if (open?.id === id) return;
      const previous = open;
      open = undefined;
      previous?.close();
      if (!id || !/^\d+$/.test(id)) return;
      open = {
        id,
        ...openRecord(branch, id, () => {
          if (open?.id === id) go(location.pathname, { replace: true });
        }),
      };
    });
  });
  onCleanup(() => {
    const last = open;
    open = undefined;
    last?.close();
  });
}
