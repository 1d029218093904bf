// The contact of the guest, while the room is held.

import { parseMinute, parseStoredEnd } from "../booking/time";
import { ApiError, refusedWith } from "../core/api";
import { now, ticking, whileSeen } from "../core/clock";
import { type Child, h, match } from "../core/dom";
import { submits } from "../core/form";
import { countdown } from "../core/format";
import { type Resource, resource } from "../core/resource";
import { go, staying } from "../core/router";
import { batch, computed, effect, signal } from "../core/signal";
import { receiptChoice } from "./cash-receipt";
import { endExchange } from "./exchange";
import { checkAll, isAbroad, tick } from "./field";
import { clock, question, sign } from "./icons";
import { emailField, mobileField, nameField } from "./person";
import { begin, choosing, giveUp, keep, leave, purchase, register } from "./purchase";
import { actions, button, explain, fetched, heading, link, note, notice, submitButton, trouble } from "./screen";
import { seller } from "./seller";
import { type Branch, branchName, canCancel, getBranches, getHold, getReceipt, type Hold, refundText } from "./service";
import { dateText, t, timesText, won } from "./text";

export interface Held {
  hold: Hold;
  branch: Branch;
  /** When the hold ends, by the service's clock. */
  until: number;
}

/** The hold of this browser, or null if there is none. */
export async function currentHold(): Promise<Held | null> {
  try {
    const [hold, branches] = await Promise.all([getHold(), getBranches()]);
    return {
      hold,
      branch: branches.find((b) => b.branch === hold.branch)!,
      until: now() + hold.remainingSeconds * 1000,
    };
  } catch (error) {
    if (!refusedWith(error, 401)) throw error;
  }
  return null;
}

/** The hold of this browser. Without one, leads to the receipt if the purchase was completed. */
export const holding = (): Resource<Held | null> =>
  resource(async () => {
    const found = await currentHold();
    if (!found) await afterHold();
    return found;
  });

/** After the hold has ended: leads to the receipt if the purchase was completed. */
async function afterHold(): Promise<void> {
  const still = staying();
  const receipt = await getReceipt().catch(() => null);
  if (!still() || !receipt || receipt.status === "CANCELED") return;
  endExchange(); // paid in another tab
  go("/book/receipt", { replace: true });
}

export function contactPage(): Child {
  return fetched(holding(), (data) => {
    const found = data.peek();
    return found ? guarded(found, form) : gone();
  });
}

const sameHold = (a: Held, b: Held): boolean => JSON.stringify(identity(a)) === JSON.stringify(identity(b));

type Lost = { is: "held" } | { is: "over" } | { is: "other"; held: Held };

/** Callbacks of a screen that depends on the hold. */
export interface Guard {
  /** The hold has expired. */
  over(): void;
  /** Compares the hold with what the screen shows. Another tab of this browser may have replaced it. */
  check(): Promise<void>;
}

/** Shows a screen while the hold that it shows exists, and otherwise what happened to the hold. */
export function guarded(held: Held, view: (held: Held, guard: Guard) => Child): Child {
  const lost = signal<Lost>({ is: "held" });
  seller.set(held.hold.seller);
  let ending = false;
  const over = async () => {
    if (ending) return;
    ending = true;
    await Promise.race([afterHold(), new Promise((wake) => setTimeout(wake, receiptTimeout))]);
    lost.set({ is: "over" });
  };
  const check = async () => {
    const now = await currentHold().catch(() => held); // unknown: keep the screen
    if (!now) await over();
    else if (!sameHold(now, held)) lost.set({ is: "other", held: now });
  };
  whileSeen(holdInterval, () => void check());
  return match(lost, (now) => {
    if (now.is === "over") return gone();
    if (now.is === "other") return otherHold(held, now.held);
    return view(held, { over, check });
  });
}

const holdInterval = 15_000; // ms
const receiptTimeout = 3000; // ms to find out whether another tab has completed the purchase

