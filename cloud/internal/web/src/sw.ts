// The service worker: the site opens without a network, and so does the key page, as it was last seen.
//
// It keeps what names no one (the shell and its hashed files) and, until the reservation is over, the key pages this
// device has opened. Answers of the interface are never kept.

declare const self: ServiceWorkerGlobalScope;

const shellCache = "shell-1";
const keyCache = "keys-1";

self.addEventListener("install", () => void self.skipWaiting());

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
  if (url.pathname.startsWith("/assets/")) event.respondWith(asset(request));
  else if (request.mode !== "navigate") return;
  else if (/^\/k\/[^/]+$/.test(url.pathname)) event.respondWith(keyPage(request, url));
  else if (/^\/(k|console)(\/|$)/.test(url.pathname)) return;
  else event.respondWith(shell(request));
});

// The page that registered the worker was loaded before it: it asks for its own address to be kept.
self.addEventListener("message", (event) => {
  const path: unknown = event.data?.keep;
  if (typeof path !== "string") return;
  if (path.startsWith("/k/")) event.waitUntil(keepKey(new Request(path, { credentials: "same-origin" })));
  else event.waitUntil(keepShell(event.data.files ?? []));
});

async function asset(request: Request): Promise<Response> {
  const kept = await caches.match(request);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) await (await caches.open(shellCache)).put(request, response.clone());
  return response;
}

/** Every screen has the same shell; it is the newest that can be had. */
async function shell(request: Request): Promise<Response> {
  try {
    return await fetch(request);
  } catch (offline) {
    const kept = await caches.match("/", { cacheName: shellCache });
    if (kept) return kept;
    throw offline;
  }
}

/** Keeps the shell with the files it needs and lets go of those of earlier versions. */
async function keepShell(files: string[]): Promise<void> {
  const cache = await caches.open(shellCache);
  for (const kept of await cache.keys()) {
    if (!files.includes(new URL(kept.url).pathname)) await cache.delete(kept);
  }
  await cache.add("/");
  for (const file of files) if (!(await cache.match(file))) await cache.add(file);
}

async function keyPage(request: Request, url: URL): Promise<Response> {
  try {
    const response = await fetch(request);
    // A page with a result may show a PIN: only the plain one is kept.
    if (url.search === "") await putKey(url.pathname, response.clone());
    return response;
  } catch (offline) {
    await forgetOldKeys();
    const kept = await caches.match(url.pathname, { cacheName: keyCache });
    if (kept) return kept;
    throw offline;
  }
}

async function keepKey(request: Request): Promise<void> {
  const path = new URL(request.url).pathname;
  if (await caches.match(path, { cacheName: keyCache })) return;
  await putKey(path, await fetch(request));
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
