// Addresses and the screens behind them, on the browser's own history.

import { type Child, match, mount } from "./dom";
import { batch, signal } from "./signal";

export type Params = Record<string, string>;

export interface Route {
  /** Such as /b/:branch/:date */
  path: string;
  view: (params: Params) => Child;
  /** The screen has a document of its own, because it may run what no other screen may. */
  isolated?: boolean;
}

const place = signal({ path: location.pathname });
const search = signal(location.search);
let routes: Route[] = [];
let shown: Route | undefined;

function find(path: string): [Route | undefined, Params] {
  for (const route of routes) {
    const params = fit(route.path, path);
    if (params) return [route, params];
  }
  return [undefined, {}];
}

/** Fits a path to a pattern and returns its parameters, or null. */
export function fit(pattern: string, path: string): Params | null {
  const want = pattern.split("/");
  const have = path.split("/");
  if (want.length !== have.length) return null;
  const params: Params = {};
  for (const [i, part] of want.entries()) {
    const value = have[i]!;
    if (part.startsWith(":")) {
      if (value === "") return null;
      try {
        params[part.slice(1)] = decodeURIComponent(value);
      } catch {
        return null;
      }
    } else if (part !== value) return null;
  }
  return params;
}

/** The query of the address that is shown. A change of it alone leaves the screen standing. */
export const query = (): URLSearchParams => new URLSearchParams(search());

export interface Visit {
  /** Puts the new address in place of the one that is shown: back does not return to it. */
  replace?: boolean;
}

export function go(address: string, { replace = false }: Visit = {}): void {
  const url = new URL(address, location.href);
  const [route] = find(url.pathname);
  if (route?.isolated || shown?.isolated) {
    if (replace) location.replace(url);
    else location.assign(url);
    return;
  }
  if (replace) history.replaceState(null, "", url);
  else history.pushState(null, "", url);
  arrive();
}

function arrive(): void {
  batch(() => {
    search.set(location.search);
    if (place.peek().path !== location.pathname) again();
  });
}

/** Shows the screen from its beginning. */
export function again(): void {
  place.set({ path: location.pathname });
}

/** Shows screens in target as addresses change, each through frame. */
export function route(
  target: Element,
  table: Route[],
  missing: () => Child,
  frame: (screen: () => Child) => Child,
): () => void {
  routes = table;
  addEventListener("popstate", arrive);
  document.addEventListener("click", follow);
  const unmount = mount(target, () =>
    match(place, ({ path }) => {
      const [found, params] = find(path);
      shown = found;
      return frame(() => (found ? found.view(params) : missing()));
    }),
  );
  return () => {
    removeEventListener("popstate", arrive);
    document.removeEventListener("click", follow);
    unmount();
  };
}

/** Takes clicks on links of the site. */
function follow(event: MouseEvent): void {
  const link = (event.target as Element).closest?.("a");
  if (
    !link ||
    event.defaultPrevented ||
    event.button !== 0 ||
    event.metaKey ||
    event.ctrlKey ||
    event.shiftKey ||
    event.altKey
  )
    return;
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (link.hash && link.pathname === location.pathname) return; // a place on this screen
  if (!find(link.pathname)[0]) return; // the server's own pages, such as keys
  event.preventDefault();
  go(link.href);
}
