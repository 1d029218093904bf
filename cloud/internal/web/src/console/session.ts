// The administrator who is logged in, with role and branches.

import { ApiError, api, hearRefusals } from "../core/api";
import type { Schemas } from "../core/interface";
import { english } from "../core/language";
import { again, go } from "../core/router";
import { computed, signal } from "../core/signal";
import { localStore, tabStore } from "../core/storage";

export type Role = NonNullable<Schemas["Me"]["role"]>;

export interface Me {
  adminLoginId: string;
  role: Role;
  branchList: string[];
}

export type Branch = Schemas["Branch"];

/** undefined: not requested yet; null: not logged in. */
export const me = signal<Me | null | undefined>(undefined);
export const branches = signal<Branch[]>([]);

/** Whether the administrator has one of some roles. */
const has = (...roles: Role[]) => computed(() => roles.includes(me()?.role ?? "viewer"));

/** Every role but the limited ones may read all; viewers may do no more. */
export const mayChange = has("hq", "manager");
export const mayBook = has("hq", "manager", "front-desk");
export const mayRefund = has("hq", "manager", "accountant");
export const maySearch = has("hq", "manager", "viewer", "front-desk", "accountant");
export const isHQ = has("hq");

/** The screens that a limited role has; undefined: all. */
const screens: Partial<Record<Role, string[]>> = {
  "front-desk": ["day", "doors", "messages", "overview", "alerts", "levels", "guest"],
  accountant: ["money", "overview", "alerts", "reports", "settlement", "desk"],
  cleaner: ["cleaning"],
};

export const hasScreen = (screen: string): boolean =>
  screens[me()?.role ?? "viewer"]?.includes(screen) ?? screen !== "cleaning";

/** The addresses that show a part of another screen. */
const partOf: Record<string, string> = { week: "day", opening: "settings" };

/** Whether the role has the screen at an address: /console/overview, /console/gangnam/day/2026-01-31?r=1. */
export function mayOpen(href: string): boolean {
  const [first = "", ofBranch] = href.split("?")[0]!.split("/").slice(2);
  if (ofBranch && !branchByCode(first)) return false;
  const screen = ofBranch ?? first;
  return screen === "closures" ? mayChange() : hasScreen(partOf[screen] ?? screen);
}

/** The first screen of a branch. */
export const firstScreen = (): string => screens[me()?.role ?? "viewer"]?.[0] ?? "day";

type AnyMe = Schemas["Me"];

/** Fetches the administrator of the session. */
export async function identify(): Promise<void> {
  try {
    const [who, list] = await Promise.all([api.get<AnyMe>("/v2/me"), api.get<{ branches: Branch[] }>("/v2/branches")]);
    if (who.loginType !== "admin" || !who.adminLoginId || !who.role) {
      me.set(null);
      return;
    }
    own(who.adminLoginId);
    branches.set(list.branches.filter((b) => who.branchList?.includes(b.branch)));
    me.set({ adminLoginId: who.adminLoginId, role: who.role, branchList: who.branchList ?? [] });
  } catch (error) {
    if (error instanceof ApiError && error.status === 401) me.set(null);
    else throw error;
  }
}

const ownerKey = "console-owner";

/** Drafts may name guests: those of another administrator, whose session has ended in this tab, are deleted. */
function own(id: string): void {
  const owner = tabStore.get(ownerKey);
  if (owner && owner !== id) tabStore.clear();
  tabStore.set(ownerKey, id);
}

/** The login, from which the administrator returns to the current address with its query. */
export const loginAddress = (query = ""): string =>
  `/console/login?${query}next=${encodeURIComponent(location.pathname + location.search)}`;

/**
 * If the session ends while a screen is open, leads to the login and from there back to the screen. If its rights have changed, or
 * another administrator has logged in in another tab, shows the screen again as it is for these rights.
 * If the service requires a proof of the identity, confirm asks for it, and the request is repeated if it returns true.
 */
export function noticeEnd(confirm = async (): Promise<boolean> => false): void {
  let asking = false;
  hearRefusals(async (refusal) => {
    if (refusal.type === "ConfirmationRequired" && (await confirm())) return true;
    const before = me.peek();
    if (![401, 403].includes(refusal.status) || !before || asking) return false;
    asking = true;
    void identify()
      .then(() => {
        if (me.peek() === null) go(loginAddress("ended=1&"), { replace: true });
        else if (JSON.stringify(me.peek()) !== JSON.stringify(before)) again();
      })
      .catch(() => {}) // unknown: the next rejected request checks again
      .finally(() => (asking = false));
    return false;
  });
}

export async function logout(): Promise<void> {
  await api.post("/admin/logout");
  tabStore.clear(); // drafts may name guests
  me.set(null);
  go("/console/login");
}

export const branchByCode = (code: string): Branch | undefined => branches().find((b) => b.branch === code);

export const branchName = (b: Branch): string => (english() && b.nameEn) || b.nameKo || b.branch;

const lastKey = "console-branch";

/** The last visited branch, or the first one. */
export function homeBranch(): string | undefined {
  const last = localStore.get(lastKey);
  return branches.peek().find((b) => b.branch === last)?.branch ?? branches.peek()[0]?.branch;
}

export const rememberBranch = (code: string): boolean => localStore.set(lastKey, code);
