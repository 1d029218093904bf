// The administrators' console: its addresses and what is shown at them.

import { accountScreen } from "./console/account";
import { agentScreen } from "./console/agent";
import { alertsScreen } from "./console/alerts";
import { auditScreen } from "./console/audit";
import { cleaningScreen } from "./console/cleaning";
import { climateScreen } from "./console/climate";
import { closuresScreen } from "./console/closures";
import { companyScreen } from "./console/company";
import { confirm } from "./console/confirm";
import { dayScreen } from "./console/day/screen";
import { deskScreen } from "./console/desk";
import { devicesScreen } from "./console/devices";
import { doorsScreen } from "./console/doors";
import { frame } from "./console/frame";
import { guestScreen } from "./console/guest";
import { integrationsScreen } from "./console/integrations";
import { levelsScreen } from "./console/levels";
import { loginScreen } from "./console/login";
import { messagesScreen } from "./console/messages";
import { moneyScreen } from "./console/money";
import { openingScreen } from "./console/opening";
import { overviewScreen } from "./console/overview";
import { button, explain, heading } from "./console/parts";
import { peopleScreen } from "./console/people";
import { proofScreen } from "./console/proof";
import { reportsScreen } from "./console/reports";
import { rolloutScreen } from "./console/rollout";
import { roomsScreen } from "./console/rooms";
import {
  type Branch,
  branchByCode,
  branches,
  firstScreen,
  hasScreen,
  homeBranch,
  identify,
  isHQ,
  loginAddress,
  mayChange,
  me,
  noticeEnd,
} from "./console/session";
import { settingsScreen } from "./console/settings";
import { settlementScreen } from "./console/settlement";
import { speakIn, t } from "./console/text";
import "./console/theme";
import { weekScreen } from "./console/week";
import { type Child, h } from "./core/dom";
import { language } from "./core/language";
import { go, type Params, type Route, route } from "./core/router";

/** A screen of a branch. */
const ofBranch =
  (screen: string, view: (branch: Branch, params: Params) => Child): Route["view"] =>
  (params) =>
    admitted(() => {
      const branch = branchByCode(params.branch!);
      return frame(branch?.branch, screen, () => (branch && hasScreen(screen) ? view(branch, params) : missing()));
    });

const general =
  (screen: string, view: () => Child): Route["view"] =>
  () =>
    admitted(() => frame(undefined, screen, hasScreen(screen) || own.has(screen) ? view : missing));

/** The screens of every role. Those of the headquarters check the role themselves. */
const own = new Set(["account", "people", "integrations", "company", "rollout"]);

/** Every screen requires an authenticated user. */
function admitted(view: () => Child): Child {
  if (me()) return view();
  queueMicrotask(() => go(loginAddress(), { replace: true }));
  return null;
}

/** The first page: all branches, or the day of the only one. */
function home(): Child {
  return admitted(() => {
    const branch = homeBranch();
    const first =
      branches.peek().length > 1 && hasScreen("overview")
        ? "/console/overview"
        : hasScreen("cleaning")
          ? "/console/cleaning"
          : `/console/${branch}/${firstScreen()}`;
    if (branch) queueMicrotask(() => go(first, { replace: true }));
    return branch
      ? null
      : frame(undefined, "", () => [heading(t("console")), h("p", { class: "nothing" }, t("noBranches"))]);
  });
}

const missing = (): Child => [heading(t("missingTitle")), h("p", { class: "nothing" }, t("missingText"))];

const table: Route[] = [
  { path: "/console", view: home },
  { path: "/console/", view: home },
  { path: "/console/login", view: loginScreen },
  { path: "/console/overview", view: general("overview", overviewScreen) },
  { path: "/console/cleaning", view: general("cleaning", cleaningScreen) },
  { path: "/console/alerts", view: general("alerts", alertsScreen) },
  { path: "/console/reports", view: general("reports", reportsScreen) },
  { path: "/console/levels", view: general("levels", levelsScreen) },
  { path: "/console/closures", view: general("overview", () => (mayChange() ? closuresScreen() : missing())) },
  { path: "/console/desk", view: general("desk", deskScreen) },
  { path: "/console/settlement", view: general("settlement", settlementScreen) },
  { path: "/console/account", view: general("account", accountScreen) },
  { path: "/console/people", view: general("people", () => (isHQ() ? peopleScreen() : missing())) },
  { path: "/console/proof", view: general("proof", () => (isHQ() ? proofScreen() : missing())) },
  { path: "/console/rollout", view: general("rollout", () => (isHQ() ? rolloutScreen() : missing())) },
  { path: "/console/company", view: general("company", () => (isHQ() ? companyScreen() : missing())) },
  { path: "/console/integrations", view: general("integrations", () => (isHQ() ? integrationsScreen() : missing())) },
  { path: "/console/:branch/day", view: ofBranch("day", dayScreen) },
  { path: "/console/:branch/day/:date", view: ofBranch("day", dayScreen) },
  { path: "/console/:branch/week", view: ofBranch("day", weekScreen) },
  { path: "/console/:branch/week/:date", view: ofBranch("day", weekScreen) },
  { path: "/console/:branch/guest/:id", view: ofBranch("guest", guestScreen) },
  { path: "/console/:branch/doors", view: ofBranch("doors", doorsScreen) },
  { path: "/console/:branch/rooms", view: ofBranch("rooms", roomsScreen) },
  { path: "/console/:branch/climate", view: ofBranch("climate", climateScreen) },
  { path: "/console/:branch/devices", view: ofBranch("devices", devicesScreen) },
  { path: "/console/:branch/devices/:agent", view: ofBranch("devices", agentScreen) },
  { path: "/console/:branch/messages", view: ofBranch("messages", messagesScreen) },
  { path: "/console/:branch/money", view: ofBranch("money", moneyScreen) },
  { path: "/console/:branch/audit", view: ofBranch("audit", auditScreen) },
  { path: "/console/:branch/opening", view: ofBranch("settings", openingScreen) },
  { path: "/console/:branch/settings", view: ofBranch("settings", settingsScreen) },
];

/** The page of an error that leaves nothing else to show. */
const broken = (text: string): Element =>
  h(
    "main",
    { class: "login" },
    h(
      "div",
      { class: "card", role: "alert" },
      h("h1", null, t("console")),
      h("p", null, text),
      button(t("retry"), () => location.reload()),
    ),
  );

async function start(): Promise<void> {
  const app = document.getElementById("app")!;
  try {
    await Promise.all([speakIn(language.peek()), identify()]);
  } catch (error) {
    app.replaceChildren(broken(explain(error)));
    return;
  }
  noticeEnd(confirm);
  route(
    app,
    table,
    () => admitted(() => frame(undefined, "", missing)),
    (screen) => screen(),
    () => broken(t("serverFailed")),
  );
}

void start();
