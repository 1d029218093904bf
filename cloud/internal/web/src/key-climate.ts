// The temperatures of the room on the key page. The page shows the choice; staff see whether the unit follows it.

import type { Schemas } from "./core/interface";
import { call, explanation } from "./key-call";

type Offer = Schemas["KeyFacts"]["climate"];

/** Connects the part of the page and returns the function that shows an offer; null hides the part. */
export function connectClimate(main: HTMLElement, key: string): (offer: Offer) => void {
  const part = main.querySelector<HTMLElement>(".climate")!;
  const problem = part.querySelector("small")!;

  const list = part.querySelector("p")!;
  const words = JSON.parse(part.dataset.words ?? "{}") as Record<string, string>;
  let shown = ""; // the options

  /** Keeps the buttons while the options are the same: a button that is replaced loses the focus, or the press in progress. */
  function show(offer: Offer): void {
    part.hidden = !offer;
    if (!offer) return;
    const options = JSON.stringify(offer.options);
    if (shown !== options)
      list.replaceChildren(
        ...offer.options.map(({ id, label }) => {
          const choice = document.createElement("button");
          choice.value = id;
          choice.textContent = label.replace(/\S+/g, (word) => words[word] ?? word);
          choice.onclick = () => void choose(id);
          return choice;
        }),
      );
    shown = options;
    for (const choice of list.querySelectorAll("button"))
      choice.setAttribute("aria-pressed", String(choice.value === offer.current));
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
