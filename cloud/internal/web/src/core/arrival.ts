// The focus on a new screen.

import { onCleanup } from "./signal";

/**
 * Scrolls to the top of a new screen and focuses its heading. A screen whose data are fetched first has none yet: its heading is
 * focused when it appears, unless the user has focused something else meanwhile.
 */
export function arriveAt(main: HTMLElement): void {
  const focused = (): boolean => {
    const heading = main.querySelector("h1");
    heading?.focus({ preventScroll: true });
    return heading !== null;
  };
  const late = new MutationObserver(() => {
    if (document.activeElement !== document.body || focused()) late.disconnect();
  });
  let alive = true;
  onCleanup(() => {
    alive = false;
    late.disconnect();
  });
  queueMicrotask(() => {
    if (!alive) return;
    scrollTo(0, 0);
    if (!focused()) late.observe(main, { childList: true, subtree: true });
  });
}
