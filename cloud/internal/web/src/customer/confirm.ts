// The confirmation after the payment provider. The request may be repeated by a reload or after a lost network; the service
// charges once. An unknown outcome is never shown as a failure.

import { ApiError, NetworkError } from "../core/api";
import { type Child, h, match } from "../core/dom";
import { go, query } from "../core/router";
import { onCleanup, signal } from "../core/signal";
import { gone } from "./contact";
import { endExchange } from "./exchange";
import { refused } from "./fail";
import { clock, sign } from "./icons";
import { finish, keep, purchase } from "./purchase";
import { noteConfirmed } from "./receipt";
import { noteRecent } from "./recent";
import { heading, link, notice } from "./screen";
import { type Confirmed, confirmPayment } from "./service";
import { t } from "./text";

type State =
  | { is: "asking" }
  | { is: "lost" }
  | { is: "pending"; long: boolean }
  | { is: "refused"; code: string | null; message: string }
  | { is: "gone" };

const retryDelay = 2000; // ms
const longWait = 60_000; // ms after which the page says that the window may be closed

export function confirmPage(): Child {
  const asked = query();
  const [paymentKey, orderId, amount] = [asked.get("paymentKey"), asked.get("orderId"), Number(asked.get("amount"))];
  if (!paymentKey || !orderId || !Number.isInteger(amount)) {
    go("/book/receipt", { replace: true });
    return null;
  }
  const state = signal<State>({ is: "asking" });
  const mark = (confirming: boolean) => {
    if (purchase()) keep({ confirming });
  };
  mark(true);
  let alive = true;
  onCleanup(() => (alive = false));
  void (async () => {
    const began = Date.now();
    while (alive) {
      const back = purchase()?.back;
      let answer: Confirmed | undefined;
      try {
        answer = await confirmPayment(paymentKey, orderId, amount);
      } catch (error) {
        const next = after(error, Date.now() - began > longWait);
        state.set(next);
        if (next.is === "refused" || next.is === "gone") {
          mark(false);
          return;
        }
      }
      // Outside the try: an error here does not concern the payment, which must not appear as pending.
      if (answer) {
        noteConfirmed(answer, back);
        if (!alive) return;
        finish();
        endExchange();
        // At once: the guest is in the room, and the network may be gone before the receipt.
        if (back && !answer.virtualaccountAccountNumber) {
          location.replace(back + "?fresh=1");
          return;
        }
        noteRecent();
        go("/book/receipt", { replace: true });
        return;
      }
      await new Promise((wake) => setTimeout(wake, retryDelay));
    }
  })();
  return match(state, (now) => {
    if (now.is === "refused") return refused(now.code, now.message);
    if (now.is === "gone" && purchase()?.back) return gone();
    if (now.is === "gone")
      return notice(sign(clock(), "bad"), t("goneTitle"), t("goneText"), link(t("bookAgain"), "/", "primary"));
    return waiting(now);
  });
}

function after(error: unknown, long: boolean): State {
  if (error instanceof NetworkError) return { is: "lost" };
  if (!(error instanceof ApiError) || error.status >= 500 || error.status === 429) return { is: "pending", long };
  if (error.status === 401) return { is: "gone" };
  return { is: "refused", code: error.code, message: error.message };
}

function waiting(state: State): Child {
  const text =
    state.is === "lost"
      ? t("lostText")
      : state.is === "pending"
        ? t(state.long ? "pendingLong" : "pendingText")
        : t("confirmText");
  return h(
    "section",
    { class: "empty" },
    h("span", { class: "spinner big" }),
    heading(t("confirmTitle")),
    h("p", { role: "status" }, text),
  );
}
