// Changes of the stay on the key page: extend it, or end it early. Both need scripts and the network; without them the part
// stays hidden.

import type { Schemas } from "./core/interface";

type Offer = Schemas["ExtensionOffer"];
type Hold = Schemas["ExtensionHold"];

const timeout = 15_000; // ms

interface Answer<T> {
  status: number;
  message: string | null;
  data: T;
}

/** Connects the part of the page. reload is called after the stay has ended early. */
export function connectStay(main: HTMLElement, key: string, reload: () => void): { refresh(): void } {
  const part = main.querySelector<HTMLElement>("#stay")!;
  const extend = part.querySelector<HTMLFormElement>("#extend")!;
  const ends = extend.querySelector("select")!;
  const end = part.querySelector<HTMLFormElement>("#end");
  const problem = part.querySelector<HTMLElement>("[role=alert]")!;
  const text = (name: string): string => part.dataset[name]!;
  const won = (amount: number): string => new Intl.NumberFormat(document.documentElement.lang).format(amount);
  let asked = "";

  async function call<T>(method: "GET" | "POST", path: string, body?: unknown): Promise<Answer<T>> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), timeout);
    try {
      const response = await fetch(`/api/v2/keys/${key}/${path}`, {
        method,
        headers: body ? { "Content-Type": "application/json" } : {},
        body: body ? JSON.stringify(body) : null,
        signal: abort.signal,
      });
      return { ...((await response.json()) as Answer<T>), status: response.status };
    } finally {
      clearTimeout(timer);
    }
  }

  async function run(form: HTMLFormElement, act: () => Promise<string>): Promise<void> {
    const button = form.querySelector("button")!;
    if (button.disabled) return;
    button.disabled = true;
    problem.textContent = "";
    try {
      problem.textContent = await act();
    } catch {
      problem.textContent = text("failed");
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
    const state = main.dataset.state;
    const over = state === "after";
    if (end) show(end, !over && Number(main.dataset.start) <= Date.now() / 1000);
    if (over) {
      show(extend, false);
      part.hidden = true;
      return;
    }
    try {
      const answer = await call<Offer>("GET", "extension");
      if (answer.status === 200) showOffer(answer.data);
      part.hidden = extend.hidden && (end?.hidden ?? true);
    } catch {
      // no network: the part stays as it is
    }
  }

  extend.addEventListener("submit", (event) => {
    event.preventDefault();
    void run(extend, async () => {
      const answer = await call<Hold>("POST", "extension", { endDateTime: ends.value });
      if (answer.status !== 200) {
        void refresh();
        return document.documentElement.lang === "ko" && answer.message ? answer.message : text("failed");
      }
      const { orderId } = answer.data;
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
      const answer = await call<Schemas["EndedStay"]>("POST", "end");
      if (answer.status !== 200)
        return document.documentElement.lang === "ko" && answer.message ? answer.message : text("failed");
      reload();
      return "";
    });
  });

  return { refresh: () => void refresh() };
}

/** What the payment page keeps of a purchase (customer/purchase.ts); the contact is that of the stay. */
const purchase = { branch: "", room: "", start: 0, end: 0, name: "", mobile: "", email: "", consents: [] };
