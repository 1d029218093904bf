// What stands around every screen: the way back, the language, the network, the company.

import { append, type Child, h, when } from "../core/dom";
import { language } from "../core/language";
import { resource } from "../core/resource";
import { onCleanup, signal } from "../core/signal";
import { backArrow, mark } from "./icons";
import { getSite, type Site } from "./service";
import { speakIn, t } from "./text";

/** The browser's own opinion, and what the last request found. */
const online = signal(navigator.onLine);
addEventListener("online", () => online.set(true));
addEventListener("offline", () => online.set(false));

let arrived = false; // the browser itself takes care of the screen a page begins with

export function frame(screen: () => Child): Child {
  document.documentElement.lang = language.peek();
  const main = h("main", { id: "main", tabindex: -1 });
  append(main, screen());
  arriveAt(main);
  return [h("a", { class: "skip", href: "#main" }, t("skip")), header(), offlineBanner(), main, footer()];
}

/** A new screen begins at its top, with its heading read first. */
function arriveAt(main: HTMLElement): void {
  if (!arrived) {
    arrived = true;
    return;
  }
  let alive = true;
  onCleanup(() => (alive = false));
  queueMicrotask(() => {
    if (!alive) return;
    scrollTo(0, 0);
    main.querySelector("h1")?.focus({ preventScroll: true });
  });
}

function header(): Child {
  const other = language.peek() === "ko" ? "en" : "ko";
  // Behind a payment lies the payment provider's page, where there is nothing to go back to.
  const nowhere = location.pathname === "/" || /^\/book\/(confirm|fail|receipt)$/.test(location.pathname);
  return h(
    "header",
    { class: "top" },
    nowhere
      ? null
      : h(
          "button",
          {
            type: "button",
            class: "icon-button",
            "aria-label": t("back"),
            onclick: () => (history.length > 1 ? history.back() : location.assign("/")),
          },
          backArrow(),
        ),
    h(
      "a",
      { class: "brand", href: "/", "aria-label": `${t("brand")} ${t("home")}` },
      mark(),
      h("span", { "aria-hidden": "true" }, t("brand")),
    ),
    h(
      "nav",
      null,
      h("a", { href: "/my" }, t("my")),
      h("button", { type: "button", lang: other, onclick: () => void speakIn(other) }, t("otherLanguage")),
    ),
  );
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
    when(
      () => site.data(),
      () => company(site.data()!),
    ),
    h(
      "p",
      { class: "policies" },
      h("a", { href: "/terms" }, t("terms")),
      h("a", { href: "/privacy" }, h("b", null, t("privacy"))),
    ),
  );
}

/** Who runs the shop, as the law asks, and how to reach them. */
function company({ company: c }: Site): Child {
  const line = (label: string, value: string | null) =>
    value ? h("li", null, label ? `${label} ${value}` : value) : null;
  return [
    c.phone
      ? h("p", { class: "help" }, t("footHelp"), " ", h("a", { href: `tel:${c.phone}` }, `${t("call")} ${c.phone}`))
      : null,
    h(
      "ul",
      { class: "company" },
      line("", c.name),
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
      line("", c.address),
      c.email ? h("li", null, h("a", { href: `mailto:${c.email}` }, c.email)) : null,
    ),
  ];
}
