// Changes of the stay on the key page: extend it, or end it early.

import type { Schemas } from "./core/interface";
import { call, explanation } from "./key-call";

type Offer = Schemas["ExtensionOffer"];
type Hold = Schemas["ExtensionHold"];

/** An amount with commas, the same in both languages. */
export const grouped = (amount: number): string => amount.toLocaleString("ko");

/** Connects the part of the page. now returns the service's time in seconds. */
export function connectStay(main: HTMLElement, key: string, now: () => number): { refresh(): Promise<void> } {
  const part = main.querySelector<HTMLElement>("#stay")!;
  const extend = part.querySelector<HTMLFormElement>("#extend")!;
  const ends = extend.querySelector("select")!;
  const end = part.querySelector<HTMLFormElement>("#end");
  const problem = part.querySelector<HTMLElement>("[role=alert]")!;
  let asking = false; // whether the guest is asked whether to end the stay

  async function run(form: HTMLElement, act: () => Promise<void>): Promise<void> {
    const buttons = form.querySelectorAll("button");
    if (buttons[0]!.disabled) return;
    for (const button of buttons) button.disabled = true;
    problem.textContent = "";
    try {
      await act();
    } catch (error) {
      problem.textContent = explanation(error);
      void refresh();
    }
    for (const button of buttons) button.disabled = false;
  }

  const show = (form: HTMLFormElement, shown: boolean): void => {
    form.hidden = !shown;
    form.querySelector("button")!.disabled = !shown;
  };

  /** Shows the ends to choose from. A choice that is still offered is kept. */
  function showOffer(offer: Offer): void {
    const chosen = ends.value;
    ends.textContent = "";
    for (const { endDateTime, amount } of offer.options) {
      const option = ends.appendChild(document.createElement("option"));
      option.value = endDateTime;
      const clock = `${endDateTime.slice(8, 10)}:${endDateTime.slice(10)}`;
      option.textContent = part.dataset.option!.replace("{time}", clock).replace("{price}", grouped(amount));
    }
    if (offer.options.some((o) => o.endDateTime === chosen)) ends.value = chosen;
    show(extend, offer.options.length > 0);
  }

  async function refresh(): Promise<void> {
    if (end && !asking) show(end, Number(main.dataset.start) <= now());
    try {
      showOffer(await call<Offer>("GET", `${key}/extension`));
    } catch {
      // the choice stays as it is
    }
    part.hidden = extend.hidden && !asking && (end?.hidden ?? true);
  }

  extend.addEventListener("submit", (event) => {
    event.preventDefault();
    void run(extend, async () => {
      const { orderId } = await call<Hold>("POST", `${key}/extension`, { endDateTime: ends.value });
      // customer/purchase.ts adds the rest; the contact is that of the stay
      sessionStorage.setItem("purchase", JSON.stringify({ orderId, back: location.pathname }));
      location.assign("/book/pay");
    });
  });

  // The question takes the place of the button, so the second press of a double press cannot answer it.
  const question = part.querySelector<HTMLElement>("#end-ask");
  const keep = question?.querySelector<HTMLButtonElement>("[name=keep]");
  const sure = question?.querySelector<HTMLButtonElement>("[name=end]");
  const ask = (asked: boolean): void => {
    asking = asked;
    question!.hidden = !asked;
    show(end!, !asked);
    (asked ? keep! : end!.querySelector("button")!).focus();
  };
  end?.addEventListener("submit", (event) => {
    event.preventDefault();
    problem.textContent = "";
    ask(true);
  });
  keep?.addEventListener("click", () => ask(false));
  sure?.addEventListener("click", () => {
    void run(question!, async () => {
      await call<Schemas["EndedStay"]>("POST", `${key}/end`);
      location.replace(`${location.pathname}?fresh=1`); // a stored page does not have this change
    });
  });

  return { refresh };
}
