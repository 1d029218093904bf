// Companions on the key page: create, share and revoke their links; and the sentence that says why a door does not open.

import type { Schemas } from "./core/interface";
import { call, explanation } from "./key-call";

type Companion = Schemas["Companion"];

/** Shows why a door does not open, if the service can tell. */
export async function explainDoor(main: HTMLElement, key: string, door: string): Promise<void> {
  const line = main.querySelector<HTMLElement>("#why")!;
  const query = new URLSearchParams({ branch: main.dataset.branch!, door, lang: document.documentElement.lang });
  try {
    const why = await call<Schemas["Why"]>("GET", `${key}/why?${query}`);
    line.textContent = why.message;
    line.dataset.code = why.code;
  } catch {
    line.textContent = "";
  }
}

/** Connects the list of companions, which only the page of the owner's key has. */
export function connectGuests(main: HTMLElement, key: string): void {
  const part = main.querySelector<HTMLDetailsElement>("#guests");
  if (!part) return;
  const list = part.querySelector("ul")!;
  const form = part.querySelector("form")!;
  const label = form.querySelector("input")!;
  const problem = part.querySelector<HTMLElement>("[role=status]")!;
  const text = (name: string): string => part.dataset[name]!;

  const attempt = async (act: () => Promise<void>): Promise<void> => {
    problem.textContent = "";
    try {
      await act();
    } catch (error) {
      problem.textContent = explanation(error, text("failed"));
    }
  };

  const button = (name: string, act: () => Promise<void>): HTMLButtonElement => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text(name);
    made.addEventListener("click", () => void attempt(act));
    return made;
  };

  async function share(companion: Companion): Promise<void> {
    if (!navigator.share) {
      await navigator.clipboard.writeText(companion.url);
      problem.textContent = text("copied");
      return;
    }
    await navigator.share({ title: document.title, url: companion.url }).catch((error: Error) => {
      if (error.name !== "AbortError") throw error; // the guest closed the sheet
    });
  }

  async function refresh(): Promise<void> {
    const { companions, max } = await call<Schemas["Companions"]>("GET", `${key}/companions`);
    list.textContent = "";
    for (const companion of companions) {
      const item = list.appendChild(document.createElement("li"));
      item.appendChild(document.createElement("b")).textContent = companion.label;
      item.append(
        button("share", () => share(companion)),
        button("revoke", async () => {
          await call("DELETE", `${key}/companions/${companion.id}`);
          await refresh();
        }),
      );
    }
    form.hidden = companions.length >= max;
  }

  part.hidden = false;
  part.addEventListener("toggle", () => {
    if (part.open) void attempt(refresh);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    void attempt(async () => {
      await call("POST", `${key}/companions`, { label: label.value.trim() });
      form.reset();
      await refresh();
    });
  });
}
