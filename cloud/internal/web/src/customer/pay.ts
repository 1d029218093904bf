// The payment provider's widget. Only this document may run third-party code, so it needs a page load of its own (see
// policy.go).

import { type Child, h } from "../core/dom";
import { resource } from "../core/resource";
import { go } from "../core/router";
import { signal } from "../core/signal";
import { type Guard, gone, guarded, type Held, holdChip, holding, identity, refundNote, whatIsHeld } from "./contact";
import { keyRecipient } from "./field";
import { keep, purchase } from "./purchase";
import { actions, button, explain, failure, fetched, heading, note, trouble } from "./screen";
import { type Branch, branchName, getSite } from "./service";
import { t, won } from "./text";

/** The part of the provider's script that is used here (version 2, "standard"). */
interface Widgets {
  setAmount(amount: { currency: "KRW"; value: number }): Promise<void>;
  renderPaymentMethods(where: { selector: string; variantKey: string }): Promise<unknown>;
  renderAgreement(where: { selector: string; variantKey: string }): Promise<unknown>;
  requestPayment(order: Record<string, string>): Promise<void>;
}

interface TossPayments {
  (clientKey: string): { widgets(customer: { customerKey: string }): Widgets };
  ANONYMOUS: string;
}

declare global {
  interface Window {
    TossPayments?: TossPayments;
  }
}

export function payPage(): Child {
  return fetched(holding(), (data) => {
    const found = data.peek();
    if (!found) return gone();
    const p = purchase();
    if (!p?.orderId) {
      go("/book/contact", { replace: true });
      return null;
    }
    // The key page does not know the hold of an extension.
    const { room, start, end } = identity(found);
    if (p.back && !p.room) keep({ room, start, end });
    return guarded(found, screen);
  });
}

function screen(held: Held, { over }: Guard): Child {
  const { mobile, email } = purchase()!;
  const widgets = resource(() => open(held.hold.amount, held.hold.clientKey));
  const problem = signal("");
  const busy = signal(false);
  const pay = async () => {
    const ready = widgets.data();
    if (!ready) return;
    busy.set(true);
    problem.set("");
    try {
      await ready.requestPayment(order(held));
    } catch (error) {
      problem.set(refusal(error));
      busy.set(false);
    }
  };
  return [
    heading(t("payTitle")),
    whatIsHeld(held),
    holdChip(held, over),
    // Above the widgets, whose appearance would move what lies below from under a finger.
    mobile
      ? h(
          "p",
          { class: "sent-to" },
          h("span", null, t("keyGoesTo")),
          h("b", null, keyRecipient(mobile, email)),
          h("a", { href: "/book/contact" }, t("fixNumber")),
        )
      : note(t("extensionKey")),
    refundNote(held),
    sellerNote(held),
    () => {
      const now = widgets();
      if (now.is === "failed")
        return now.error instanceof BlockedError
          ? [note(t("payBlocked"), "warn"), button(t("retry"), widgets.retry, { kind: "soft" })]
          : failure(now.error, widgets.retry);
      return now.is === "loading" ? h("p", { class: "dim", role: "status" }, t("payLoading")) : null;
    },
    h("div", { id: "payment-methods", class: "widget" }),
    h("div", { id: "payment-agreement", class: "widget" }),
    trouble(problem),
    actions(
      button(t("payNow", { price: won(held.hold.amount) }), () => void pay(), {
        busy,
        disabled: () => widgets().is !== "ready",
      }),
    ),
  ];
}

/** Names the legal entity that sells, unless it is the company in the footer. */
function sellerNote({ hold: { seller } }: Held): Child {
  if (!seller) return null;
  const { name, representative, businessNumber, mailOrderNumber, address, phone } = seller;
  const facts = [name, representative, businessNumber, mailOrderNumber, address, phone];
  return note(t("soldBy", { facts: facts.filter(Boolean).join(" · ") }));
}

/** Loads the script and renders the widgets. A widget whose frame is blocked never reports anything. */
async function open(amount: number, clientKey: string): Promise<Widgets> {
  const { payment } = await getSite();
  await script(payment.scriptUrl);
  const toss = window.TossPayments!;
  const widgets = toss(clientKey).widgets({ customerKey: toss.ANONYMOUS });
  await widgets.setAmount({ currency: "KRW", value: amount });
  await Promise.race([
    Promise.all([
      widgets.renderPaymentMethods({ selector: "#payment-methods", variantKey: "DEFAULT" }),
      widgets.renderAgreement({ selector: "#payment-agreement", variantKey: "AGREEMENT" }),
    ]),
    new Promise((_, failed) => setTimeout(() => failed(new BlockedError()), widgetTimeout)),
  ]);
  return widgets;
}

/** The provider's form did not load: a slow network, or a content blocker. */
class BlockedError extends Error {}

const scriptTimeout = 10_000; // ms
const widgetTimeout = 30_000; // ms

function script(src: string): Promise<void> {
  if (window.TossPayments) return Promise.resolve();
  return new Promise((loaded, failed) => {
    const fail = () => {
      element.remove();
      failed(new BlockedError());
    };
    // A filter, or the login page of a network, answers with something else than the script.
    const element = h("script", { src, onload: () => (window.TossPayments ? loaded() : fail()), onerror: fail });
    setTimeout(fail, scriptTimeout);
    document.head.append(element);
  });
}

const maxOrderName = 100; // characters that the provider takes

/** Names the order. A name that is too long is cut, but not within a surrogate pair. */
export const orderName = (branch: Branch, room: string): string =>
  `${branchName(branch)} ${t("room", { no: room })}`.slice(0, maxOrderName).replace(/[\ud800-\udbff]$/, "");

function order(held: Held): Record<string, string> {
  const p = purchase()!;
  return {
    orderId: p.orderId,
    orderName: orderName(held.branch, held.hold.roomNo),
    successUrl: `${location.origin}/book/confirm`,
    failUrl: `${location.origin}/book/fail`,
    ...(p.mobile ? { customerName: p.name, customerMobilePhone: p.mobile.replace(/\D/g, "") } : {}),
    ...(p.email ? { customerEmail: p.email } : {}),
  };
}

/** Describes why the widget rejected the payment before anything was paid. */
function refusal(error: unknown): string {
  const { code, message } = error as { code?: string; message?: string };
  if (code === "NEED_AGREEMENT_WITH_REQUIRED_TERMS") return t("agree");
  if (code === "USER_CANCEL" || code === "PAY_PROCESS_CANCELED") return t("failOther");
  return code && message ? message : explain(error);
}
