// DOM elements whose attributes and children follow signals.

import { batch, effect, onCleanup, type Readable, type Signal, scope, signal, untracked } from "./signal";

export type Child = Node | string | number | null | undefined | false | Child[] | (() => Child);

type Value = string | number | boolean | null | undefined;
export type Props = { [name: string]: unknown };

const svgTags = new Set(["svg", "path", "circle", "rect", "g", "line", "use"]);

/**
 * Creates an element. A prop that starts with "on" is an event handler. Any other function is evaluated again whenever
 * a signal that it reads changes. null, undefined and false omit an attribute, true sets it to the empty string.
 */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  props?: Props | null,
  ...children: Child[]
): HTMLElementTagNameMap[K];
export function h(tag: string, props?: Props | null, ...children: Child[]): Element;
export function h(tag: string, props?: Props | null, ...children: Child[]): Element {
  const element = svgTags.has(tag)
    ? document.createElementNS("http://www.w3.org/2000/svg", tag)
    : document.createElement(tag);
  append(element, children);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value as EventListener);
    else if (typeof value === "function") effect(() => setProp(element, name, (value as () => Value)()));
    else setProp(element, name, value as Value);
  }
  return element;
}

/** Values that the user changes as well must be set as properties; everything else is an attribute. */
const liveProps = new Set(["value", "checked", "disabled", "indeterminate"]);

function setProp(element: Element, name: string, value: Value): void {
  if (liveProps.has(name) && name in element) {
    const live = element as unknown as Record<string, Value>;
    if (live[name] !== value) live[name] = value ?? "";
  } else if (name.startsWith("--")) {
    (element as HTMLElement).style.setProperty(name, String(value ?? ""));
  } else if (value === null || value === undefined || (value === false && !name.startsWith("aria-"))) {
    element.removeAttribute(name);
  } else {
    element.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : String(value));
  }
}

export function append(parent: Node, child: Child): void {
  if (Array.isArray(child)) for (const c of child) append(parent, c);
  else if (typeof child === "function") appendLive(parent, child);
  else if (child instanceof Node) parent.appendChild(child);
  else if (child !== null && child !== undefined && child !== false)
    parent.appendChild(document.createTextNode(String(child)));
}

/** Keeps the nodes that child returns between two empty text nodes. */
function appendLive(parent: Node, child: () => Child): void {
  const start = document.createTextNode("");
  const end = document.createTextNode("");
  parent.appendChild(start);
  parent.appendChild(end);
  effect(() => {
    const made = document.createDocumentFragment();
    append(made, child());
    const focus = focusBetween(start, end);
    const again = focus && [...made.querySelectorAll<HTMLElement>(focus.tag)].filter((e) => mark(e) === focus.mark);
    while (start.nextSibling !== end) start.nextSibling!.remove();
    end.parentNode!.insertBefore(made, end);
    if (again?.length === 1) again[0]!.focus({ preventScroll: true });
  });
}

/** The element with the focus, if it is between two siblings. */
function focusBetween(start: Node, end: Node): { tag: string; mark: string } | undefined {
  const focused = document.activeElement;
  if (!focused || focused === document.body || !start.parentNode?.contains(focused)) return undefined;
  for (let node = start.nextSibling; node && node !== end; node = node.nextSibling)
    if (node.contains(focused)) return { tag: focused.localName, mark: mark(focused) };
  return undefined;
}

/** Distinguishes a control from the others of a view. The text of its row is part of it: the focus must never move to another row. */
function mark(control: Element): string {
  return JSON.stringify([
    control.getAttribute("aria-label") ?? control.id,
    control.textContent,
    control.closest("tr, li")?.textContent,
  ]);
}

/** Shows yes while condition holds, otherwise no. The view is kept while the condition does not change. */
export function when(condition: () => unknown, yes: () => Child, no: () => Child = () => null): Child {
  const holds = signal(Boolean(untracked(condition)));
  effect(() => holds.set(Boolean(condition())));
  return () => (holds() ? untracked(yes) : untracked(no));
}

/** Shows a view of a value and replaces it only when the value changes. */
export function match<T>(read: () => T, view: (value: T) => Child): Child {
  const current = signal(untracked(read));
  effect(() => current.set(read()));
  return () => {
    const value = current();
    return untracked(() => view(value));
  };
}

interface Row<T> {
  node: Element;
  item: Signal<T>;
  dispose: () => void;
}

/**
 * Shows one element per item, identified by its key. A row that moves keeps its element, input and focus; a row whose
 * item changed receives the new item through its signal.
 */
export function each<T>(
  items: () => readonly T[],
  key: (item: T) => string,
  view: (item: Readable<T>) => Element,
): Child {
  const end = document.createTextNode("");
  let rows = new Map<string, Row<T>>();
  onCleanup(() => {
    for (const row of rows.values()) row.dispose();
  });
  const fragment = document.createDocumentFragment();
  fragment.appendChild(end);
  effect(() => {
    const list = items();
    untracked(() => batch(() => (rows = arrange(list, key, view, rows, end))));
  });
  return fragment;
}

function arrange<T>(
  list: readonly T[],
  key: (item: T) => string,
  view: (item: Readable<T>) => Element,
  rows: Map<string, Row<T>>,
  end: Node,
): Map<string, Row<T>> {
  const next = new Map<string, Row<T>>();
  for (const item of list) {
    const id = key(item);
    const row = rows.get(id);
    if (row) row.item.set(item);
    next.set(id, row ?? newRow(item, view));
  }
  for (const [id, row] of rows) {
    if (next.has(id)) continue;
    row.dispose();
    row.node.remove();
  }
  const focused = document.activeElement;
  let place = end;
  for (const row of [...next.values()].reverse()) {
    if (row.node.nextSibling !== place || !row.node.parentNode) place.parentNode!.insertBefore(row.node, place);
    place = row.node;
  }
  // Moving a node removes the focus from it.
  if (focused instanceof HTMLElement && focused !== document.activeElement && focused.isConnected) focused.focus();
  return next;
}

function newRow<T>(item: T, view: (item: Readable<T>) => Element): Row<T> {
  const own = signal(item);
  // A row belongs to the list: it outlives the run of the effect that created it.
  const [node, dispose] = scope(() => view(own), true);
  return { node, item: own, dispose };
}

/** Replaces the content of target by the view, until the returned function is called. */
export function mount(target: Element, view: () => Child): () => void {
  const [, dispose] = scope(() => {
    target.replaceChildren();
    append(target, view());
  });
  return () => {
    dispose();
    target.replaceChildren();
  };
}
