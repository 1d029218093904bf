// The temperatures of the room on the key page. The page shows the choice; staff see whether the unit follows it.

import type { Schemas } from "./core/interface";
import { call, explanation } from "./key-call";

type Offer = Schemas["KeyFacts"]["climate"];

/** Connects the part of the page and returns the function that shows an offer; null hides the part. */
export function connectClimate(main: HTMLElement, key: string): (offer: Offer) => void {
  const part = main.querySelector<HTMLElement>(".climate")!;
  const problem = part.querySelector("small")!;

  function show(offer: Offer): void {
    part.hidden = !offer;
    if (!offer) return;
    part.querySelector("p")!.replaceChildren(
      ...offer.options.map((option) => {
        const choice = document.createElement("button");
        choice.type = "button";
        choice.textContent = option.label;
        choice.setAttribute("aria-pressed", String(option.id === offer.current));
        choice.onclick = () => void choose(option.id);
        return choice;
      }),
    );
  }

  async function choose(option: string): Promise<void> {
    problem.textContent = "";
    try {
      show(await call<Offer>("POST", `${key}/climate`, { option }));
    } catch (error) {
      problem.textContent = explanation(error);
    }
  }

  return show;
}
