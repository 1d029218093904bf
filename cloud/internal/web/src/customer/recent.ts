// Whether this browser has made a purchase recently, so that a guest who closed the tab finds the account number again.
// The purchase itself is not stored here: the service identifies it by a cookie that scripts cannot read.

import { now } from "../core/clock";
import { localStore } from "../core/storage";

const key = "recent";
const life = 24 * 3600 * 1000; // of that cookie

export const recent = (): boolean => Number(localStore.get(key)) > now();

export const noteRecent = (): boolean => localStore.set(key, String(now() + life));

export const forgetRecent = (): void => localStore.remove(key);
