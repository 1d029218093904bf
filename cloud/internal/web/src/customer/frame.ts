// The frame of all screens: back button, language, network state, company.

import { arriveAt } from "../core/arrival";
import { append, type Child, h, when } from "../core/dom";
import { clicks } from "../core/form";
import { language } from "../core/language";
import { resource } from "../core/resource";
import { signal } from "../core/signal";
import { backArrow, mark } from "./icons";
import { buying } from "./purchase";
import { seller } from "./seller";
import { getSite, type Site } from "./service";
import { speakIn, t } from "./text";

/** Whether the browser has a network. */
const online = signal(navigator.onLine);
addEventListener("online", () => online.set(true));
addEventListener("offline", () => online.set(false));

let arrived = false; // the browser scrolls and focuses the first screen itself

export function frame(screen: () => Child): Child {
  document.documentElement.lang = language.peek();
  seller.set(null);
  const main = h("main", { id: "main", tabindex: -1 });
  append(main, screen());
  arriveAt(main, !arrived);
  arrived = true;
  return [h("a", { class: "skip", href: "#main" }, t("skip")), header(), offlineBanner(), main, footer()];
}

function header(): Child {
  const other = language.peek() === "ko" ? "en" : "ko";
  // After a payment, the previous page is the provider's, so there is no back button.
  const nowhere = location.pathname === "/" || /^\/book\/(confirm|fail|receipt)$/.test(location.pathname);
  return h(
    "header",
    { class: "top" },
    nowhere
      ? null
      : h(
          "a",
          {
            class: "icon-button",
            "aria-label": t("back"),
            href: above(),
            onclick: clicks(() => (history.length > 1 ? history.back() : location.assign("/"))),
          },
          backArrow(),
        ),
    h(
      "a",
      { class: "brand", href: "/", "aria-label": `${t("brand")} ${t("home")}`, onclick: askBeforeLeaving },
      mark(),
      h("span", { "aria-hidden": "true" }, t("brand")),
    ),
    h(
      "nav",
      null,
      h("a", { href: "/my" }, t("my")),
      h(
        "a",
        {
          lang: other,
          href: inLanguage(other),
          onclick: clicks(() => speakIn(other, () => online.peek() && location.replace(inLanguage(other)))),
        },
        t("otherLanguage"),
      ),
    ),
  );
}

/** The screen above a choice, to which the back link leads without scripts. */
const above = (): string => location.pathname.match(/^\/b\/[^/]+(\/[^/]+(?=\/))?(?=\/)/)?.[0] ?? "/";

function inLanguage(lang: string): string {
  const query = new URLSearchParams(location.search);
  query.set("lang", lang);
  query.sort(); // as the server writes it
  return `?${query}`;
}

/** The way home releases the held room, so a purchase in progress asks first. */
function askBeforeLeaving(event: Event): void {
  if (/^\/book\/(contact|pay)$/.test(location.pathname) && buying() && !confirm(t("leaveAsk"))) event.preventDefault();
}

function offlineBanner(): Child {
  return h(
    "div",
    { class: "offline", role: "status" },
    when(
      () => !online(),
      () => h("p", null, t("offlineBanner")),
    ),
  );
}

function footer(): Child {
  const site = resource(getSite);
  return h(
    "footer",
    null,
    () => {
      const found = site.data();
      return found ? company(found, seller()) : null;
    },
    h(
      "p",
      { class: "policies" },
      h("a", { href: "/terms" }, t("terms")),
      h("a", { href: "/privacy" }, h("b", null, t("privacy"))),
      h("a", { href: "/franchise" }, t("franchise")),
    ),
  );
}

/** The seller, or the operator of the shop, as the law requires, and how to contact them. */
function company({ company: operator }: Site, sells: Site["company"] | null): Child {
  const c = sells ? { ...sells, hostingProvider: sells.hostingProvider ?? operator.hostingProvider } : operator;
  const line = (label: string, value: string | null) =>
    value ? h("li", null, `${label} `, h("span", { lang: "ko" }, value)) : null;
  return [
    c.phone
      ? h("p", { class: "help" }, t("footHelp"), " ", h("a", { href: `tel:${c.phone}` }, `${t("call")} ${c.phone}`))
      : null,
    h(
      "ul",
      { class: "company" },
      c.name ? h("li", { lang: "ko" }, c.name) : null,
      line(t("footRepresentative"), c.representative),
      line(t("footBusiness"), c.businessNumber),
      c.businessNumber
        ? h(
            "li",
            null,
            h(
              "a",
              {
                href: `https://www.ftc.go.kr/bizCommPop.do?wrkr_no=${c.businessNumber.replace(/\D/g, "")}`,
                rel: "noreferrer",
              },
              t("footCheck"),
            ),
          )
        : null,
      line(t("footMailOrder"), c.mailOrderNumber),
      line(t("footHosting"), c.hostingProvider),
      c.address ? h("li", { lang: "ko" }, c.address) : null,
      c.email ? h("li", null, h("a", { href: `mailto:${c.email}` }, c.email)) : null,
    ),
  ];
}
