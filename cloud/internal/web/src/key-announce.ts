// Announces a press while the finger is still down. The service asks the door's agent for a claim meanwhile, so that the press
// needs one round trip to the branch instead of two. The press works without it.

import { call } from "./key-call";

/** Announces each press of a button that opens a door. */
export function connectAnnouncements(main: HTMLElement, key: string): void {
  main.querySelector("form")!.addEventListener("pointerdown", (event) => {
    const button = (event.target as Element).closest("button");
    if (!button || button.disabled) return;
    const press = { branch: main.dataset.branch!, door: button.value };
    call("POST", `${key}/announcements`, press).catch(() => {});
  });
}
