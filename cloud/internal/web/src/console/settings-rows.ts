// Lists whose rows can be edited, and the inputs of a row.

import { type Child, each, h } from "../core/dom";
import { type Readable, type Signal, signal } from "../core/signal";
import { button } from "./parts";
import { t } from "./text";

/** A list of rows that can be edited, each with a key of its own so that a row keeps its inputs. */
export interface Row<T> {
  key: string;
  value: Signal<T>;
}

let serial = 0;
export const rowOf = <T>(value: T): Row<T> => ({ key: String(++serial), value: signal(value) });

export function rows<T extends object>(
  list: Signal<Row<T>[]>,
  empty: T,
  add: string,
  view: (row: Signal<T>) => Child,
): HTMLElement {
  return h(
    "div",
    { class: "rows" },
    each(
      list,
      (r) => r.key,
      (row: Readable<Row<T>>) =>
        h(
          "div",
          { class: "editrow" },
          view(row.peek().value),
          button("✕", () => list.set(list.peek().filter((r) => r !== row.peek())), {
            kind: "plain",
            label: t("remove"),
          }),
        ),
    ),
    button(add, () => list.set([...list.peek(), rowOf({ ...empty })])),
  );
}

/** Reads every keystroke, before the field loses its focus. Pickers only report a change event. */
export function onEdit(set: (text: string) => void) {
  const edit = (e: Event) => set((e.target as HTMLInputElement).value);
  return { oninput: edit, onchange: edit };
}

const bound = <T extends object>(row: Signal<T>, name: keyof T) => ({
  value: row.peek()[name] as string,
  ...onEdit((text) => row.set({ ...row.peek(), [name]: text })),
});

export const dateInput = <T extends object>(row: Signal<T>, name: keyof T, label: string) =>
  h("input", { type: "date", "aria-label": label, ...bound(row, name) });

export const textInput = <T extends object>(row: Signal<T>, name: keyof T, label: string) =>
  h("input", { type: "text", maxlength: 100, "aria-label": label, placeholder: label, ...bound(row, name) });
