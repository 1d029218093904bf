// Changes of the stay on the key page: extend it, or end it early.

import type { Schemas } from "./core/interface";
import { call, explanation } from "./key-call";

type Offer = Schemas["ExtensionOffer"];
type Hold = Schemas["ExtensionHold"];

/** Connects the part of the page. now returns the service's time in seconds. */
export function connectStay(main: HTMLElement, key: string, now: () => number): { refresh(): Promise<void> } {
  const part = main.querySelector<HTMLElement>("#stay")!;
  const extend = part.querySelector<HTMLFormElement>("#extend")!;
  const ends = extend.querySelector("select")!;
  const end = part.querySelector<HTMLFormElement>("#end");
  const problem = part.querySelector<HTMLElement>("[role=alert]")!;
  const text = (name: string): string => part.dataset[name]!;
  const won = (amount: number): string => new Intl.NumberFormat(document.documentElement.lang).format(amount);
  let asked = "";

  async function run(form: HTMLFormElement, act: () => Promise<string>): Promise<void> {
    const button = form.querySelector("button")!;
    if (button.disabled) return;
    button.disabled = true;
    problem.textContent = "";
    try {
      problem.textContent = await act();
    } catch (error) {
      problem.textContent = explanation(error, text("failed"));
      void refresh();
    }
    button.disabled = false;
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
      option.textContent = text("option").replace("{time}", clock).replace("{price}", won(amount));
    }
    if (offer.options.some((o) => o.endDateTime === chosen)) ends.value = chosen;
    show(extend, offer.options.length > 0);
  }

  async function refresh(): Promise<void> {
    if (end) show(end, Number(main.dataset.start) <= now());
    try {
      showOffer(await call<Offer>("GET", `${key}/extension`));
    } catch {
      // the choice stays as it is
    }
    part.hidden = extend.hidden && (end?.hidden ?? true);
  }

  extend.addEventListener("submit", (event) => {
    event.preventDefault();
    void run(extend, async () => {
      const { orderId } = await call<Hold>("POST", `${key}/extension`, { endDateTime: ends.value });
      sessionStorage.setItem("purchase", JSON.stringify({ ...purchase, orderId, back: location.pathname }));
      location.assign("/book/pay");
      return "";
    });
  });

  end?.addEventListener("submit", (event) => {
    event.preventDefault();
    void run(end, async () => {
      if (asked !== "end") {
        // the second press confirms
        asked = "end";
        end.querySelector("button")!.textContent = text("endSure");
        return text("endAsk");
      }
      await call<Schemas["EndedStay"]>("POST", `${key}/end`);
      location.reload();
      return "";
    });
  });

  return { refresh };
}

/** What the payment page keeps of a purchase (customer/purchase.ts); the contact is that of the stay. */
const purchase = { branch: "", room: "", start: 0, end: 0, name: "", mobile: "", email: "", consents: [] };
