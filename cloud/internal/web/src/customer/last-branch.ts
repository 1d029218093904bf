// The branch last chosen on this device, which the home page lists first.

const key = "branch";

export const lastBranch = (): string | null => localStorage.getItem(key);

export const rememberBranch = (code: string): void => localStorage.setItem(key, code);
