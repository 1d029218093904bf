// Login with id and password, and with a code if two-step verification is set up.

import { ApiError, api } from "../core/api";
import { type Child, h, when } from "../core/dom";
import { submits } from "../core/form";
import { language } from "../core/language";
import { passkeysWork } from "../core/passkey";
import { go, query } from "../core/router";
import { signal } from "../core/signal";
import { leaveFrame, switchLanguage } from "./frame";
import { FieldError } from "./numbers";
import { attempt, button, closeDialogs, field, input } from "./parts";
import { withPasskey } from "./passkeys";
import { identify, me } from "./session";
import { t } from "./text";

/** After the login only addresses of the console are opened. */
const next = (): string => {
  const wanted = query().get("next") ?? "";
  return /^\/console\/[\w/-]+(\?[^#]*)?$/.test(wanted) ? wanted : "/console";
};

export function loginScreen(): Child {
  closeDialogs();
  leaveFrame();
  document.title = `${t("login")} | ${t("console")}`;
  const [id, password, code] = [signal(""), signal(""), signal("")];
  const needsCode = signal(false);
  const busy = signal(false);
  const { run, view } = attempt();
  const proceed = async () => {
    await identify();
    if (me.peek() === null) throw new FieldError(t("needCookies")); // the login was accepted, but its session is not sent
    go(next(), { replace: true });
  };
  const enter = async (credential: unknown) => {
    await api.post("/v2/admin/passkeys/login", { credential });
    await proceed();
  };
  const submit = async () => {
    busy.set(true);
    const ok = await run(async () => {
      try {
        await api.post("/admin/login", {
          id: id.peek().trim(),
          password: password.peek(),
          ...(code.peek() ? { code: code.peek().replace(/\s/g, "") } : {}),
        });
      } catch (error) {
        if (!(error instanceof ApiError) || error.type !== "SecondFactorRequired" || needsCode.peek()) throw error;
        needsCode.set(true);
        queueMicrotask(() => document.querySelector<HTMLElement>("#code")?.focus());
        return;
      }
      await proceed();
    });
    busy.set(false);
    if (!ok) document.querySelector<HTMLElement>(needsCode.peek() ? "#code" : "#password")?.focus();
  };
  // The attribute autofocus counts only in a new document, not when a session ends.
  queueMicrotask(() => document.querySelector<HTMLElement>("#id")?.focus());
  const other = language.peek() === "ko" ? "en" : "ko";
  return h(
    "main",
    { id: "main", class: "login" },
    h(
      "form",
      { class: "card", onsubmit: submits(submit, busy) },
      h("img", { src: "/icon.svg", alt: "", width: 44, height: 44 }),
      h("h1", null, t("loginTitle")),
      query().has("ended") ? h("p", { class: "notice", role: "status" }, t("sessionOver")) : null,
      field(
        t("loginId"),
        input(id, {
          id: "id",
          autocomplete: "username",
          required: true,
          autocapitalize: "none",
          spellcheck: "false",
          autofocus: true,
        }),
      ),
      field(
        t("password"),
        input(password, { id: "password", type: "password", autocomplete: "current-password", required: true }),
      ),
      when(needsCode, () =>
        field(
          t("secondCode"),
          input(code, { id: "code", autocomplete: "one-time-code", maxlength: 14 }),
          t("secondCodeHint"),
        ),
      ),
      view(),
      h("button", { type: "submit", class: "button primary", "aria-busy": () => (busy() ? "true" : null) }, t("login")),
      passkeysWork() ? button(t("passkeyLogin"), () => run(() => withPasskey(enter))) : null,
      h(
        "button",
        { type: "button", class: "button plain", lang: other, onclick: () => switchLanguage(other) },
        t("otherLanguage"),
      ),
    ),
  );
}
