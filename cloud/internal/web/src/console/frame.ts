// The frame of every screen: the current place, the navigation, and whether the data is live.

import { api } from "../core/api";
import { arriveAt } from "../core/arrival";
import { brandLogo } from "../core/brand";
import { now, whileSeen } from "../core/clock";
import { append, type Child, h, match, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { type Language, language } from "../core/language";
import { resource } from "../core/resource";
import { again, go } from "../core/router";
import { signal } from "../core/signal";
import { alertText, besides, byUrgency, newestAlerts, openAlerts } from "./alerts";
import { type Icon, icon } from "./icons";
import { connection, gather, overhear, watchAll } from "./live";
import { button, closeDialogs, dialog, select, toast } from "./parts";
import { openSearch } from "./search";
import {
  branchByCode,
  branches,
  branchName,
  firstScreen,
  hasScreen,
  homeBranch,
  isHQ,
  logout,
  maySearch,
  me,
  rememberBranch,
} from "./session";
import { openShortcuts, shortcut } from "./shortcuts";
import { ago, localText, speakIn, type TextKey, t } from "./text";

interface Place {
  screen: string;
  icon: Icon;
  text: TextKey;
}

const places: Place[] = [
  { screen: "day", icon: "day", text: "navDay" },
  { screen: "doors", icon: "doors", text: "navDoors" },
  { screen: "rooms", icon: "rooms", text: "navRooms" },
  { screen: "climate", icon: "climate", text: "navClimate" },
  { screen: "devices", icon: "devices", text: "navDevices" },
  { screen: "messages", icon: "messages", text: "navMessages" },
  { screen: "money", icon: "money", text: "navMoney" },
  { screen: "audit", icon: "audit", text: "navAudit" },
  { screen: "settings", icon: "settings", text: "navSettings" },
];

/** The number of places in the navigation bar of a phone. The last button opens the others. */
const inBar = 4;

/** The places that the role has. */
const mine = (): Place[] => places.filter((p) => hasScreen(p.screen));

let arrived = false; // the browser scrolls and focuses the first screen itself

/** Counts a screen without a frame as the first one, such as the login. */
export function leaveFrame(): void {
  arrived = true;
}

/** Wraps a screen with or without a branch. */
export function frame(branch: string | undefined, current: string, screen: () => Child): Child {
  if (branch) rememberBranch(branch);
  closeDialogs();
  const main = h("main", { id: "main", tabindex: -1 });
  append(main, screen());
  arriveAt(main, !arrived);
  arrived = true;
  const home = branch ?? homeBranch() ?? "";
  return [
    h(
      "a",
      {
        class: "skip",
        href: "#main",
        onclick: (e: Event) => {
          e.preventDefault();
          main.focus();
        },
      },
      t("skip"),
    ),
    h(
      "div",
      { class: "console" },
      side(home, branch, current),
      h("div", { class: "stage" }, top(branch, current), liveBar(branch), main),
      bar(home, current),
    ),
  ];
}

const address = (branch: string, screen: string) => `/console/${branch}/${screen}`;

/** The search over all of one's branches. */
const searchButton = (): HTMLButtonElement =>
  h(
    "button",
    {
      type: "button",
      class: "button soft searchall",
      title: t("searchAll"),
      "aria-label": t("searchAll"),
      onclick: openSearch,
    },
    icon("search"),
    h("span", null, t("search")),
    h("kbd", { "aria-hidden": "true" }, "/"),
  );

function entry(branch: string, place: Place, current: string): HTMLElement {
  return h(
    "a",
    {
      href: address(branch, place.screen),
      title: t(place.text), // for bars too narrow for names
      "aria-current": place.screen === current ? "page" : null,
    },
    icon(place.icon),
    h("span", null, t(place.text)),
  );
}

/** A link to what concerns all of one's branches. */
const everywhere = (screen: string, text: TextKey, mark: Icon, current: string, extra: Child = null): Child =>
  hasScreen(screen)
    ? h(
        "a",
        { href: `/console/${screen}`, title: t(text), "aria-current": current === screen ? "page" : null },
        icon(mark),
        h("span", null, t(text)),
        extra,
      )
    : null;

/** The number of open alerts of all of one's branches. */
function bell(current: string): Child {
  if (!hasScreen("alerts")) return null;
  const open = openAlerts();
  return everywhere("alerts", "navAlerts", "bell", current, () =>
    open.list().length > 0 ? h("b", { class: "count" }, open.besides(0)) : null,
  );
}

const general = (current: string): Child => [
  isHQ() ? everywhere("proof", "navProof", "proof", current) : null,
  isHQ()
    ? h(
        "a",
        { href: "/console/company", "aria-current": current === "company" ? "page" : null },
        icon("company"),
        h("span", null, t("navCompany")),
      )
    : null,
  isHQ()
    ? h(
        "a",
        { href: "/console/rollout", "aria-current": current === "rollout" ? "page" : null },
        icon("rollout"),
        h("span", null, t("navRollout")),
      )
    : null,
  isHQ()
    ? h(
        "a",
        { href: "/console/integrations", "aria-current": current === "integrations" ? "page" : null },
        icon("integrations"),
        h("span", null, t("navIntegrations")),
      )
    : null,
  isHQ()
    ? h(
        "a",
        { href: "/console/people", "aria-current": current === "people" ? "page" : null },
        icon("people"),
        h("span", null, t("navPeople")),
      )
    : null,
  h(
    "a",
    { href: "/console/account", "aria-current": current === "account" ? "page" : null },
    icon("account"),
    h("span", null, t("navAccount")),
  ),
];

const logo = () => h("img", { src: brandLogo ?? "/icon.svg", alt: "", height: 28 });

function side(home: string, branch: string | undefined, current: string): Child {
  return h(
    "div",
    { class: "side" },
    h("a", { class: "brand", href: "/console" }, logo(), h("b", null, t("brand")), h("span", null, t("console"))),
    switcher(branch, current),
    maySearch() ? shortcut("/", searchButton()) : null,
    h(
      "nav",
      { "aria-label": t("screens") },
      everywhere("cleaning", "navCleaning", "rooms", current),
      everywhere("overview", "navOverview", "overview", current),
      bell(current),
      everywhere("reports", "navReports", "reports", current),
      everywhere("desk", "navDesk", "money", current),
      everywhere("settlement", "navSettlement", "settlement", current),
      h("hr"),
      mine().map((p, i) => shortcut(String(i + 1), entry(home, p, current))),
      h("hr"),
      general(current),
    ),
    h(
      "div",
      { class: "foot" },
      h("p", null, me()?.adminLoginId ?? "", h("small", null, t(`role_${me()?.role ?? "viewer"}`))),
      languageButton(),
      shortcut("?", button(t("shortcuts"), openShortcuts, { kind: "plain" })),
      button(t("logout"), logout, { kind: "plain" }),
    ),
  );
}

/** The switcher stays on the screen and changes the branch. It keeps the focus: each arrow key chooses the next branch. */
function switcher(branch: string | undefined, current: string): Child {
  const chosen = signal(branch ?? "");
  const element = select(
    chosen,
    () => [
      ...(branch ? [] : [{ value: "", text: t("chooseBranch") }]),
      ...branches().map((b) => ({ value: b.branch, text: branchName(b) })),
    ],
    {
      class: "switcher",
      "aria-label": t("branch"),
    },
  );
  element.addEventListener("change", () => {
    go(address(element.value, branch ? current : firstScreen()));
    const shown = () =>
      [...document.querySelectorAll<HTMLElement>(".switcher")].find((e) => e.getClientRects().length > 0);
    queueMicrotask(() => shown()?.focus()); // after the heading of the new screen
  });
  return element;
}

/** Shows the console in another language, whose texts may not arrive. */
export async function switchLanguage(next: Language): Promise<void> {
  await speakIn(next);
  if (language.peek() === next) again();
  else toast(t("networkFailed"), "bad");
}

function languageButton(): Child {
  const other = language.peek() === "ko" ? "en" : "ko";
  return h(
    "button",
    { type: "button", class: "button plain", lang: other, onclick: () => switchLanguage(other) },
    t("otherLanguage"),
  );
}

/** The header of a narrow page. */
function top(branch: string | undefined, current: string): Child {
  return h(
    "header",
    { class: "top" },
    h("a", { class: "brand", href: "/console", "aria-label": t("console") }, logo()),
    switcher(branch, current),
    maySearch() ? searchButton() : null,
  );
}

type Devices = Schemas["DeviceOverview"];

/** The interval at which a screen reads what no event has announced to it: that the agent of its branch is connected, the next guest. */
const deviceInterval = 30_000; // ms

/** The warning on every screen of a branch whose guests cannot open doors. */
function deviceBar(branch: string): Child {
  const source = resource(() => api.get<Devices>(`/v2/admin/branches/${branch}/devices`));
  whileSeen(deviceInterval, () => void source.refresh());
  overhear((event) => {
    if (!event || event.kind === "agent") void source.refresh();
  });
  return h("div", { class: "devicebar", role: "status" }, () => {
    const devices = source.data();
    if (!devices || devices.online) return null;
    const text = devices.seenAt
      ? t("branchOffline", { when: ago(now() - Date.parse(devices.seenAt)) })
      : t("branchNeverOnline");
    return h("p", null, text);
  });
}

/** The most severe alert of the branch, and when the next guest will stand before the door. */
function alertBar(branch: string): Child {
  const source = resource(async () => {
    const [open, overview] = await Promise.all([
      newestAlerts({ branch, state: "open" }),
      api.get<Schemas["Overview"]>("/v2/admin/overview", { branch }),
    ]);
    return { open: { ...open, alerts: open.alerts.sort(byUrgency) }, next: overview.branches[0]?.nextArrival ?? null };
  });
  const refresh = gather(source.refresh);
  watchAll(refresh);
  whileSeen(deviceInterval, refresh); // no event announces the next guest
  const text = () => {
    const { open, next } = source.data() ?? {};
    const worst = open?.alerts[0];
    if (!worst) return null;
    return h(
      "p",
      null,
      h("a", { href: "/console/alerts" }, alertText(worst)),
      open.alerts.length > 1 ? ` ${t("alertMore", { n: besides(open, 1) })}` : null,
      next ? ` · ${t("nextGuest", { when: localText(next, branch) })}` : null,
    );
  };
  // A text that does not change is not announced again.
  return h(
    "div",
    { class: "devicebar", role: "status" },
    match(() => JSON.stringify(source.data()), text),
  );
}

function liveBar(branch: string | undefined): Child {
  if (!branch || !branchByCode(branch)) return null;
  return [
    hasScreen("doors") ? deviceBar(branch) : null,
    hasScreen("alerts") ? alertBar(branch) : null,
    connectionBar(),
  ];
}

const connectionBar = (): Child =>
  h(
    "div",
    { class: "livebar", role: "status" },
    when(
      () => connection() === "polling",
      () => h("p", null, t("liveLost")),
    ),
  );

/** The navigation bar at the bottom of a narrow page. */
function bar(home: string, current: string): Child {
  const more = () =>
    dialog(
      t("more"),
      (close) =>
        h(
          "nav",
          { class: "sheet", onclick: close, "aria-label": t("screens") },
          everywhere("cleaning", "navCleaning", "rooms", current),
          everywhere("overview", "navOverview", "overview", current),
          everywhere("alerts", "navAlerts", "bell", current),
          everywhere("reports", "navReports", "reports", current),
          everywhere("desk", "navDesk", "money", current),
          everywhere("settlement", "navSettlement", "settlement", current),
          mine()
            .slice(inBar)
            .map((p) => entry(home, p, current)),
          general(current),
          h("hr"),
          h("div", { class: "row" }, languageButton(), button(t("logout"), logout, { kind: "plain" })),
        ),
      { kind: "drawer" },
    );
  return h(
    "nav",
    { class: "bar", "aria-label": t("screens") },
    mine()
      .slice(0, inBar)
      .map((p) => entry(home, p, current)),
    h(
      "button",
      {
        type: "button",
        "aria-current": mine().findIndex((p) => p.screen === current) >= inBar ? "page" : null,
        onclick: more,
      },
      icon("more"),
      h("span", null, t("more")),
    ),
  );
}
