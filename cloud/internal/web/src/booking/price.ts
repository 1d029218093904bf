// The price of a length: as many hours as fit, then half hours, then ten minutes. The service checks the sum.

import type { Schemas } from "../core/interface";

export type Pricing = Schemas["Pricing"];

export interface PriceLine {
  minutes: number;
  won: number;
}

/** The lines of a price, or null if no combination of tiers makes up the length. */
export function priceLines(pricing: Pricing, length: number): PriceLine[] | null {
  const lines: PriceLine[] = [];
  let rest = length;
  for (const [tier, won] of [
    [60, pricing.min60],
    [30, pricing.min30],
    [10, pricing.min10],
  ] as const) {
    const count = won === null ? 0 : Math.floor(rest / tier);
    if (count === 0) continue;
    lines.push({ minutes: count * tier, won: count * won! });
    rest -= count * tier;
  }
  return rest === 0 && length > 0 ? lines : null;
}

export function price(pricing: Pricing, length: number): number | null {
  const lines = priceLines(pricing, length);
  return lines?.reduce((sum, line) => sum + line.won, 0) ?? null;
}

/** The smallest tier, for "from" prices. */
export function smallest(pricing: Pricing): PriceLine | null {
  if (pricing.min10 !== null) return { minutes: 10, won: pricing.min10 };
  if (pricing.min30 !== null) return { minutes: 30, won: pricing.min30 };
  if (pricing.min60 !== null) return { minutes: 60, won: pricing.min60 };
  return null;
}
