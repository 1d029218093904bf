// Building blocks of screens.

import { ApiError, NetworkError } from "../core/api";
import { type Child, h, match } from "../core/dom";
import { language } from "../core/language";
import type { Resource } from "../core/resource";
import { effect, type Readable, signal } from "../core/signal";
import { refusals, t } from "./text";

/** The heading of a screen, which also sets the title of the page. */
export function heading(text: string, lead?: Child, title = text): Child {
  document.title = `${title} | ${t("brand")}`;
  return h("div", { class: "heading" }, h("h1", { tabindex: -1 }, text), lead ? h("p", { class: "lead" }, lead) : null);
}

export interface ButtonOptions {
  kind?: "primary" | "soft" | "plain" | "danger";
  disabled?: () => boolean;
  busy?: () => boolean;
}

export function button(
  text: Child,
  onclick: () => void,
  { kind = "primary", disabled, busy }: ButtonOptions = {},
): HTMLButtonElement {
  return h(
    "button",
    {
      type: "button",
      class: `button ${kind}`,
      disabled: () => Boolean(disabled?.()),
      "aria-busy": () => (busy?.() ? "true" : null),
      onclick: () => {
        if (!busy?.()) onclick();
      },
    },
    text,
  );
}

/** The button that sends a form. */
export const submitButton = (text: string, busy: () => boolean): HTMLElement =>
  h("button", { class: "button primary", "aria-busy": () => (busy() ? "true" : null) }, text);

export const link = (text: Child, href: string, kind: "primary" | "soft" | "plain" = "soft"): HTMLAnchorElement =>
  h("a", { class: `button ${kind}`, href }, text);

/** The main action of a screen, at its lower edge. */
export const actions = (...children: Child[]): HTMLElement => h("div", { class: "actions" }, ...children);

/** A list of names and values. Rows with an empty value are omitted. */
export function facts(rows: [label: string, value: Child][]): HTMLElement {
  return h(
    "dl",
    { class: "facts" },
    rows
      .filter(([, value]) => value !== "" && value !== null && value !== false)
      .map(([label, value]) => h("div", null, h("dt", null, label), h("dd", null, value))),
  );
}

export const note = (text: Child, kind: "info" | "good" | "warn" = "info"): HTMLElement =>
  h("p", { class: `note ${kind}` }, text);

/** Content that screen readers announce when it appears. */
export const alert = (text: () => Child): HTMLElement => h("div", { class: "alert", role: "alert" }, () => text());

/** Shows what is wrong; nothing while problem is empty. */
export const trouble = (problem: () => string): HTMLElement =>
  alert(() => (problem() ? note(problem(), "warn") : null));

/** The request of a form: whether it runs, and what went wrong. */
export function attempt(say: (error: unknown) => string | Promise<string> = explain) {
  const busy = signal(false);
  const problem = signal("");
  const run = async (request: () => Promise<void>) => {
    busy.set(true);
    problem.set("");
    try {
      await request();
    } catch (error) {
      problem.set(await say(error));
    }
    busy.set(false);
  };
  return { busy, problem, run };
}

/** Shows fetched data. view is called once; later data arrives through its signal. */
export function fetched<T>(source: Resource<T>, view: (data: Readable<T>) => Child): Child {
  return match(
    () => source().is,
    (is) => {
      if (is === "loading") return loading();
      const now = source.peek();
      if (now.is === "failed") return failure(now.error, source.retry);
      if (now.is !== "ready") return null;
      const data = signal(now.data);
      effect(() => {
        const next = source();
        if (next.is === "ready") data.set(next.data);
      });
      return view(data);
    },
  );
}

export const loading = (): HTMLElement =>
  h(
    "div",
    { class: "loading", role: "status" },
    h("span", { class: "spinner" }),
    h("span", { class: "hidden" }, t("loading")),
  );

/** Describes an error to the customer. */
export function explain(error: unknown): string {
  if (error instanceof NetworkError) return t("networkFailed");
  if (!(error instanceof ApiError)) return t("serverFailed");
  if (error.status === 429) return t("tooMany");
  if (language.peek() === "en") return refusals[error.type] ?? t("serverFailed");
  return error.status < 500 && error.message ? error.message : t("serverFailed");
}

export function failure(error: unknown, retry: () => void): Child {
  return h(
    "section",
    { class: "empty", role: "alert" },
    h("h1", { tabindex: -1 }, t("failedTitle")),
    h("p", null, explain(error)),
    button(t("retry"), retry),
  );
}

/** A screen with a single message and links to continue. */
export function notice(icon: Child, title: string, text: Child, ...next: Child[]): Child {
  document.title = `${title} | ${t("brand")}`;
  return h(
    "section",
    { class: "empty" },
    icon,
    h("h1", { tabindex: -1 }, title),
    h("p", null, text),
    h("div", { class: "stack" }, next),
  );
}

/** Opens a dialog. Safari before 15.4 has no modal dialogs: there it is shown in the page. */
export function openDialog(dialog: HTMLDialogElement): void {
  if (dialog.showModal) dialog.showModal();
  else dialog.setAttribute("open", "");
}

export function closeDialog(dialog: HTMLDialogElement): void {
  if (dialog.close) dialog.close();
  else {
    dialog.removeAttribute("open");
    dialog.dispatchEvent(new Event("close"));
  }
}
