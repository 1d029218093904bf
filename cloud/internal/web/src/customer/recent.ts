// Whether this browser has just bought something, so that a closed tab is no lost account number. What was bought is
// not kept here: the service knows it by a cookie that scripts cannot read.

import { now } from "../core/clock";

const key = "recent";
const life = 24 * 3600 * 1000; // of that cookie

export const recent = (): boolean => Number(localStorage.getItem(key)) > now();

export const noteRecent = (): void => localStorage.setItem(key, String(now() + life));

export const forgetRecent = (): void => localStorage.removeItem(key);
