// Login by a code sent to a phone or a mailbox.

import { refusedWith } from "../core/api";
import { now, ticking } from "../core/clock";
import { type Child, h, match } from "../core/dom";
import { submits } from "../core/form";
import { countdown } from "../core/format";
import { go, query, staying } from "../core/router";
import { computed, effect, type Signal, signal } from "../core/signal";
import { tabStore } from "../core/storage";
import { checkAll, field, plainNumber } from "./field";
import { emailField, mobileField } from "./person";
import { actions, attempt, button, explain, heading, note, submitButton, trouble } from "./screen";
import { getSite, type LoginType, login, sendCode } from "./service";
import { t } from "./text";

const resendAfter = 30_000;

interface Sent {
  type: LoginType;
  id: string;
  at: number;
  /** When the code expires. */
  until: number;
}

const key = "code";

/** The code that was sent and may still be entered: reading the message may take the memory that the tab had. */
function unused(): Sent | null {
  const kept = JSON.parse(tabStore.get(key) ?? "null") as Sent | null;
  return kept && kept.until > now() ? kept : null;
}

/** Sends a code. */
async function send(type: LoginType, id: string): Promise<Sent> {
  const { loginCodeSeconds } = await getSite();
  await sendCode(type, id);
  const at = now();
  return { type, id, at, until: at + loginCodeSeconds * 1000 };
}

export function loginPage(): Child {
  const sent = signal(unused());
  effect(() => tabStore.set(key, JSON.stringify(sent())));
  return match(sent, (s) => (s ? codeForm(s, sent) : idForm(sent)));
}

function idForm(sent: Signal<Sent | null>): Child {
  const type = signal<LoginType>("mobile");
  const tab = (value: LoginType, text: string) =>
    h(
      "label",
      { class: "tab" },
      h("input", {
        type: "radio",
        name: "type",
        value,
        checked: () => type() === value,
        onchange: () => type.set(value),
      }),
      h("span", null, text),
    );
  return [
    heading(t("loginTitle"), t("loginText")),
    tabStore.set(key, "null") ? null : note(t("needStorage"), "warn"),
    h(
      "div",
      { class: "tabs", role: "radiogroup", "aria-label": t("loginTitle") },
      tab("mobile", t("methodMobile")),
      tab("email", t("fieldEmailOnly")),
    ),
    match(type, (chosen) => idField(chosen, sent)),
  ];
}

function idField(type: LoginType, sent: Signal<Sent | null>): Child {
  const id = type === "mobile" ? mobileField() : emailField();
  const { busy, problem, run } = attempt((error) => (refusedWith(error, 404) ? t("noHistory") : explain(error)));
  const begin = async () => {
    if (!checkAll([id])) return;
    const to = id.value().trim();
    await run(async () => sent.set(await send(type, to)));
  };
  return form(begin, busy, id.view, trouble(problem), actions(submitButton(t("sendCode"), busy)));
}

function codeForm(s: Sent, sent: Signal<Sent | null>): Child {
  const code = field({
    id: "code",
    label: t("fieldCode"),
    tidy: plainNumber,
    problem: (v) => (/^\d{6}$/.test(v) ? "" : t("needCode")),
    attributes: { inputmode: "numeric", autocomplete: "one-time-code", maxlength: 6, pattern: "\\d{6}", class: "code" },
  });
  const time = ticking();
  const left = computed(() => s.until - time());
  const { busy, problem, run } = attempt((error) => {
    code.focus();
    return refusedWith(error, 401) ? t("wrongCode") : explain(error);
  });
  const enter = async () => {
    if (!checkAll([code])) return;
    const still = staying();
    await run(async () => {
      await login(s.type, s.id, code.value().trim());
      tabStore.remove(key);
      if (still()) go(nextAddress(), { replace: true });
    });
  };
  const resend = async () => {
    problem.set("");
    try {
      sent.set(await send(s.type, s.id));
    } catch (error) {
      problem.set(explain(error));
    }
  };
  const waits = computed(() => Math.ceil((s.at + resendAfter - time()) / 1000));
  queueMicrotask(code.focus);
  return form(
    enter,
    busy,
    heading(t("codeTitle"), t("codeText", { to: s.id })),
    code.view,
    h("p", { class: "dim", role: "timer" }, () =>
      left() > 0 ? t("codeLeft", { time: countdown(left()) }) : t("codeGone"),
    ),
    trouble(problem),
    h(
      "div",
      { class: "pair" },
      button(
        () => (waits() > 0 ? t("resendIn", { n: waits() }) : t("resend")),
        () => void resend(),
        { kind: "soft", disabled: () => waits() > 0 },
      ),
      button(t("otherId"), () => sent.set(null), { kind: "soft" }),
    ),
    actions(submitButton(t("login"), busy)),
  );
}

function form(submit: () => Promise<void>, busy: () => boolean, ...children: Child[]): Element {
  return h(
    "form",
    {
      novalidate: true,
      onsubmit: submits(submit, busy),
    },
    ...children,
  );
}

/** The address to return to after the login; only addresses of this site are accepted. */
function nextAddress(): string {
  const next = query().get("next") ?? "";
  // Browsers read a backslash as a slash and skip tabs and line breaks, so /\host is another site, too.
  return /^\/(?![/\\\t\n\r])/.test(next) ? next : "/my";
}
