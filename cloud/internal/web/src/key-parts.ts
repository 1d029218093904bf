// The parts of the key page that no door needs. They need scripts and the network; without them they stay hidden. They appear
// together below everything else, so that no button moves under a thumb.

import type { Schemas } from "./core/interface";
import { connectAnnouncements } from "./key-announce";
import { connectArrival } from "./key-arrival";
import { lend, type Tools } from "./key-call";
import { connectClimate } from "./key-climate";
import { connectCodes } from "./key-codes";
import { connectGuests, explainDoor } from "./key-guests";
import { connectStay, grouped } from "./key-stay";

export interface Parts {
  /** Shows the parts that fit the reservation. */
  refresh(facts: Schemas["KeyFacts"]): void;
  /** Shows why a door ("front" or "room") does not open, if the service can tell. */
  explain(door: string): Promise<void>;
}

const patience = 2000; // ms until the parts are shown although one of them is not ready

/** Connects all parts. now returns the service's time in seconds. */
export function connectParts(main: HTMLElement, key: string, now: () => number, tools: Tools): Parts {
  lend(tools);
  const showClimate = connectClimate(main, key);
  const showCodes = connectCodes(main, key, now);
  const stay = connectStay(main, key, now);
  connectGuests(main, key);
  connectAnnouncements(main, key);
  const arrival = connectArrival(main).catch(() => {});
  const parts = main.querySelector<HTMLElement>("#parts")!;
  const refund = main.querySelector<HTMLElement>("#refund")!;

  /** Shows the refund for a door that did not open, once. An extension loads the page again. */
  function showRefund(got: Schemas["KeyFacts"]["compensation"]): void {
    if (got?.amount && !refund.textContent)
      refund.textContent = refund.dataset.text!.replace("%s", grouped(got.amount));
  }

  return {
    refresh(facts) {
      showClimate(facts.climate);
      showRefund(facts.compensation);
      showCodes(facts);
      const ready = Promise.all([stay.refresh(), arrival]);
      const waited = new Promise((done) => setTimeout(done, patience));
      void Promise.race([ready, waited]).then(() => {
        parts.hidden = false;
      });
    },
    explain: (door) => explainDoor(main, key, door),
  };
}
