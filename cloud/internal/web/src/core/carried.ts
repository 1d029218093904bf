// Data that the server has put into the document for its first screen. It is taken instead of a request while that screen is
// built, and never again.

import { noteServerTime } from "./clock";

const oldest = 300_000; // ms; an older document comes from a cache

const element = document.getElementById("carried");

let data = read();

function read(): Record<string, unknown> {
  if (!element) return {};
  const made = Number(element.dataset.at);
  // A document that the browser shows again after going back may be old too.
  const [visit] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  if (visit?.type === "back_forward" || Math.abs(Date.now() - made) > oldest) return {};
  noteServerTime(new Date(made).toUTCString());
  return JSON.parse(element.textContent) as Record<string, unknown>;
}

/** The data of an address of the interface, or undefined. */
export const carried = (address: string): unknown => data[address];

/** Forgets the data: everything is asked for from now on. */
export function dropCarried(): void {
  data = {};
}
