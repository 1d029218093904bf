// Who reserves, while the room is kept for them.

import { parseMinute, parseStoredEnd } from "../booking/time";
import { ApiError } from "../core/api";
import { now, ticking } from "../core/clock";
import { type Child, h, match } from "../core/dom";
import { resource } from "../core/resource";
import { go } from "../core/router";
import { batch, computed, effect, signal } from "../core/signal";
import { checkAll, field, looksLikeEmail, looksLikeMobile, tick, tidyMobile } from "./field";
import { clock, sign } from "./icons";
import { begin, choosing, giveUp, keep, purchase } from "./purchase";
import { actions, alert, button, explain, fetched, heading, note, notice } from "./screen";
import { type Branch, branchName, getBranches, getHold, getReceipt, type Hold, register } from "./service";
import { countdown, dateText, t, timesText, won } from "./text";

export interface Held {
  hold: Hold;
  branch: Branch;
  /** When the hold ends, by the service's clock. */
  until: number;
}

/** The hold of this browser, or null when there is none any more. */
export async function currentHold(): Promise<Held | null> {
  try {
    const [hold, branches] = await Promise.all([getHold(), getBranches()]);
    return {
      hold,
      branch: branches.find((b) => b.branch === hold.branch)!,
      until: now() + hold.remainingSeconds * 1000,
    };
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 401)) throw error;
  }
  return null;
}

/** What has become of the purchase if the hold is gone: bought already, or run out. */
export async function afterHold(): Promise<void> {
  const receipt = await getReceipt().catch(() => null);
  if (receipt && receipt.status !== "CANCELED") go("/book/receipt", { replace: true });
}

export function contactPage(): Child {
  const held = resource(async () => {
    const found = await currentHold();
    if (!found) await afterHold();
    return found;
  });
  return fetched(held, (data) => {
    const found = data.peek();
    return found ? screen(found) : gone();
  });
}

/** The time is over; if nobody else has come the room can be had again. */
export function gone(): Child {
  const p = purchase();
  const problem = signal("");
  const busy = signal(false);
  const again = async () => {
    if (!p) return;
    busy.set(true);
    try {
      await begin(p.branch, p.room, p.start, p.end);
      if (location.pathname === "/book/contact") location.reload();
      else go("/book/contact", { replace: true });
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
      p?.branch ? button(t("holdAgain"), () => void again(), { busy }) : null,
      button(
        t("pickAgain"),
        () => {
          const to = choosing(p);
          giveUp();
          go(to, { replace: true });
        },
        { kind: "soft" },
      ),
    ),
    alert(() => (problem() ? note(problem(), "warn") : null)),
  ];
}

/** How long the room is kept. Calls over when it no longer is. */
export function holdChip(held: Held, over: () => void): Child {
  const time = ticking();
  const left = computed(() => held.until - time());
  effect(() => {
    if (left() <= 0) over();
  });
  // Said aloud once a minute, not every second.
  const spoken = computed(() => Math.ceil(left() / 60_000));
  return h(
    "p",
    { class: "hold-chip" },
    clock(),
    h("span", { "aria-hidden": "true" }, () => t("holdLeft", { time: countdown(left()) })),
    h("span", { class: "hidden", role: "timer", "aria-live": "polite" }, () =>
      t("holdLeft", { time: t("minutes", { n: Math.max(0, spoken()) }) }),
    ),
  );
}

export function whatIsHeld({ hold, branch }: Held): Child {
  const start = parseMinute(hold.startDateTime);
  return h(
    "p",
    { class: "what" },
    h("b", null, `${branchName(branch)} ${t("room", { no: hold.roomNo })}`),
    h("span", null, `${dateText(start)} ${timesText(start, parseStoredEnd(hold.endDateTime))}`),
  );
}

function screen(held: Held): Child {
  const p = purchase();
  const over = signal(false);
  return match(over, (isOver) => (isOver ? gone() : form(held, p ?? null, () => over.set(true))));
}

function form(held: Held, p: ReturnType<typeof purchase>, over: () => void): Child {
  const name = field({
    id: "name",
    label: t("fieldName"),
    value: p?.name ?? "",
    problem: (v) => (v ? "" : t("needName")),
    attributes: { autocomplete: "name", maxlength: 50, required: true },
  });
  const mobile = field({
    id: "mobile",
    label: t("fieldMobile"),
    value: p?.mobile ?? "",
    tidy: tidyMobile,
    problem: (v) => (looksLikeMobile(v) ? "" : t("needMobile")),
    attributes: { type: "tel", inputmode: "tel", autocomplete: "tel-national", maxlength: 20, required: true },
  });
  const email = field({
    id: "email",
    label: t("fieldEmail"),
    value: p?.email ?? "",
    problem: (v) => (!v || looksLikeEmail(v) ? "" : t("needEmail")),
    attributes: { type: "email", inputmode: "email", autocomplete: "email", maxlength: 100 },
  });
  const consents = { terms: signal(false), privacy: signal(false), age: signal(false) };
  const each = Object.values(consents);
  const problem = signal("");
  const busy = signal(false);
  const submit = async () => {
    problem.set("");
    if (!checkAll([name, mobile, email])) return;
    if (!each.every((c) => c())) {
      problem.set(t("needConsent"));
      document.getElementById("consent-all")?.focus();
      return;
    }
    busy.set(true);
    const contact = { name: name.value().trim(), mobile: mobile.value().trim(), email: email.value().trim() };
    try {
      const { orderId } = await register(held.hold.amount, contact.name, contact.mobile, contact.email);
      keep({
        ...contact,
        branch: held.hold.branch,
        room: held.hold.roomNo,
        start: parseMinute(held.hold.startDateTime),
        end: parseStoredEnd(held.hold.endDateTime),
        orderId,
      });
      go("/book/pay");
    } catch (error) {
      busy.set(false);
      if (error instanceof ApiError && error.type === "ResourceTimeOutException") over();
      else problem.set(explain(error));
    }
  };
  return h(
    "form",
    {
      novalidate: true,
      onsubmit: (event: SubmitEvent) => {
        event.preventDefault();
        if (!busy()) void submit();
      },
    },
    heading(t("contactTitle"), t("contactText")),
    whatIsHeld(held),
    holdChip(held, over),
    name.view,
    mobile.view,
    email.view,
    consentBoxes(consents),
    alert(() => (problem() ? note(problem(), "warn") : null)),
    button(
      t("leave"),
      () => {
        const to = choosing(purchase());
        giveUp();
        go(to, { replace: true });
      },
      { kind: "plain" },
    ),
    actions(
      h(
        "button",
        { class: "button primary", "aria-busy": () => (busy() ? "true" : null) },
        t("toPayment", { price: won(held.hold.amount) }),
      ),
    ),
  );
}

type Consents = Record<"terms" | "privacy" | "age", ReturnType<typeof signal<boolean>>>;

/** What the law wants asked one by one, none of it ticked beforehand. */
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
