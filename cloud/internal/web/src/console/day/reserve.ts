// Reserving for a guest: choose a time, hold it for five minutes, then register the guest or issue a virtual account.

import { price } from "../../booking/price";
import { dateOf, day as dayLength, inZone, type Minute, slotOf, wire } from "../../booking/time";
import { ApiError, api } from "../../core/api";
import { now as clock, ticking } from "../../core/clock";
import { type Child, h, match, when } from "../../core/dom";
import { submits } from "../../core/form";
import { countdown } from "../../core/format";
import type { Schemas } from "../../core/interface";
import { go } from "../../core/router";
import { computed, onCleanup, type Signal, signal } from "../../core/signal";
import { bankChoices } from "../banks";
import { keepTyped } from "../draft";
import { whole } from "../numbers";
import { attempt, button, check, dialog, field, input, segmented, select, toast } from "../parts";
import { type Branch, branchName } from "../session";
import { dateText, span, t, timesText, won } from "../text";
import type { Wire } from "./model";
import { type Block, type Day, fetchDay, obstacle } from "./model";
import { lengthChoices, startChoices } from "./move";

interface Wanted {
  room?: string;
  start?: Minute;
  end?: Minute;
}

interface Held {
  room: string;
  start: Minute;
  end: Minute;
  until: number; // ms since 1970
  id: Promise<string | undefined>; // undefined: not found
}

const holdLife = 5 * 60_000; // ms, docs/specification.md, Holds 1; until the service has named the end

/** The release of the last hold. The next one waits for it: it must meet no release but its own. */
let released: Promise<unknown> = Promise.resolve();

export function openReserve(branch: Branch, day: Day, wanted: Wanted, refresh: () => void): void {
  const held = signal<Held | null>(null);
  dialog(
    t("reserveTitle"),
    (close) =>
      match(held, (h_) =>
        h_
          ? registration(branch, day, h_, held, refresh, close)
          : choose(branch, day, wanted, (next) => {
              Object.assign(wanted, next);
              held.set(next);
              refresh();
            }),
      ),
    // Without the release, for example after the session has ended, the hold expires on its own.
    {
      onclose: () => {
        released = release(branch, held.peek()).then(refresh, () => {});
      },
    },
  );
}

/** A hold as the service takes it. */
const holdOf = (
  branch: Branch,
  { room, start, end }: Pick<Held, "room" | "start" | "end">,
): Schemas["HoldRequest"] => ({
  branch: branch.branch,
  room: Number(room),
  startDateTime: wire(start),
  endDateTime: wire(end),
});

/** The hold that this browser has just taken; the service returns neither its id nor its end. */
async function blockOf(branch: Branch, room: string, start: Minute): Promise<Block | undefined> {
  const there = await fetchDay(branch.branch, dateOf(start));
  return there.blocks.find((b) => b.room === room && b.start === start && b.kind === "hold" && b.source === "ADMIN");
}

/**
 * Releases a hold that is no longer needed, so that it does not block the room for its five minutes. It is named by its id: it may
 * have ended, for example by a hold of another tab, and a guest may hold its time now.
 */
async function release(branch: Branch, held: Held | null): Promise<void> {
  if (!held || held.until < clock()) return;
  const id = await held.id;
  const there = await fetchDay(branch.branch, dateOf(held.start));
  if (id && there.blocks.some((b) => b.id === id && b.kind === "hold"))
    await api.delete(`/admin/reservation/${id}`, { bookingStatus: "beforePaymentTab" });
}

