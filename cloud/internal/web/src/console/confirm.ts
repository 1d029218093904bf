// The proof of the identity that refunds, exports and PINs need some minutes after the login.

import { api } from "../core/api";
import { h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { passkeysWork } from "../core/passkey";
import { signal } from "../core/signal";
import { attempt, button, dialog, explain, field, input, submitsOnce, toast } from "./parts";
import { withPasskey } from "./passkeys";
import { t } from "./text";

const path = "/v2/admin/account/confirmation";

let asking: Promise<boolean> | null = null;

/** Asks for the password or a code in a dialog. Resolves to whether the service accepted it. */
export function confirm(): Promise<boolean> {
  asking ??= ask().finally(() => (asking = null));
  return asking;
}

async function ask(): Promise<boolean> {
  const { method, passkey } = await api.get<Schemas["Confirmation"]>(path);
  return new Promise((resolve) => {
    let done = false;
    const secret = signal("");
    const { run, view } = attempt();
    dialog(
      t("confirmTitle"),
      (close) =>
        h(
          "form",
          {
            class: "form",
            onsubmit: submitsOnce(async () => {
              const value = method === "code" ? secret.peek().replace(/\s/g, "") : secret.peek();
              done = await run(() => api.post(path, { [method]: value }));
              if (done) close();
            }),
          },
          h("p", { class: "hint" }, t("confirmText")),
          method === "code"
            ? field(
                t("secondCode"),
                input(secret, { autocomplete: "one-time-code", maxlength: 14, required: true, autofocus: true }),
              )
            : field(
                t("passwordNow"),
                input(secret, {
                  type: "password",
                  autocomplete: "current-password",
                  required: true,
                  autofocus: true,
                }),
              ),
          view(),
          h(
            "div",
            { class: "footer" },
            passkey && passkeysWork()
              ? button(t("passkeyConfirm"), async () => {
                  await run(() =>
                    withPasskey(async (credential) => {
                      await api.post(path, { credential });
                      done = true;
                    }),
                  );
                  if (done) close();
                })
              : null,
            button(t("confirmIdentity"), () => {}, { kind: "primary", type: "submit" }),
          ),
        ),
      { onclose: () => resolve(done) },
    );
  });
}

/** A link to a file of the service, for which the identity is confirmed first. */
export const fileLink = (href: () => string, text: string): HTMLElement => checked(href, text, confirm);

/** A link to a file of the service that names no guest. */
export const reportLink = (href: () => string, text: string): HTMLElement => checked(href, text, async () => true);

/** A link that is followed once the session is known to continue: the browser shows nothing but a failed download of one that has ended. */
function checked(href: () => string, text: string, unconfirmed: () => Promise<boolean>): HTMLElement {
  return h(
    "a",
    {
      class: "button soft",
      href,
      download: "",
      onclick: async (e: Event) => {
        e.preventDefault();
        const address = href();
        try {
          const { confirmed } = await api.get<Schemas["Confirmation"]>(path);
          if (confirmed || (await unconfirmed())) h("a", { href: address, download: "" }).click();
        } catch (error) {
          toast(explain(error), "bad");
        }
      },
    },
    text,
  );
}
