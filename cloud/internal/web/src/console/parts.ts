// The components of the console's screens.

import { ApiError, NetworkError } from "../core/api";
import { append, type Child, h, match } from "../core/dom";
import { submits } from "../core/form";
import { english } from "../core/language";
import type { Resource } from "../core/resource";
import { effect, type Readable, type Signal, scope, signal, untracked } from "../core/signal";
import { FieldError } from "./numbers";
import { errorText, type TextKey, t, weekdayText } from "./text";

export type Kind = "primary" | "soft" | "plain" | "danger";

export interface ButtonOptions {
  kind?: Kind;
  disabled?: () => boolean;
  /** The accessible name, if the content alone is not enough. */
  label?: string;
  type?: "button" | "submit";
}

/**
 * A button. While the promise of its action is pending it is busy and ignores further presses; it is not disabled, because a
 * disabled element loses the focus. A request that fails is shown to the user, unless the action has shown it.
 */
export function button(
  text: Child,
  action: () => unknown,
  { kind = "soft", disabled, label, type = "button" }: ButtonOptions = {},
): HTMLButtonElement {
  const busy = signal(false);
  return h(
    "button",
    {
      type,
      class: `button ${kind}`,
      "aria-label": label ?? null,
      "aria-busy": () => (busy() ? "true" : null),
      disabled: () => Boolean(disabled?.()),
      onclick: async () => {
        if (busy.peek()) return;
        const earlier = successes();
        const result = action();
        if (!(result instanceof Promise)) return;
        remove(earlier);
        busy.set(true);
        try {
          await result;
        } catch (error) {
          toast(explain(error), "bad");
        } finally {
          busy.set(false);
        }
      },
    },
    text,
  );
}

/** Sets the page title and creates the heading of the screen. */
export function heading(text: string, ...tools: Child[]): HTMLElement {
  document.title = `${text} | ${t("console")}`;
  return h(
    "div",
    { class: "heading" },
    h("h1", { tabindex: -1 }, text),
    tools.length ? h("div", { class: "tools" }, tools) : null,
  );
}

export const section = (title: string, ...children: Child[]): HTMLElement => {
  const id = `s${++serial}`;
  return h("section", { class: "card", "aria-labelledby": id }, h("h2", { id }, title), children);
};

let serial = 0;

/** A label above its control. The control gets the id that the label refers to. */
export function field(label: string, control: HTMLElement, hint?: Child): HTMLElement {
  const id = control.id || `f${++serial}`;
  control.id = id;
  if (hint) control.setAttribute("aria-describedby", `${id}-hint`);
  return h(
    "div",
    { class: "field" },
    h("label", { for: id }, label),
    control,
    hint ? h("p", { class: "hint", id: `${id}-hint` }, hint) : null,
  );
}

/** A text input bound to a signal. */
export function input(value: Signal<string>, props: Record<string, unknown> = {}): HTMLInputElement {
  return h("input", {
    type: "text",
    autocomplete: "off",
    ...props,
    value: () => value(),
    oninput: (e: Event) => value.set((e.target as HTMLInputElement).value),
  });
}

export interface Choice {
  value: string;
  text: string;
  disabled?: boolean;
}

/** A drop-down bound to a signal. */
export function select(
  value: Signal<string>,
  choices: () => Choice[],
  props: Record<string, unknown> = {},
): HTMLSelectElement {
  const element = h(
    "select",
    { ...props, onchange: (e: Event) => value.set((e.target as HTMLSelectElement).value) },
    () => choices().map((c) => h("option", { value: c.value, disabled: Boolean(c.disabled) }, c.text)),
  );
  effect(() => {
    choices();
    element.value = value();
  });
  return element;
}

/** A choice of one among a few visible options. */
export function segmented(label: string, value: Signal<string>, choices: Choice[]): HTMLElement {
  return h(
    "div",
    { class: "segmented", role: "group", "aria-label": label },
    choices.map((c) =>
      h(
        "button",
        {
          type: "button",
          "aria-pressed": () => String(value() === c.value),
          disabled: Boolean(c.disabled),
          onclick: () => value.set(c.value),
        },
        c.text,
      ),
    ),
  );
}

export function toggle(
  label: string,
  on: () => boolean,
  change: (on: boolean) => unknown,
  disabled: () => boolean = () => false,
): HTMLButtonElement {
  return h(
    "button",
    {
      type: "button",
      class: "toggle",
      role: "switch",
      "aria-label": label,
      "aria-checked": () => String(on()),
      disabled,
      onclick: () => void change(!on()),
    },
    h("span", { class: "knob" }),
  );
}

export const chip = (text: Child, kind = ""): HTMLElement => h("span", { class: `chip ${kind}` }, text);

/** Names and values. Rows whose value is empty are left out. */
export function facts(rows: [label: string, value: Child][]): HTMLElement {
  const full = rows.filter(([, value]) => value !== "" && value !== null && value !== undefined && value !== false);
  return h(
    "dl",
    { class: "facts" },
    full.map(([label, value]) => h("div", null, h("dt", null, label), h("dd", null, value))),
  );
}