/** Another tab has held another room or time: the guest decides which one to buy. */
function otherHold(shown: Held, current: Held): Child {
  const [mine, theirs] = [identity(shown), identity(current)];
  // From the same start, it is the same extension or exchange with another end. Any other hold is a purchase of its own.
  const own = mine.branch !== theirs.branch || mine.room !== theirs.room || mine.start !== theirs.start;
  const problem = signal("");
  const still = staying();
  const take = async (h: Held, hold?: () => Promise<unknown>) => {
    try {
      await hold?.();
      if (!still()) return;
      keep({ ...identity(h), orderId: "", ...(own && { back: "", replaces: 0 }) });
      toForm();
    } catch (error) {
      problem.set(explain(error));
    }
  };
  const again = async () => {
    const { branch, room, start, end } = identity(shown);
    await begin(branch, room, start, end);
  };
  return [
    notice(
      sign(question(), "wait"),
      t("otherHoldTitle"),
      t("otherHoldText"),
      button(heldText(current), () => void take(current)),
      // An exchange is held on the summary only, where the guest sees what is refunded.
      purchase()?.replaces ? null : button(heldText(shown), () => void take(shown, again), { kind: "soft" }),
    ),
    trouble(problem),
  ];
}

/** Shows the form of the contact with the present hold. */
function toForm(): void {
  if (location.pathname === "/book/contact") location.reload();
  else go("/book/contact", { replace: true });
}

export const identity = ({ hold }: Held) => ({
  branch: hold.branch,
  room: hold.roomNo,
  start: parseMinute(hold.startDateTime),
  end: parseStoredEnd(hold.endDateTime),
});

function heldText(held: Held): string {
  const { room, start, end } = identity(held);
  return `${branchName(held.branch)} ${t("room", { no: room })} ${dateText(start)} ${timesText(start, end)}`;
}

/** An extension was not paid in time. The guest has the key already. */
export const notExtended = (keyPage: string, text: string): Child =>
  notice(sign(clock(), "wait"), t("notExtendedTitle"), text, link(t("openKey"), keyPage, "primary"));

/** The hold has expired. If the room is still free, it can be held again. An extension is chosen on the key page. */
export function gone(): Child {
  const p = purchase();
  if (p?.back) return notExtended(p.back, t("notExtendedText"));
  if (!p?.branch)
    return notice(sign(clock(), "wait"), t("noHoldTitle"), t("noHoldText"), link(t("pickAgain"), "/", "primary"));
  const problem = signal("");
  const busy = signal(false);
  const again = async () => {
    busy.set(true);
    try {
      if (!(await begin(p.branch, p.room, p.start, p.end))) return;
      toForm();
    } catch (error) {
      busy.set(false);
      problem.set(explain(error));
    }
  };
  return [
    notice(
      sign(clock(), "wait"),
      t("holdGoneTitle"),
      t("holdGoneText"),
      p.replaces ? null : button(t("holdAgain"), () => void again(), { busy }),
      button(
        t("pickAgain"),
        () => {
          const to = choosing(p);
          void giveUp();
          go(to, { replace: true });
        },
        { kind: "soft" },
      ),
    ),
    trouble(problem),
  ];
}

/** Counts down the hold and calls over when it has expired. The last minute is a warning. */
export function holdChip(held: Held, over: () => void): Child {
  const time = ticking();
  const left = computed(() => held.until - time());
  effect(() => {
    if (left() <= 0) over();
  });
  // Screen readers announce it once a minute, not every second.
  const spoken = computed(() => Math.ceil(left() / 60_000));
  return h(
    "p",
    { class: () => (left() <= lastMinute ? "hold-chip soon" : "hold-chip") },
    clock(),
    h("span", { "aria-hidden": "true" }, () =>
      t(left() <= lastMinute ? "holdSoon" : "holdLeft", { time: countdown(left()) }),
    ),
    h("span", { class: "hidden", role: "timer", "aria-live": "polite" }, () =>
      t("holdLeft", { time: t("minutes", { n: Math.max(0, spoken()) }) }),
    ),
  );
}

const lastMinute = 60_000;

export function whatIsHeld({ hold, branch }: Held): Child {
  const start = parseMinute(hold.startDateTime);
  return h(
    "p",
    { class: "what" },
    h("b", null, `${branchName(branch)} ${t("room", { no: hold.roomNo })}`),
    h("span", null, `${dateText(start)} ${timesText(start, parseStoredEnd(hold.endDateTime))}`),
    h("span", { class: "dim" }, won(hold.amount)),
  );
}

