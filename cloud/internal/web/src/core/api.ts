// A client of the service's HTTP interface: one envelope, two kinds of failure.

import { carried } from "./carried";
import { noteServerTime } from "./clock";
import { language } from "./language";

/** The service rejected the request. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    /** The interface's errorType, such as ResourceTimeOutException. */
    readonly type: string,
    /** The payment provider's code if the provider rejected the request. */
    readonly code: string | null,
    /** In Korean. */
    message: string,
    readonly data: unknown = null,
  ) {
    super(message);
  }
}

/** Reports whether the service rejected a request with one of the status codes. */
export const refusedWith = (error: unknown, ...codes: number[]): boolean =>
  error instanceof ApiError && codes.includes(error.status);

/** No response arrived, so the outcome of the request is unknown. */
export class NetworkError extends Error {}

interface Envelope<T> {
  status: "success" | "error";
  errorType: string | null;
  errorCode: string | null;
  message: string | null;
  data: T;
}

/** In ms; longer than the time-outs of the service but those of payments, whose outcome is asked for afterwards. */
const requestTimeout = 20_000;
/** In bytes per ms: a photo of 2 MB has a minute. */
const slowUplink = 50;

type Query = Record<string, string | number>;

async function call<T>(method: string, path: string, body?: unknown, keepalive = false, more = {}): Promise<T> {
  let response: Response;
  let envelope: Envelope<T>;
  const abort = new AbortController(); // AbortSignal.timeout is younger than the browsers that we support
  const text = body === undefined ? null : JSON.stringify(body);
  const timer = setTimeout(() => abort.abort(), requestTimeout + (text?.length ?? 0) / slowUplink);
  try {
    response = await fetch(`/api${path}`, {
      method,
      keepalive,
      // The service sends messages in the language of the page.
      headers: {
        "Accept-Language": language.peek(),
        ...(text ? { "Content-Type": "application/json" } : {}),
        ...more,
      },
      body: text,
      signal: abort.signal,
    });
    noteServerTime(response.headers.get("Date"));
    envelope = (await response.json()) as Envelope<T>;
  } catch {
    throw new NetworkError();
  } finally {
    clearTimeout(timer);
  }
  if (envelope.status !== "success") {
    const { errorType, errorCode, message, data } = envelope;
    const refusal = new ApiError(response.status, errorType ?? "", errorCode, message ?? "", data);
    if (await again(refusal)) return call(method, path, body, keepalive, more);
    throw refusal;
  }
  return envelope.data;
}

let again: (refusal: ApiError) => unknown = () => false;

/** Calls listener for every rejected request of the page, which is repeated if the listener returns true. */
export function hearRefusals(listener: typeof again): void {
  again = listener;
}

export const get = <T>(path: string, query: Query = {}): Promise<T> => read<T>(addressOf(path, query));

export const post = <T>(path: string, body: unknown = {}): Promise<T> => call<T>("POST", path, body);

/** A DELETE that is sent even while the page is being left. */
export const farewell = (path: string): Promise<null> => call<null>("DELETE", path, undefined, true);

/** All requests of the console. The customers' scripts name the ones that they send, so they contain no others. */
export const api = {
  get,
  post,
  /** A POST that the service executes once per key. */
  once: <T>(key: string, path: string, body: unknown) => call<T>("POST", path, body, false, { "Idempotency-Key": key }),
  put: <T>(path: string, body: unknown = {}) => call<T>("PUT", path, body),
  patch: <T>(path: string, body: unknown = {}) => call<T>("PATCH", path, body),
  delete: <T>(path: string, query?: Query, body?: unknown) => call<T>("DELETE", addressOf(path, query ?? {}), body),
};

/** The first screen finds its data in the document. */
async function read<T>(address: string): Promise<T> {
  return (carried(address) as T | undefined) ?? call<T>("GET", address);
}

function addressOf(path: string, query: Query): string {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, String(v)])).toString();
  return search ? `${path}?${search}` : path;
}