export interface Column<T> {
  title: string;
  cell: (row: T) => Child;
  /** brief: never wraps; wide: takes the remaining width */
  kind?: "number" | "wide" | "action" | "brief";
}

/** A table that becomes a list of cards on narrow screens. Its ARIA roles keep it a table for screen readers. */
export function table<T>(
  caption: string,
  columns: Column<T>[],
  rows: readonly T[],
  empty: string = t("nothing"),
): HTMLElement {
  if (rows.length === 0) return h("p", { class: "nothing" }, empty);
  const head = h(
    "tr",
    { role: "row" },
    columns.map((c) =>
      h(
        "th",
        { role: "columnheader", scope: "col", class: c.kind ?? null },
        c.title || h("span", { class: "hidden" }, t("actions")),
      ),
    ),
  );
  const body = rows.map((row) =>
    h(
      "tr",
      { role: "row" },
      columns.map((c) => h("td", { role: "cell", class: c.kind ?? null, "data-label": c.title }, c.cell(row))),
    ),
  );
  return h(
    "table",
    { role: "table", class: "table" },
    h("caption", { class: "hidden" }, caption),
    h("thead", { role: "rowgroup" }, head),
    h("tbody", { role: "rowgroup" }, body),
  );
}

export const loading = (): HTMLElement =>
  h(
    "div",
    { class: "loading", role: "status" },
    h("span", { class: "spinner" }),
    h("span", { class: "hidden" }, t("loading")),
  );

