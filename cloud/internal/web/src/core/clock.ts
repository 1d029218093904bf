// The service's time. A phone's clock may be minutes off.

import { onCleanup, type Readable, signal } from "./signal";

let ahead = 0; // ms by which the service's clock is ahead of this one

/** Adjusts the offset by the Date header of a response, which has a resolution of one second. */
export function noteServerTime(date: string | null): void {
  const said = date ? Date.parse(date) : NaN;
  if (Number.isNaN(said)) return;
  const difference = said + 500 - Date.now();
  if (Math.abs(difference - ahead) > 1500) ahead = difference;
}

/** Milliseconds since 1970 by the service's clock. */
export const now = (): number => Date.now() + ahead;

/** The current time, updated every second until its owner is disposed of. */
export function ticking(): Readable<number> {
  const time = signal(now());
  const timer = setInterval(() => time.set(now()), 1000);
  onCleanup(() => clearInterval(timer));
  return time;
}

/** Calls task every period ms while the page is visible, and immediately when it becomes visible again. */
export function whileSeen(period: number, task: () => void): void {
  let timer = setInterval(task, period);
  const seen = () => {
    clearInterval(timer);
    if (document.visibilityState !== "visible") return;
    task();
    timer = setInterval(task, period);
  };
  document.addEventListener("visibilitychange", seen);
  onCleanup(() => {
    clearInterval(timer);
    document.removeEventListener("visibilitychange", seen);
  });
}
