// The branch that was chosen last on this device stands first.

const key = "branch";

export const lastBranch = (): string | null => localStorage.getItem(key);

export const rememberBranch = (code: string): void => localStorage.setItem(key, code);
