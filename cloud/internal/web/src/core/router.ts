// A router on the browser's history.

import { append, type Child, match, mount } from "./dom";
import { plain } from "./form";
import { batch, signal } from "./signal";

export type Params = Record<string, string>;

export interface Route {
  /** A pattern such as /b/:branch/:date */
  path: string;
  view: (params: Params) => Child;
  /** The screen needs a document of its own because its Content-Security-Policy differs. */
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

/** Matches a path against a pattern and returns the parameters, or null. */
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

/** The query of the current address. If only the query changes, the screen stays. */
export const query = (): URLSearchParams => new URLSearchParams(search());

export interface Visit {
  /** Replaces the current address, so that the back button skips it. */
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

/** Returns a function that reports whether the present screen is still shown: a late answer must not lead away from another one. */
export function staying(): () => boolean {
  const here = place.peek();
  return () => place.peek() === here;
}

/** Scrolls to the top of the screen. */
export function again(): void {
  place.set({ path: location.pathname });
}

/** Builds a view. If it throws, the error is reported, and failed is shown instead of an empty page. */
export function boundary(view: () => Child, failed: () => Child): Child {
  const built = document.createDocumentFragment();
  try {
    append(built, view());
    return built;
  } catch (error) {
    reportError(error);
    return failed();
  }
}

/** Shows the screen of the current address in target, wrapped by frame. failed is shown in place of one that throws. */
export function route(
  target: Element,
  table: Route[],
  missing: () => Child,
  frame: (screen: () => Child) => Child,
  failed: () => Child,
): () => void {
  routes = table;
  addEventListener("popstate", arrive);
  document.addEventListener("click", follow);
  const unmount = mount(target, () =>
    match(place, ({ path }) => {
      const [found, params] = find(path);
      shown = found;
      const screen = () => (found ? found.view(params) : missing());
      return boundary(() => frame(() => boundary(screen, failed)), failed);
    }),
  );
  return () => {
    removeEventListener("popstate", arrive);
    document.removeEventListener("click", follow);
    unmount();
  };
}

/** Handles clicks on links within the site. */
function follow(event: MouseEvent): void {
  const link = (event.target as Element).closest?.("a");
  if (!link || event.defaultPrevented || !plain(event)) return;
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (link.hash && link.pathname === location.pathname) return; // an anchor on this screen
  if (!find(link.pathname)[0]) return; // a page rendered by the server, such as a key page
  event.preventDefault();
  go(link.href, { replace: "replace" in link.dataset });
}