/** Until when the purchase can be cancelled, in one sentence. */
export const refundNote = ({ hold, branch }: Held): Child =>
  canCancel(parseMinute(hold.startDateTime), branch) ? note(refundText(branch), "good") : note(t("refundGone"), "warn");

function form(held: Held, { over, check }: Guard): Child {
  const p = purchase();
  const name = nameField(p?.name);
  const mobile = mobileField(p?.mobile);
  const abroad = () => (isAbroad(mobile.value.peek()) ? t("needEmailAbroad") : "");
  const email = emailField(t("fieldEmail"), p?.email, abroad);
  const receipt = receiptChoice(p?.receiptType ?? "", p?.receiptNumber ?? "", mobile.value);
  const given = (what: string) => signal(p?.consents?.includes(what) ?? false);
  const consents = { terms: given("terms"), privacy: given("privacy"), age: given("age") };
  const each = Object.values(consents);
  // Kept with every keystroke: a reload, another language or a look at another screen loses nothing. The order has the contact
  // that was registered, so a change of the contact ends it: the payment screen leads back to this form.
  let before = "";
  effect(() => {
    const contact = {
      name: name.value(),
      mobile: mobile.value(),
      email: email.value(),
      receiptType: receipt.type(),
      receiptNumber: receipt.number(),
    };
    const now = JSON.stringify(contact);
    const changed = before !== "" && before !== now;
    before = now;
    keep({
      ...identity(held),
      ...contact,
      ...(changed && { orderId: "" }),
      consents: Object.entries(consents).flatMap(([what, is]) => (is() ? [what] : [])),
    });
  });
  const problem = signal("");
  const busy = signal(false);
  const submit = async () => {
    problem.set("");
    if (!checkAll([name, mobile, email, ...receipt.fields()])) return;
    if (!each.every((c) => c())) {
      problem.set(t("needConsent"));
      document.getElementById("consent-all")?.focus();
      return;
    }
    busy.set(true);
    const still = staying();
    const contact = { name: name.value().trim(), mobile: mobile.value().trim(), email: email.value().trim() };
    try {
      const orderId = await register(held.hold, { ...purchase()!, ...contact });
      if (!still()) return;
      keep({ ...contact, orderId });
      go("/book/pay");
    } catch (error) {
      busy.set(false);
      if (error instanceof ApiError && error.type === "ResourceTimeOutException") over();
      else {
        if (error instanceof ApiError && (error.status === 409 || error.type === "PaymentAmountMismatchException"))
          void check();
        problem.set(explain(error));
      }
    }
  };
  return h(
    "form",
    {
      novalidate: true,
      onsubmit: submits(submit, busy),
    },
    heading(t("contactTitle"), t("contactText")),
    whatIsHeld(held),
    holdChip(held, over),
    refundNote(held),
    name.view,
    mobile.view,
    email.view,
    receipt.view,
    consentBoxes(consents),
    trouble(problem),
    button(
      t("leave"),
      () => {
        const to = choosing(purchase());
        void leave();
        go(to, { replace: true });
      },
      { kind: "plain" },
    ),
    actions(submitButton(t("toPayment"), busy)),
  );
}

type Consents = Record<"terms" | "privacy" | "age", ReturnType<typeof signal<boolean>>>;

/** Consents that the law requires one by one, with no box ticked beforehand. */
function consentBoxes({ terms, privacy, age }: Consents): Child {
  const list = [terms, privacy, age];
  const all = h("input", {
    type: "checkbox",
    id: "consent-all",
    checked: () => list.every((c) => c()),
    onchange: () => {
      const every = all.checked;
      batch(() => {
        for (const c of list) c.set(every);
      });
    },
  });
  const view = (href: string, what: string) =>
    h("a", { href, target: "_blank", "aria-label": `${what} ${t("view")}` }, t("view"));
  return h(
    "fieldset",
    { class: "consents" },
    h("legend", { class: "hidden" }, t("consentAll")),
    h(
      "div",
      { class: "tick all" },
      h("label", { for: "consent-all" }, all, h("span", null, h("b", null, t("consentAll")))),
    ),
    tick("consent-terms", t("consentTerms"), terms, view("/terms", t("terms"))),
    tick("consent-privacy", t("consentPrivacy"), privacy, view("/privacy", t("privacy"))),
    h("p", { class: "fine" }, t("consentText")),
    tick("consent-age", t("consentAge"), age),
  );
}