function choose(branch: Branch, day: Day, wanted: Wanted, done: (held: Held) => void): Child {
  const now = inZone(branch.timeZone);
  const begin = wanted.start ?? (dateOf(now) === day.date ? slotOf(now) : Number(startChoices(day.date)[60]!.value));
  const room = signal(
    wanted.room ??
      day.rooms.find((r) => r.enabled && !obstacle(day, r.roomNo, begin, begin + 60, now))?.roomNo ??
      day.rooms[0]?.roomNo ??
      "",
  );
  const start = signal(String(begin));
  const length = signal(
    String(wanted.start !== undefined && wanted.end !== undefined ? wanted.end - wanted.start : 60),
  );
  const chosen = computed(() => ({ room: room(), start: Number(start()), end: Number(start()) + Number(length()) }));
  const problem = computed(() => obstacle(day, chosen().room, chosen().start, chosen().end, now));
  const { run, view } = attempt();
  const hold = () =>
    run(async () => {
      const { room, start, end } = chosen.peek();
      await released;
      await api.post("/admin/reservation", holdOf(branch, { room, start, end }));
      const block = blockOf(branch, room, start).catch(() => undefined); // then the hold expires
      const next: Held = { room, start, end, until: clock() + holdLife, id: block.then((b) => b?.id) };
      void block.then((b) => {
        next.until = b?.expiresAt || next.until;
      });
      done(next);
    });
  return [
    h("p", { class: "hint" }, `${branchName(branch)} · ${dateText(begin - (begin % dayLength))}`),
    h(
      "div",
      { class: "form" },
      field(
        t("room"),
        select(
          room,
          () =>
            day.rooms.map((r) => ({
              value: r.roomNo,
              text: `${t("roomNo", { n: r.roomNo })} · ${r.machine}`,
              disabled: !r.enabled,
            })),
          { autofocus: true },
        ),
      ),
      field(
        t("start"),
        select(start, () => startChoices(day.date).map((c) => ({ ...c, disabled: Number(c.value) + 10 <= now }))),
      ),
      field(
        t("length"),
        select(length, () => lengthChoices.map((n) => ({ value: String(n), text: span(n) }))),
      ),
    ),
    () =>
      problem()
        ? h("p", { class: "problem", role: "alert" }, t(problem()!))
        : h("p", { class: "sum" }, `${t("roomNo", { n: chosen().room })} · ${timesText(chosen().start, chosen().end)}`),
    view(),
    h("div", { class: "footer" }, button(t("holdDo"), hold, { kind: "primary", disabled: () => Boolean(problem()) })),
  ];
}

function registration(
  branch: Branch,
  day: Day,
  held: Held,
  state: Signal<Held | null>,
  refresh: () => void,
  close: () => void,
): Child {
  const second = ticking();
  const over = computed(() => second() >= held.until);
  const how = signal("walkin");
  const [name, mobile, email, reason] = [signal(""), signal(""), signal(""), signal("")];
  const { forget, notice } = keepTyped(`register-${branch.branch}`, { name, mobile, email, reason }); // the hold may run out meanwhile
  const notify = signal(true);
  const room = day.rooms.find((r) => r.roomNo === held.room)!;
  const cost = price(room, held.start, held.end - held.start);
  const amount = signal(String(cost ?? ""));
  const order = signal(`${branchName(branch)} ${t("roomNo", { n: held.room })} ${timesText(held.start, held.end)}`);
  const bank = signal("");
  const banks = bankChoices((b) => b.issues);
  const known = lookUp(mobile, name);
  const mobileField = input(mobile, { type: "tel", inputmode: "tel", maxlength: 20 });
  queueMicrotask(() => mobileField.focus()); // the button that held the time is gone, and the guest is on the phone
  const reachable = computed(
    () => !notify() || how() !== "walkin" || /^01\d{8,9}$/.test(mobile().replace(/\D/g, "")) || email().includes("@"),
  );
  const { run, view } = attempt();
  const finish = (text: string) => {
    forget();
    state.set(null); // the hold has become a reservation, so nothing is left to release
    toast(text);
    refresh();
    close();
  };
  const contact = () => ({
    name: name.peek().trim(),
    mobileNum: mobile.peek().trim(),
    ...(email.peek().trim() ? { email: email.peek().trim() } : {}),
  });
  const sending = signal(false);
  const submit = async () => {
    sending.set(true);
    await run(register);
    sending.set(false);
  };
  const register = async () => {
    await known.done(); // Enter may follow the last digit at once
    try {
      if (how.peek() === "walkin") {
        const given = Object.fromEntries(
          Object.entries({ ...contact(), reason: reason.peek().trim() }).filter(([, v]) => v),
        );
        await api.post("/admin/payment", { ...given, notify: notify.peek(), held: holdOf(branch, held) });
        finish(t("registered"));
      } else {
        await api.post("/admin/v2/virtual-accounts", {
          ...contact(),
          amount: whole(amount.peek()),
          orderName: order.peek().trim(),
          bankCode: bank.peek(),
          held: holdOf(branch, held), // another tab may have held another room or time
        });
        finish(t("accountIssued"));
        await showAccount(branch, held);
      }
    } catch (error) {
      if (error instanceof ApiError && error.type === "ResourceTimeOutException") held.until = 0;
      throw error;
    }
  };
  const again = () => state.set(null);
  return [
    h(
      "div",
      { class: "held" },
      h(
        "p",
        null,
        `${t("roomNo", { n: held.room })} · ${dateText(held.start)} ${timesText(held.start, held.end)}${cost === null ? "" : ` · ${won(cost)}`}`,
      ),
      h("b", { class: "left", role: "timer", "aria-label": t("holdLeft") }, () => countdown(held.until - second())),
    ),
    when(over, () =>
      h("div", { class: "notice", role: "alert" }, h("p", null, t("holdOver")), button(t("holdAgain"), again)),
    ),
    notice,
    segmented(t("how"), how, [
      { value: "walkin", text: t("walkin") },
      { value: "account", text: t("virtualAccount") },
    ]),
    h(
      "form",
      { onsubmit: submits(submit, sending) },
      h(
        "div",
        { class: "form" },
        field(t("mobile"), mobileField, known.view),
        field(t("colName"), input(name, { maxlength: 50 })),
        field(t("emailOptional"), input(email, { type: "email", maxlength: 100 })),
        when(
          () => how() === "walkin",
          () => [field(t("reasonOptional"), input(reason, { maxlength: 500 })), check(t("notify"), notify)],
          () => [
            field(t("amount"), input(amount, { inputmode: "numeric" })),
            field(
              t("bank"),
              select(bank, () => [{ value: "", text: t("choose") }, ...banks()]),
            ),
            field(t("orderName"), input(order, { maxlength: 100 })),
          ],
        ),
      ),
      view(),
      when(
        () => !reachable(),
        () => h("p", { class: "hint" }, t("notifyNeedsMobile")),
      ),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(
          () => t(how() === "walkin" ? "registerDo" : "issueDo"),
          () => {},
          {
            kind: "primary",
            type: "submit",
            disabled: () =>
              over() ||
              !reachable() ||
              (how() === "account" &&
                !(name().trim() && mobile().trim() && whole(amount()) > 0 && bank() && order().trim())),
          },
        ),
      ),
    ),
  ];
}

