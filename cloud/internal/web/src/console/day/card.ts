// A card beside the block under the pointer or with the focus: what short blocks have no room for.

import { type Child, h } from "../../core/dom";
import { computed, onCleanup, type Readable, signal } from "../../core/signal";
import { chip } from "../parts";
import { t, timesText, won } from "../text";
import { type Block, type Day, kindText } from "./model";

const selector = ".block, .gone";
const linger = 150; // ms in which the pointer may move from the block to the card
const gap = 6; // px

export function hoverCard(box: HTMLElement, day: Readable<Day>): Child {
  const id = signal("");
  const block = computed(() => [...day().blocks, ...day().canceled].find((b) => b.id === id()));
  const card = h("div", { class: "blockcard", id: "blockcard", role: "tooltip", hidden: () => !block() }, () => {
    const b = block();
    return b ? content(b) : null;
  });
  let target: HTMLElement | undefined;
  let timer = 0;
  const hide = () => {
    clearTimeout(timer);
    target?.removeAttribute("aria-describedby");
    target = undefined;
    id.set("");
  };
  const show = (element: HTMLElement) => {
    clearTimeout(timer);
    if (target === element || box.classList.contains("dragging")) return;
    hide();
    target = element;
    id.set(element.dataset.id ?? "");
    element.setAttribute("aria-describedby", card.id);
    place(card, element, box);
  };
  const at = (e: Event) => (e.target as Element).closest?.<HTMLElement>(selector);
  const leave = () => {
    clearTimeout(timer);
    timer = setTimeout(hide, linger);
  };
  box.addEventListener("pointerover", (e) => {
    const element = at(e);
    if (e.pointerType !== "touch" && element) show(element);
    else leave();
  });
  box.addEventListener("pointerleave", leave);
  box.addEventListener("pointerdown", hide);
  box.addEventListener("scroll", hide, { passive: true });
  box.addEventListener("focusin", (e) => {
    const element = at(e);
    if (element?.matches(":focus-visible")) requestAnimationFrame(() => show(element)); // after the scroll to it
  });
  box.addEventListener("focusout", hide);
  card.addEventListener("pointerenter", () => clearTimeout(timer));
  card.addEventListener("pointerleave", leave);
  const key = (e: KeyboardEvent) => e.key === "Escape" && hide();
  document.addEventListener("keydown", key);
  onCleanup(() => {
    hide();
    document.removeEventListener("keydown", key);
  });
  return card;
}

const content = (b: Block): Child => [
  h("b", null, b.name || kindText(b.kind)),
  chip(kindText(b.kind), b.kind),
  h("p", null, `${t("roomNo", { n: b.room })} · ${timesText(b.start, b.end)}`),
  b.mobile || b.amount ? h("p", null, [b.mobile, b.amount ? won(b.amount) : ""].filter(Boolean).join(" · ")) : null,
];

/** Puts the card below the visible part of a block, or above it if there is no room. */
function place(card: HTMLElement, element: HTMLElement, box: HTMLElement): void {
  const [of, within, own] = [element, box, card].map((e) => e.getBoundingClientRect()) as [DOMRect, DOMRect, DOMRect];
  const left = Math.min(Math.max(of.left, within.left), innerWidth - own.width - gap);
  const below = of.bottom + gap;
  const top = below + own.height < innerHeight ? below : of.top - gap - own.height;
  card.style.left = `${left}px`;
  card.style.top = `${top}px`;
}
