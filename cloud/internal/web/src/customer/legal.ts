// Terms and privacy policy.

import { type Child, h } from "../core/dom";
import { language } from "../core/language";
import { resource } from "../core/resource";
import { fetched, heading } from "./screen";
import { getSite, type Site } from "./service";
import { t } from "./text";

type Article = [title: string, text: string];

/** The version of both texts, stored with the guest's consent. Change it with every change of a text. */
export const legalVersion = "2026-11-22";

export interface Legal {
  terms: Article[];
  privacy: Article[];
}

const load = async (): Promise<Legal> =>
  (language.peek() === "en" ? await import("../locales/legal-en") : await import("../locales/legal-ko")).legal;

export const legalPage = (part: keyof Legal) => (): Child => {
  const both = resource(async () => ({ legal: await load(), site: await getSite() }));
  return [
    heading(t(part), t("effectiveFrom", { date: legalVersion })),
    fetched(both, (data) =>
      h(
        "div",
        { class: "prose" },
        data
          .peek()
          .legal[part].map(([title, text]) =>
            h("section", null, h("h2", null, title), h("p", null, filled(text, data.peek().site))),
          ),
      ),
    ),
  ];
};

/** Fills in the company, whose name is Korean on an English page, too. */
const filled = (text: string, { company }: Site): Child =>
  text
    .replace("{phone}", company.phone ?? "")
    .replace("{email}", company.email ?? "")
    .replace(/[,·\s]+$/, "")
    .split("{company}")
    .flatMap((part, i) =>
      i === 0 ? [part] : [company.name ? h("span", { lang: "ko" }, company.name) : t("brand"), part],
    );