/** Shows the issued virtual account until the deposit arrives. */
async function showAccount(branch: Branch, held: Held): Promise<void> {
  const there = await fetchDay(branch.branch, dateOf(held.start));
  const block = there.blocks.find((b) => b.room === held.room && b.start === held.start);
  if (block) go(`/console/${branch.branch}/day/${dateOf(held.start)}?r=${block.id}`);
}

/**
 * Finds earlier reservations of a phone number and copies the name from them. done waits for the search that the last
 * digit began.
 */
function lookUp(mobile: Signal<string>, name: Signal<string>): { view: Child; done: () => Promise<void> } {
  const text = signal("");
  let timer = 0;
  let search = Promise.resolve();
  onCleanup(() => clearTimeout(timer));
  const ask = async (digits: string) => {
    const { reservations } = await api.get<{ reservations: Wire[] }>("/v2/admin/reservations", { query: digits });
    if (mobile.peek().replace(/\D/g, "") !== digits) return;
    const named = reservations.find((r) => r.name)?.name;
    if (named && !name.peek()) name.set(named);
    const latest = reservations.find((r) => r.mobileNum);
    const guest = latest && (await api.get<Schemas["Guest"]>(`/v2/admin/reservations/${latest.id}/guest`));
    const notes = [guest?.block ? t("guestBlockedBecause", { reason: guest.block.reason }) : "", guest?.notes[0]?.text];
    const count = reservations.length ? t("memberFound", { n: reservations.length }) : t("memberNone");
    text.set([count, ...notes].filter(Boolean).join(" · "));
  };
  const view = () => {
    const digits = mobile().replace(/\D/g, "");
    clearTimeout(timer);
    search = Promise.resolve();
    if (digits.length < 10) return "";
    search = new Promise((resolve) => {
      timer = setTimeout(() => {
        void ask(digits)
          .catch(() => text.set(""))
          .then(resolve);
      }, 400);
    });
    return h("span", { role: "status" }, () => text());
  };
  return { view, done: () => search };
}
