// The browser's storage. A browser may deny it to scripts: a WebView may have none, the user may block it, or it is full. Values
// are then kept in memory, until the document is left.

export interface Store {
  get(key: string): string | null;
  /** Returns whether the value outlives the document and the browser keeps cookies, which a hold and a login need, too. */
  set(key: string, value: string): boolean;
  remove(key: string): void;
  clear(): void;
}

/** A store whose area is looked up at each access, because the look-up itself throws if storage is denied. */
function store(area: () => Storage): Store {
  const memory = new Map<string, string>();
  const attempt = <T>(use: (area: Storage) => T): T | undefined => {
    try {
      return use(area());
    } catch {
      return undefined;
    }
  };
  return {
    get: (key) => memory.get(key) ?? attempt((s) => s.getItem(key)) ?? null,
    set(key, value) {
      memory.set(key, value);
      return Boolean(
        attempt((s) => {
          s.setItem(key, value);
          return memory.delete(key) && navigator.cookieEnabled;
        }),
      );
    },
    remove(key) {
      memory.delete(key);
      attempt((s) => s.removeItem(key));
    },
    clear() {
      memory.clear();
      attempt((s) => s.clear());
    },
  };
}

/** Values of this browser. */
export const localStore = store(() => localStorage);

/** Values of this tab. */
export const tabStore = store(() => sessionStorage);
