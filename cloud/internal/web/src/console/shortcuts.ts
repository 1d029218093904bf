// Keyboard shortcuts. Each key presses a control of the screen, and the control names its key.

import { type Child, h } from "../core/dom";
import { effect, onCleanup, signal } from "../core/signal";
import { localStore } from "../core/storage";
import { check, dialog } from "./parts";
import { type TextKey, t } from "./text";

const controls = new Map<string, HTMLElement>();

const offKey = "console-shortcuts";
const on = signal(localStore.get(offKey) !== "off");
effect(() => localStore.set(offKey, on() ? "on" : "off"));

/** Lets a key press a control while its screen is shown. The name of the control must not change. */
export function shortcut<E extends HTMLElement>(key: string, control: E): E {
  const name = control.title || control.ariaLabel || control.textContent.trim();
  control.title = `${name} (${key})`;
  control.dataset.does = name;
  control.setAttribute("aria-keyshortcuts", key);
  controls.set(key, control);
  onCleanup(() => {
    if (controls.get(key) === control) controls.delete(key);
  });
  return control;
}

/** The key of an event. A Korean input method reports no letters, so the place of the key decides then. */
function keyOf(e: KeyboardEvent): string {
  const key = /^[!-~]$/.test(e.key)
    ? e.key
    : e.code === "Slash"
      ? e.shiftKey
        ? "?"
        : "/"
      : e.code.replace(/^Key/, "");
  return e.shiftKey && /[a-z]/i.test(key) ? "" : key.toLowerCase();
}

document.addEventListener("keydown", (e) => {
  if (!on.peek() || e.defaultPrevented || e.repeat || e.ctrlKey || e.metaKey || e.altKey) return;
  if ((e.target as Element).closest?.("input, select, textarea, [contenteditable]")) return;
  if (document.querySelector("dialog[open]")) return;
  const control = controls.get(keyOf(e));
  if (!control) return;
  e.preventDefault();
  control.click();
});

/** The keys that work on the focused element, not everywhere. */
const placeKeys: [keys: string, text: TextKey][] = [
  ["Tab", "keyTab"],
  ["← → ↑ ↓", "keyCursor"],
  ["Shift+← →", "keyCursorLonger"],
  ["Alt+← → ↑ ↓", "keyMove"],
  ["Alt+Shift+← →", "keyLonger"],
  ["Enter", "keyEnter"],
  ["Esc", "keyEscape"],
];

/** Shows the shortcuts of the present screen, and lets the user switch them off: a speech input may press single keys. */
export function openShortcuts(): void {
  const here = [...controls].map(([key, control]): [string, string] => [key, control.dataset.does ?? ""]);
  dialog(t("shortcuts"), () => [
    check(t("shortcutsOn"), on),
    keyList(here),
    h("h3", null, t("dayKeys")),
    keyList(placeKeys.map(([key, text]) => [key, t(text)])),
  ]);
}

const keyList = (rows: [key: string, text: string][]): Child =>
  h(
    "dl",
    { class: "keys" },
    rows.map(([key, text]) => h("div", null, h("dt", null, h("kbd", null, key)), h("dd", null, text))),
  );