/** Shows fetched data. view is created once and receives later data through its signal. */
export function fetched<T>(source: Resource<T>, view: (data: Readable<T>) => Child): Child {
  return match(
    () => source().is,
    (is) => {
      if (is === "loading") return loading();
      const now = source.peek();
      if (now.is === "failed")
        return h(
          "div",
          { class: "card failed", role: "alert" },
          h("p", null, explain(now.error)),
          button(t("retry"), source.retry),
        );
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

/** The text of an error. Without a text in the page's language, as for those of the payment provider, it is Korean. */
export function explain(error: unknown): string {
  if (error instanceof FieldError) return error.message;
  if (error instanceof NetworkError) return t("networkFailed");
  if (!(error instanceof ApiError)) throw error;
  if (error.status === 429) return t("tooMany");
  if (english()) {
    const said = errorText(error.message) ?? fieldError(error.message);
    return said ?? `${t("refused")}${error.message ? ` (${error.message})` : ""}`;
  }
  return error.message || t("serverFailed");
}

const fieldProblems: [ending: RegExp, text: TextKey][] = [
  [/값은 필수입니다\.$/, "fieldMissing"],
  [/값의 형식이 올바르지 않습니다\.$/, "fieldMalformed"],
  [/값이 올바르지 않습니다\.$/, "fieldUnknown"],
  [/값은 최대 (\d+)자까지 입력할 수 있습니다\.$/, "fieldTooLong"],
  [/값은 (\d+)에서 (\d+) 사이여야 합니다\.$/, "fieldOutOfRange"],
];

/** The English text of a Korean message about a field, such as "월요일 운영 시간(open) 값의 형식이 올바르지 않습니다." */
function fieldError(message: string): string | undefined {
  const [, day = "", field] = /^(?:([일월화수목금토])요일 )?.*?\(?([\w.]+)\)? 값/.exec(message) ?? [];
  const [ending, problem] = fieldProblems.find(([ending]) => ending.test(message)) ?? [];
  if (!field || !ending || !problem) return undefined;
  const [, low = "", high = ""] = ending.exec(message) ?? [];
  const text = t(problem, { field, low, high });
  return day ? `${weekdayText("일월화수목금토".indexOf(day))}: ${text}` : text;
}

/** An action that shows its failure in place and returns whether it succeeded. */
export function attempt(): {
  problem: Readable<string>;
  run: (action: () => Promise<unknown>) => Promise<boolean>;
  view: () => Child;
} {
  const problem = signal("");
  return {
    problem,
    run: async (action) => {
      problem.set("");
      try {
        await action();
        return true;
      } catch (error) {
        problem.set(explain(error));
        return false;
      }
    },
    view: () => h("div", { class: "problem", role: "alert" }, () => problem()),
  };
}

/** Handles the submit event of a form: until the promise of send has settled, it ignores further ones, as of a key that is held down. */
export function submitsOnce(send: () => Promise<unknown>): (event: Event) => void {
  let busy = false;
  return submits(
    async () => {
      busy = true;
      try {
        await send();
      } finally {
        busy = false;
      }
    },
    () => busy,
  );
}

const toasts = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
document.body.append(toasts);

/** Shows a short notification. */
export function toast(text: string, kind: "good" | "bad" = "good"): void {
  note(h("p", { class: `toast ${kind}` }, text), kind === "good" ? 5000 : 9000);
}

/** The notices of actions that succeeded. They go when the user begins the next one, or they would be taken for its outcome. */
const successes = (): Element[] => [...toasts.querySelectorAll(".good:not(:has(button))")];

function remove(notices: Element[]): void {
  for (const notice of notices) notice.remove();
}

document.addEventListener("submit", () => remove(successes()), { capture: true });

/** The time in ms in which a change can be taken back. */
const undoTime = 10_000;

/** Confirms a change and offers to take it back for ten seconds. */
export function toastWithUndo(text: string, undo: () => Promise<unknown>): void {
  const element = h(
    "p",
    { class: "toast good" },
    text,
    " ",
    button(t("undo"), async () => {
      element.remove();
      try {
        await undo();
        toast(t("undone"));
      } catch (error) {
        toast(explain(error), "bad");
      }
    }),
  );
  note(element, undoTime);
}

function note(element: HTMLElement, time: number): void {
  topmost().append(toasts);
  toasts.append(element);
  setTimeout(() => element.remove(), time);
}

/** Moves the toasts into a modal dialog, which makes everything outside it inert. */
const topmost = (): Element => [...document.querySelectorAll("dialog[open]")].pop() ?? document.body;

export interface Dialog {
  close: () => void;
}

/** Opens a dialog over the page, or a drawer at its side. */
export function dialog(
  title: string,
  view: (close: () => void) => Child,
  { kind = "centre", onclose }: { kind?: "centre" | "drawer"; onclose?: () => void } = {},
): Dialog {
  const id = `d${++serial}`;
  const element = h("dialog", { class: kind, "aria-labelledby": id });
  const close = () => element.close();
  const [, dispose] = scope(
    () =>
      append(element, [
        h(
          "header",
          null,
          h("h2", { id, tabindex: -1 }, title),
          h("button", { type: "button", class: "close", "aria-label": t("close"), onclick: close }, "✕"),
        ),
        h("div", { class: "body" }, view(close)),
      ]),
    true,
  );
  const opener = document.activeElement;
  element.addEventListener("close", () => {
    if (element.contains(toasts)) topmost().append(toasts);
    dispose();
    element.remove();
    onclose?.();
    // The browser returns the focus to the opener, unless a table with new data has replaced it.
    if (opener && !opener.isConnected && document.activeElement === document.body) successor(opener)?.focus();
  });
  element.addEventListener("click", (e) => {
    if (e.target === element && kind === "drawer") close();
  });
  document.body.append(element);
  element.showModal();
  untracked(
    () => element.querySelector<HTMLElement>("[autofocus]") ?? element.querySelector<HTMLElement>("h2"),
  )?.focus();
  return { close };
}

/** The only control that has the kind and the name of another one, which is no longer in the page. */
function successor(control: Element): HTMLElement | undefined {
  const name = (e: Element) => e.getAttribute("aria-label") ?? e.textContent;
  const same = [...document.querySelectorAll<HTMLElement>(control.localName)].filter((e) => name(e) === name(control));
  return same.length === 1 ? same[0] : undefined;
}

/** Asks before an action that is hard to take back. */
export function question(title: string, text: string, action: string, run: () => Promise<unknown>): void {
  dialog(title, (close) => {
    const trial = attempt();
    return [
      h("p", null, text),
      trial.view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(
          action,
          async () => {
            if (await trial.run(run)) close();
          },
          { kind: "danger" },
        ),
      ),
    ];
  });
}

/** Closes dialogs and drawers when the screen changes. */
export function closeDialogs(): void {
  for (const element of document.querySelectorAll<HTMLDialogElement>("dialog[open]")) element.close();
}

/** Copies a text to the clipboard and confirms it with a toast. */
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(t("copied"));
  } catch {
    toast(t("copyFailed"), "bad");
  }
}

/** A box that is ticked or not. */
export const check = (label: Child, value: Signal<boolean>): HTMLElement =>
  h(
    "label",
    { class: "check" },
    h("input", {
      type: "checkbox",
      checked: value,
      onchange: (e: Event) => value.set((e.target as HTMLInputElement).checked),
    }),
    label,
  );

/** Saves a text as a file. */
export function saveFile(name: string, type: string, text: string): void {
  const href = URL.createObjectURL(new Blob([text], { type }));
  h("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}

/** Downloads a table as a CSV file. The byte order mark makes spreadsheets read it as UTF-8. */
export function downloadCSV(name: string, header: string[], rows: (string | number | null)[][]): void {
  const cell = (v: string | number | null) => {
    let text = String(v ?? "");
    if (/^[=+\-@\t\r]/.test(text) && typeof v === "string") text = `'${text}`; // a spreadsheet would run it as a formula
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const body = "\uFEFF" + [header, ...rows].map((row) => row.map(cell).join(",")).join("\r\n") + "\r\n";
  saveFile(name, "text/csv;charset=utf-8", body);
}
