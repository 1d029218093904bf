// The language of the page. Each part of the site has one typed table of texts per language, so a missing English text
// fails the type check.

import { signal } from "./signal";

export type Language = "ko" | "en";

const stored = "lang"; // a cookie, so that pages rendered by the server use the same language

function preferred(): Language {
  const chosen = new URLSearchParams(location.search).get("lang") ?? document.cookie.match(/(?:^|; )lang=(ko|en)/)?.[1];
  if (chosen === "ko" || chosen === "en") return chosen;
  return navigator.languages.some((l) => l.startsWith("ko")) || !navigator.language ? "ko" : "en";
}

export const language = signal<Language>(preferred());

export const english = (): boolean => language.peek() === "en";

export function speak(next: Language): void {
  const address = new URL(location.href);
  if (address.searchParams.has("lang")) {
    address.searchParams.delete("lang"); // the cookie holds it from now on
    history.replaceState(history.state, "", address);
  }
  document.cookie = `${stored}=${next}; path=/; max-age=31536000; samesite=lax`;
  language.set(next);
}

export type Params = Record<string, string | number>;

/** Creates t() for one part of the site. The table of the current language must be loaded before t is called. */
export function translator<K extends string>(table: () => Record<K, string>): (key: K, params?: Params) => string {
  return (key, params) => {
    const text = table()[key];
    return params ? text.replace(/\{(\w+)\}/g, (whole, name: string) => String(params[name] ?? whole)) : text;
  };
}
