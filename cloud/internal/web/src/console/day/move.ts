// A form for changing room and time of a reservation. Dragging opens it too, so every move is confirmed.

import { price } from "../../booking/price";
import { clockOf, dateOf, inZone, type Minute, parseDate, slot, wire } from "../../booking/time";
import { ApiError, api } from "../../core/api";
import { h, when } from "../../core/dom";
import { computed, signal } from "../../core/signal";
import { keepTyped } from "../draft";
import { attempt, button, check, dialog, field, input, select, toast, toastWithUndo } from "../parts";
import type { Branch } from "../session";
import { dateText, phoneText, span, t, timesText, won } from "../text";
import { type Block, type Day, fetchDay, longest, obstacle, toBlock } from "./model";
import { fetchRecord } from "./record";

interface Target {
  room: string;
  start: Minute;
  end: Minute;
}

const same = (a: Target, b: Target): boolean => a.room === b.room && a.start === b.start && a.end === b.end;

/** The possible start times of a day. */
export const startChoices = (date: string) =>
  Array.from({ length: 144 }, (_, i) => parseDate(date) + i * slot).map((m) => ({
    value: String(m),
    text: clockOf(m),
  }));

export const lengthChoices = Array.from({ length: longest / slot }, (_, i) => (i + 1) * slot);

export function openMove(
  branch: Branch,
  block: Block,
  to: Target,
  first: Day,
  onclose: () => void,
  refresh: () => void,
): void {
  const sameTime = same(to, block);
  dialog(
    t("moveTitle"),
    (close) => {
      const day = signal(first);
      const seen = signal(block);
      const date = signal(dateOf(to.start));
      const room = signal(to.room);
      const start = signal(String(to.start));
      const length = signal(String(to.end - to.start));
      const reason = signal("");
      const notify = signal(true);
      const chosen = computed<Target>(() => ({
        room: room(),
        start: Number(start()),
        end: Number(start()) + Number(length()),
      }));
      const now = inZone(branch.timeZone);
      const problem = computed(() => obstacle(day(), chosen().room, chosen().start, chosen().end, now, seen()));
      const unchanged = computed(() => same(chosen(), seen()));
      const { forget, notice } = keepTyped(`move-${block.id}`, { reason });
      const { run, view } = attempt();
      const changed = signal("");
      const fetching = signal(false); // the day of the chosen date; also after it could not be fetched
      const failed = signal(false);
      const fetchChosen = async () => {
        const wanted = date.peek();
        fetching.set(true);
        failed.set(false);
        const done = await run(async () => {
          const there = await fetchDay(branch.branch, wanted);
          if (wanted !== date.peek()) return; // a later choice is being fetched
          day.set(there);
          fetching.set(false);
        });
        if (!done && wanted === date.peek()) failed.set(true);
      };
      const onDate = async (value: string) => {
        if (Number.isNaN(parseDate(value))) return;
        date.set(value);
        start.set(String(parseDate(value) + (Number(start.peek()) - parseDate(dateOf(Number(start.peek()))))));
        await fetchChosen();
      };
      const submit = () =>
        run(async () => {
          const want = chosen.peek();
          try {
            await api.put(`/admin/reservation/${block.id}`, {
              room: want.room,
              startDateTime: wire(want.start),
              endDateTime: wire(want.end),
              wholeStay: true,
              version: seen.peek().version,
              notify: notify.peek(),
              ...(reason.peek().trim() ? { reason: reason.peek().trim() } : {}),
            });
          } catch (error) {
            if (!(error instanceof ApiError) || error.type !== "SettingConflictException") throw error;
            // Another administrator has changed the reservation. The form shows its new state and can be sent again.
            const there = toBlock(await fetchRecord(block.id));
            if (there.version === seen.peek().version) throw error;
            changed.set(
              t("moveStale", {
                room: there.room,
                when: `${dateText(there.start)} ${timesText(there.start, there.end)}`,
              }),
            );
            seen.set(there);
            day.set(await fetchDay(branch.branch, date.peek()));
            refresh();
            return;
          }
          forget();
          const back = seen.peek();
          const moved = await fetchRecord(block.id).then(toBlock, () => null);
          if (!moved || !same(moved, want)) toast(t("moved"));
          else
            toastWithUndo(t("moved"), async () => {
              await api.put(`/admin/reservation/${block.id}`, {
                room: back.room,
                startDateTime: wire(back.start),
                endDateTime: wire(back.end),
                wholeStay: true,
                version: moved.version, // a move made since is not overwritten
                notify: notify.peek(),
              });
              refresh();
            });
          refresh();
          close();
        });
      return [
        when(changed, () => h("p", { class: "notice", role: "alert" }, () => changed())),
        h("p", { class: "lead" }, [block.name, phoneText(block.mobile)].filter(Boolean).join(" · ")),
        h(
          "dl",
          { class: "fromto" },
          h(
            "div",
            null,
            h("dt", null, t("moveFrom")),
            h("dd", null, () => describe(seen())),
          ),
          h(
            "div",
            null,
            h("dt", null, t("moveTo")),
            h("dd", { "aria-live": "polite" }, () => describe(chosen())),
          ),
        ),
        h(
          "div",
          { class: "form" },
          field(
            t("date"),
            h("input", {
              type: "date",
              value: date,
              onchange: (e: Event) => void onDate((e.target as HTMLInputElement).value),
            }),
          ),
          field(
            t("room"),
            select(
              room,
              () =>
                day().rooms.map((r) => ({
                  value: r.roomNo,
                  text: `${t("roomNo", { n: r.roomNo })} · ${r.machine}`,
                  disabled: !r.enabled && r.roomNo !== block.room,
                })),
              sameTime ? { autofocus: true } : {},
            ),
          ),
          field(
            t("start"),
            select(start, () => startChoices(date())),
          ),
          field(
            t("length"),
            select(length, () => lengthChoices.map((n) => ({ value: String(n), text: span(n) }))),
          ),
          field(t("reasonOptional"), input(reason, { maxlength: 500 })),
          check(t("notifyMove"), notify),
        ),
        notice,
        () =>
          problem() && !unchanged()
            ? h("p", { class: "problem", role: "alert" }, t(problem()!))
            : h("p", { class: "hint" }, priceText(day(), seen(), chosen())),
        view(),
        when(failed, () => button(t("retry"), fetchChosen)),
        h(
          "div",
          { class: "footer" },
          button(t("back"), close, { kind: "plain" }),
          button(t("moveDo"), submit, {
            kind: "primary",
            disabled: () => fetching() || Boolean(problem()) || unchanged(),
          }),
        ),
      ];
    },
    { onclose },
  );
}

/** What the guest has paid against the price of the new time. A move never changes the amount. */
function priceText(day: Day, block: Block, to: Target): string {
  const room = day.rooms.find((r) => r.roomNo === to.room);
  const cost = room ? price(room, to.start, to.end - to.start) : null;
  if (cost === null || block.amount === 0 || cost === block.amount) return t("moveHint");
  return t(cost > block.amount ? "moveDearer" : "moveCheaper", {
    price: won(cost),
    difference: won(Math.abs(cost - block.amount)),
  });
}

const describe = (x: Target) => `${t("roomNo", { n: x.room })} · ${dateText(x.start)} ${timesText(x.start, x.end)}`;
