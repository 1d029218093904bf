// The payment failed or was cancelled: the reason, and another attempt. The room is still held.

import { refusedWith } from "../core/api";
import { type Child, h } from "../core/dom";
import { language } from "../core/language";
import { resource } from "../core/resource";
import { go, query, staying } from "../core/router";
import { signal } from "../core/signal";
import { currentHold, holdChip } from "./contact";
import { clock, sign, warning } from "./icons";
import { choosing, giveUp, keep, leave, purchase, register } from "./purchase";
import { button, explain, notice, trouble } from "./screen";
import { t } from "./text";

/** Any site can link here, so a text of the address is shown only with the order of this tab. */
export function failPage(): Child {
  const asked = query();
  const order = asked.get("orderId");
  const code = asked.get("code");
  if (order && order === purchase()?.orderId) return refused(code, asked.get("message") ?? "");
  return refused(code && /^[A-Z_]+$/.test(code) ? code : null, "");
}

export function refused(code: string | null, message: string): Child {
  const p = purchase();
  const busy = signal(false);
  const problem = signal("");
  // The provider may have recorded the old order as failed, so another attempt needs another order.
  const again = async () => {
    const still = staying();
    busy.set(true);
    problem.set("");
    try {
      const held = await currentHold();
      if (p?.back) {
        await giveUp(); // choosing again takes another hold and order
        location.replace(p.back);
      } else if (held && p?.name) {
        const orderId = await register(held.hold, p);
        if (!still()) return;
        keep({ orderId });
        go("/book/pay", { replace: true });
      } else go("/book/contact", { replace: true });
    } catch (error) {
      busy.set(false);
      if (refusedWith(error, 401, 409)) go("/book/contact", { replace: true });
      else problem.set(explain(error));
    }
  };
  const choose = async () => {
    const to = choosing(p);
    const left = leave();
    if (!p?.back) return go(to, { replace: true });
    await left; // another document would end the release
    location.replace(to);
  };
  const canceled = /CANCEL/.test(code ?? ""); // by the guest: nothing has gone wrong
  const refunded = code === "REFUNDED_PAYMENT"; // captured, so "nothing was charged" would be wrong
  const held = resource(currentHold);
  return [
    notice(
      canceled ? sign(clock(), "wait") : sign(warning(), "bad"),
      t(canceled ? "canceledPayTitle" : refunded ? "refundedPayTitle" : "failTitle"),
      [
        reason(code, message),
        code && !canceled && !refunded ? h("span", { class: "code" }, t("failCode", { code })) : null,
      ],
      h(
        "div",
        { class: "hold-place" }, // its height is that of the chip, so that the buttons below do not move under a finger
        () => {
          const now = held.data();
          return now ? holdChip(now, () => {}) : null;
        },
      ),
      refunded
        ? button(t("bookAgain"), () => void choose()) // the reservation has ended: nothing is left to pay or to leave
        : [
            button(t("payAgain"), () => void again(), { busy }),
            button(t("leave"), () => void choose(), { kind: "soft" }),
          ],
    ),
    trouble(problem),
  ];
}

/** Explains the provider's code. An unknown code is explained by the provider's own message. */
function reason(code: string | null, message: string): string {
  if (!code || /CANCEL/.test(code)) return t("failOther");
  if (code === "REFUNDED_PAYMENT") return t("failRefunded");
  if (/PROCESS_ABORTED/.test(code)) return t("failAborted");
  if (/EXCEED|LIMIT|REJECT_(ACCOUNT|CARD)_PAYMENT/.test(code)) return t("failLimit");
  if (/PASSWORD|INVALID_CARD|CARD_NUMBER|EXPIRATION/.test(code)) return t("failInput");
  if (/NOT_FOUND_PAYMENT|EXPIRED/.test(code)) return t("failExpired");
  if (/REJECT|STOPPED|LOST|FDS/.test(code)) return t("failRejected");
  return language.peek() === "ko" && message ? message : t("failOther");
}
