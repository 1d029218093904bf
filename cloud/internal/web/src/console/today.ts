// The present day of a branch, for screens that stay open overnight.

import { dateOf, inZone } from "../booking/time";
import { ticking } from "../core/clock";
import { again } from "../core/router";
import { effect } from "../core/signal";
import type { Branch } from "./session";

/**
 * The date at a branch. After midnight, the screen is shown again with the next one. That closes dialogs, so it waits for those that
 * are open.
 */
export function todayOf({ timeZone }: Branch): string {
  const today = dateOf(inZone(timeZone));
  const second = ticking();
  effect(() => {
    if (dateOf(inZone(timeZone, second())) !== today && !document.querySelector("dialog[open]")) queueMicrotask(again);
  });
  return today;
}
