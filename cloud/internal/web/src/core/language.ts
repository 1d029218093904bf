// Which language the page speaks. Texts of a part of the site are one typed table per language, so that a missing
// English text does not compile.

import { signal } from "./signal";

export type Language = "ko" | "en";

const stored = "lang"; // cookie: pages made by the server speak the same language

function preferred(): Language {
  const chosen = new URLSearchParams(location.search).get("lang") ?? document.cookie.match(/(?:^|; )lang=(ko|en)/)?.[1];
  if (chosen === "ko" || chosen === "en") return chosen;
  return navigator.languages.some((l) => l.startsWith("ko")) || !navigator.language ? "ko" : "en";
}

export const language = signal<Language>(preferred());

export function speak(next: Language): void {
  document.cookie = `${stored}=${next}; path=/; max-age=31536000; samesite=lax`;
  language.set(next);
}

export type Params = Record<string, string | number>;

/** Makes t() for one part of the site. The table of the language in use has to be there before t is called. */
export function translator<K extends string>(table: () => Record<K, string>): (key: K, params?: Params) => string {
  return (key, params) => {
    const text = table()[key];
    return params ? text.replace(/\{(\w+)\}/g, (whole, name: string) => String(params[name] ?? whole)) : text;
  };
}
