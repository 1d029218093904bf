// Light or dark: as the system says, or as the user chose in this browser.

import { computed, effect, signal } from "../core/signal";
import { localStore } from "../core/storage";

const key = "console-theme";
const stored = localStore.get(key);

/** The user's choice. */
export const theme = signal(stored === "light" || stored === "dark" ? stored : "system");

const system = matchMedia("(prefers-color-scheme: dark)");
const night = signal(system.matches);
system.addEventListener("change", () => night.set(system.matches));

const dark = computed(() => theme() === "dark" || (theme() === "system" && night()));

effect(() => localStore.set(key, theme()));
effect(() => {
  const root = document.documentElement;
  root.dataset.theme = dark() ? "dark" : "light";
  const ground = getComputedStyle(root).getPropertyValue("--ground").trim();
  document.querySelector<HTMLMetaElement>("meta[name=theme-color]")?.setAttribute("content", ground);
});
