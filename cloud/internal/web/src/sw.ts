// The service worker. It opens the site without a network, and shows the key page at once as it was last seen.
//
// It stores files that identify no guest (the shell and its hashed assets) and, until the reservation ends, the key pages
// opened on this device. It never stores answers of the interface.

declare const self: ServiceWorkerGlobalScope;

const shellCache = "shell-1";
const keyCache = "keys-1";
const shellTimeout = 2500; // ms after which a stored shell is shown
const freshTimeout = 8000; // ms after which a stored key page is shown although a fresh one was requested

/** The part of the Static Routing API that is used here (Chrome 123). */
interface StaticRoutes {
  addRoutes?(route: { condition: { urlPattern: { pathname: string } }; source: "network" }): Promise<void>;
}

self.addEventListener("install", (event) => {
  void self.skipWaiting();
  // A press does not wait for a worker that the browser has stopped. Other browsers start it first.
  const routed = (event as StaticRoutes).addRoutes?.({
    condition: { urlPattern: { pathname: "/api/*" } },
    source: "network",
  });
  if (routed) event.waitUntil(routed);
});

self.addEventListener("activate", (event) => {
  event.waitUntil(
    (async () => {
      for (const name of await caches.keys()) if (name !== shellCache && name !== keyCache) await caches.delete(name);
      await forgetOldKeys();
      await self.clients.claim();
    })(),
  );
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== location.origin || url.pathname.startsWith("/api")) return;
  // On a phone without space every use of the store may fail. Then the network decides.
  const respond = (made: Promise<Response>) => event.respondWith(made.catch(() => fetch(request)));
  if (url.pathname.startsWith("/assets/")) respond(asset(request));
  else if (request.mode !== "navigate") return;
  else if (/^\/k\/[^/]+$/.test(url.pathname)) respond(keyPage(event, url));
  // The payment page has a policy of its own, so no cached shell can replace it.
  else if (/^\/(k|console|book\/pay)(\/|$)/.test(url.pathname)) return;
  else respond(shell(request));
});

// The page that registered the worker was loaded before it, so it asks for itself to be stored.
self.addEventListener("message", (event) => {
  const { keep, again, files } = event.data as { keep: string; again: boolean; files: string[] };
  event.waitUntil(keep === "/" ? keepShell(files) : keepKey(keep, again));
});

/** The fresh page, or the stored one if there is none after ms: the network is slow, or a proxy answers because the service restarts. */
async function fresher(ms: number, fresh: Promise<Response>, stored: Response): Promise<Response> {
  const late = new Promise<undefined>((wake) => setTimeout(wake, ms));
  const page = await Promise.race([fresh, late]).catch(() => {});
  return page && page.status < 500 ? page : stored;
}

async function asset(request: Request): Promise<Response> {
  const stored = await caches.match(request);
  if (stored) return stored;
  const response = await fetch(request);
  if (response.ok) await (await caches.open(shellCache)).put(request, response.clone());
  return response;
}

/** All screens share one shell. A slow network gets the stored one. */
async function shell(request: Request): Promise<Response> {
  const fresh = fetch(request);
  const stored = await caches.match("/", { cacheName: shellCache });
  return stored ? fresher(shellTimeout, fresh, stored) : fresh;
}

/**
 * Stores the shell with the files of the page and removes those of earlier versions. After a deployment the page may be older than
 * the shell, which could not start with its files.
 */
async function keepShell(files: string[]): Promise<void> {
  const shell = await fetch("/shell"); // the document without the data of any screen
  const needed = (await shell.clone().text()).match(/\/assets\/[^"]+/g);
  if (!needed?.every((file) => files.includes(file))) return;
  const cache = await caches.open(shellCache);
  for (const stored of await cache.keys()) {
    if (!files.includes(new URL(stored.url).pathname)) await cache.delete(stored);
  }
  await cache.put("/", shell);
  for (const file of files) if (!(await cache.match(file))) await cache.add(file);
}

/** Shows the stored page at once and refreshes it behind. The page itself notices if the reservation has changed. */
async function keyPage(event: FetchEvent, url: URL): Promise<Response> {
  await forgetOldKeys();
  const stored = await caches.match(url.pathname, { cacheName: keyCache });
  const fresh = fetch(event.request);
  if (url.search !== "") {
    // A page with a result may show a PIN, so it is not stored.
    return stored ? fresher(freshTimeout, fresh, stored) : fresh;
  }
  event.waitUntil(fresh.then((response) => putKey(url.pathname, response.clone())));
  return stored ?? fresh;
}

async function keepKey(path: string, again: boolean): Promise<void> {
  if (!again && (await caches.match(path, { cacheName: keyCache }))) return;
  await putKey(path, await fetch(path));
}

async function putKey(path: string, response: Response): Promise<void> {
  const cache = await caches.open(keyCache);
  if (response.ok) await cache.put(path, response);
  else if (response.status === 404) await cache.delete(path);
}

async function forgetOldKeys(): Promise<void> {
  const cache = await caches.open(keyCache);
  for (const request of await cache.keys()) {
    const until = Number((await cache.match(request))?.headers.get("Key-Until"));
    if (!(until * 1000 > Date.now())) await cache.delete(request);
  }
}

export {};
