// Companions on the key page: create, share and revoke their links; and the sentence that says why a door does not open.

import type { Schemas } from "./core/interface";
import { call, explanation, tools } from "./key-call";

type Companion = Schemas["Companion"];

/** Shows why a door does not open, if the service can tell. An answer that arrives after another press is not shown. */
export async function explainDoor(main: HTMLElement, key: string, door: string): Promise<void> {
  const line = main.querySelector<HTMLElement>("#why")!;
  const query = new URLSearchParams({ branch: main.dataset.branch!, door, lang: tools.lang });
  const outcome = () => main.querySelector("[data-result]:not([hidden])")?.textContent;
  const explained = outcome();
  const why = await call<Schemas["Why"]>("GET", `${key}/why?${query}`).catch(() => null);
  if (outcome() === explained) line.textContent = why?.message ?? "";
}

/** Connects the list of companions, which only the page of the owner's key has. */
export function connectGuests(main: HTMLElement, key: string): void {
  const part = main.querySelector<HTMLDetailsElement>("#guests");
  if (!part) return;
  const list = part.querySelector("ul")!;
  const form = part.querySelector("form")!;
  const field = form.querySelector("input")!;
  const problem = part.querySelector<HTMLElement>("[role=status]")!;
  const text = (name: string): string => part.dataset[name]!;

  const attempt = async (act: () => Promise<void>): Promise<void> => {
    problem.textContent = "";
    try {
      await act();
    } catch (error) {
      problem.textContent = explanation(error);
    }
  };

  /**
   * Shows a companion, or the question whether to revoke its key. Then the last button keeps the key, so the second press of a
   * double press does not revoke it.
   */
  function show(item: HTMLElement, companion: Companion, asked: boolean): void {
    const { id, label } = companion;
    item.textContent = "";
    item.appendChild(document.createElement("b")).textContent = asked ? `${label}: ${text("sure")}` : label;
    const button = (said: string, act: () => unknown): void => {
      const made = item.appendChild(document.createElement("button"));
      made.type = "button";
      made.textContent = said;
      made.setAttribute("aria-label", `${said} ${label}`);
      made.addEventListener("click", () => void attempt(async () => void (await act())));
    };
    const ask = (): void => {
      show(item, companion, !asked);
      (item.lastChild as HTMLElement).focus();
    };
    if (asked) {
      button(text("revoke"), async () => {
        await call("DELETE", `${key}/companions/${id}`);
        await refresh();
        part!.querySelector("summary")!.focus();
      });
      button(text("keep"), ask);
    } else {
      button(text("share"), () => share(companion));
      button(text("revoke"), ask);
    }
  }

  /** Shares or copies the link. A browser in an app may refuse both: then the link is shown, to copy by hand. */
  async function share({ url }: Companion): Promise<void> {
    try {
      if (navigator.share) await navigator.share({ title: document.title, url });
      else {
        await navigator.clipboard.writeText(url);
        problem.textContent = text("copied");
      }
    } catch (error) {
      if ((error as Error).name !== "AbortError") prompt(text("share"), url); // otherwise the guest closed the sheet
    }
  }

  async function refresh(): Promise<void> {
    const { companions, max } = await call<Schemas["Companions"]>("GET", `${key}/companions`);
    list.textContent = "";
    for (const companion of companions) show(list.appendChild(document.createElement("li")), companion, false);
    form.hidden = companions.length >= max;
  }

  part.hidden = false;
  part.addEventListener("toggle", () => {
    if (part.open) void attempt(refresh);
  });
  let adding = false; // the second press of a double press adds nothing; a disabled button would lose the focus
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (adding) return;
    adding = true;
    void attempt(async () => {
      await call("POST", `${key}/companions`, { label: field.value.trim() });
      form.reset();
      await refresh();
    }).then(() => {
      adding = false;
    });
  });
}
