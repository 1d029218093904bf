// The payment was not made: why, and another try. The room is still kept.

import { ApiError } from "../core/api";
import { type Child, h } from "../core/dom";
import { language } from "../core/language";
import { go, query } from "../core/router";
import { signal } from "../core/signal";
import { currentHold } from "./contact";
import { sign, warning } from "./icons";
import { choosing, giveUp, keep, purchase } from "./purchase";
import { alert, button, explain, note, notice } from "./screen";
import { register } from "./service";
import { t } from "./text";

export function failPage(): Child {
  return refused(query().get("code"), query().get("message") ?? "");
}

export function refused(code: string | null, message: string): Child {
  const p = purchase();
  const busy = signal(false);
  const problem = signal("");
  // The provider may know the old order as failed: another try needs another order.
  const again = async () => {
    busy.set(true);
    problem.set("");
    try {
      const held = await currentHold();
      if (held && p?.name) {
        const { orderId } = await register(held.hold.amount, p.name, p.mobile, p.email);
        keep({ orderId });
        go("/book/pay", { replace: true });
      } else go("/book/contact", { replace: true });
    } catch (error) {
      busy.set(false);
      if (error instanceof ApiError && error.status === 401) go("/book/contact", { replace: true });
      else problem.set(explain(error));
    }
  };
  return [
    notice(
      sign(warning(), "bad"),
      t("failTitle"),
      [reason(code, message), code ? h("span", { class: "code" }, t("failCode", { code })) : null],
      button(t("payAgain"), () => void again(), { busy }),
      button(
        t("leave"),
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

/** The provider's codes in plain words. What is not known is told as the provider told it. */
function reason(code: string | null, message: string): string {
  if (!code) return t("failOther");
  if (/CANCEL/.test(code)) return t("failCanceled");
  if (/PROCESS_ABORTED/.test(code)) return t("failAborted");
  if (/EXCEED|LIMIT|REJECT_(ACCOUNT|CARD)_PAYMENT/.test(code)) return t("failLimit");
  if (/PASSWORD|INVALID_CARD|CARD_NUMBER|EXPIRATION/.test(code)) return t("failInput");
  if (/NOT_FOUND_PAYMENT|EXPIRED/.test(code)) return t("failExpired");
  if (/REJECT|STOPPED|LOST|FDS/.test(code)) return t("failRejected");
  return language.peek() === "ko" && message ? message : t("failOther");
}
