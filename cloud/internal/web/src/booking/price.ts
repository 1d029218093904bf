// The price of a stay: from its start on hours, half hours and ten minutes, the longest tier first that fits and is on offer;
// each costs its price in the list that applies when it begins. The service checks the sum.

import type { Schemas } from "../core/interface";
import { type Minute, parseMinute } from "./time";

export type Pricing = Schemas["Pricing"];

/** What a price depends on: a room of the look-up. */
export type Priced = Pick<Schemas["Room"], "pricing" | "pricingChanges">;

export interface PriceLine {
  minutes: number;
  won: number;
}

const tiers = (p: Pricing) =>
  [
    [60, p.min60],
    [30, p.min30],
    [10, p.min10],
  ] as const;

/** The price list of a room at a time. */
function priceAt(room: Priced, at: Minute): Pricing {
  const begun = room.pricingChanges?.filter((change) => parseMinute(change.fromDateTime) <= at) ?? [];
  return begun[begun.length - 1] ?? room.pricing;
}

/** The lines of a price, or null if no combination of tiers makes up the length. */
export function priceLines(room: Priced, start: Minute, length: number): PriceLine[] | null {
  const lines: (PriceLine & { tier: number; each: number })[] = [];
  for (let at = start; at < start + length; ) {
    const fits = tiers(priceAt(room, at)).find(([tier, won]) => won !== null && tier <= start + length - at);
    if (!fits) return null;
    const [tier, each] = [fits[0], fits[1]!];
    const last = lines[lines.length - 1];
    if (last && last.tier === tier && last.each === each) {
      last.minutes += tier;
      last.won += each;
    } else lines.push({ minutes: tier, won: each, tier, each });
    at += tier;
  }
  return lines.length > 0 ? lines.map(({ minutes, won }) => ({ minutes, won })) : null;
}

export function price(room: Priced, start: Minute, length: number): number | null {
  const lines = priceLines(room, start, length);
  return lines?.reduce((sum, line) => sum + line.won, 0) ?? null;
}

/** The smallest tier at the lowest price, for "from" prices. */
export function smallest(room: Priced): PriceLine | null {
  let lowest: PriceLine | null = null;
  for (const list of [...(room.pricingChanges ?? []), ...(room.pricingChanges?.length ? [] : [room.pricing])]) {
    const found = tiers(list)
      .filter(([, won]) => won !== null)
      .pop();
    if (!found) continue;
    const line = { minutes: found[0], won: found[1]! };
    if (!lowest || line.minutes < lowest.minutes || (line.minutes === lowest.minutes && line.won < lowest.won))
      lowest = line;
  }
  return lowest;
}
