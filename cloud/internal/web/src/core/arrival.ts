// The focus on a new screen.

import { onCleanup } from "./signal";

/**
 * Scrolls to the top of a new screen and focuses its heading, which appears late if the screen fetches data first. Later, a
 * heading that replaces another one is that of another screen at the same address: it is focused if the focus was lost with the
 * replaced screen. The browser scrolls and focuses the first screen itself.
 */
export function arriveAt(main: HTMLElement, first = false): void {
  let shown: Element | null = null;
  const look = (mayFocus: boolean): void => {
    const heading = main.querySelector("h1");
    if (!heading || heading === shown) return;
    if (mayFocus) {
      if (shown) scrollTo(0, 0);
      heading.focus({ preventScroll: true });
    }
    shown = heading;
  };
  const changes = new MutationObserver(() => look(!!(shown || !first) && document.activeElement === document.body));
  let alive = true;
  onCleanup(() => {
    alive = false;
    changes.disconnect();
  });
  queueMicrotask(() => {
    if (!alive) return;
    if (!first) scrollTo(0, 0);
    look(!first);
    changes.observe(main, { childList: true, subtree: true });
  });
}
