// The branch last seen on this device, which the home page lists first. It is a cookie, so that the server knows the order too.

export const lastBranch = (): string | undefined => document.cookie.match(/(?:^|; )branch=([\w-]+)/)?.[1];

export function rememberBranch(code: string): void {
  document.cookie = `branch=${code}; path=/; max-age=31536000; samesite=lax`;
}
