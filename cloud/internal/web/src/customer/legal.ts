// Terms and privacy policy, in any version.

import { type Child, h, when } from "../core/dom";
import { english } from "../core/language";
import { resource } from "../core/resource";
import { fetched, heading } from "./screen";
import { branchName, getBranches, getLegal, refundText } from "./service";
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
        h("div", { class: "prose" }, ...rendered(both[english() ? "en" : "ko"])),
        part === "terms" && current ? policies() : null,
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

/** The refund policies of the branches, to which the terms refer. Branches with the same policy are one line. */
function policies(): Child {
  const branches = resource(getBranches);
  return when(
    () => branches.data(),
    () => {
      const names = new Map<string, string[]>();
      for (const b of branches.data()!) names.set(refundText(b), [...(names.get(refundText(b)) ?? []), branchName(b)]);
      return h(
        "section",
        { class: "prose" },
        h("h2", null, t("refundPolicies")),
        h(
          "ul",
          null,
          Array.from(names, ([policy, of]) => h("li", null, `${of.join(", ")}: ${policy}`)),
        ),
      );
    },
  );
}

/** The elements of a text that the service has rendered from Markdown, without scripts. */
const rendered = (html: string): Node[] => [...new DOMParser().parseFromString(html, "text/html").body.childNodes];
