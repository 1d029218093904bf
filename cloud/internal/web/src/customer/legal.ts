// Terms and privacy policy, in any version.

import { type Child, h } from "../core/dom";
import { language } from "../core/language";
import { resource } from "../core/resource";
import { fetched, heading } from "./screen";
import { getLegal } from "./service";
import { t } from "./text";

export const legalPage = (part: "terms" | "privacy") => (): Child => {
  const version = new URLSearchParams(location.search).get("version") ?? "";
  const text = resource(() => getLegal(version));
  return [
    heading(t(part), () => (text.data() ? t("effectiveFrom", { date: text.data()!.effectiveFrom }) : "")),
    fetched(text, (data) => {
      const { [part]: both, current, versions } = data.peek();
      return [
        current ? null : h("p", null, t("oldVersion"), " ", h("a", { href: `/${part}` }, t("currentVersion"))),
        h("div", { class: "prose" }, ...rendered(both[language.peek() === "en" ? "en" : "ko"])),
        versions.length > 1
          ? h(
              "ul",
              { class: "versions", "aria-label": t("allVersions") },
              ...versions.map((v) => h("li", null, h("a", { href: `/${part}?version=${encodeURIComponent(v)}` }, v))),
            )
          : null,
      ];
    }),
  ];
};

/** The elements of a text that the service has rendered from Markdown, without scripts. */
const rendered = (html: string): Node[] => [...new DOMParser().parseFromString(html, "text/html").body.childNodes];
