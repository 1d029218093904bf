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

async function call<T>(method: string, path: string, body?: unknown, keepalive = false, key = ""): Promise<T> {
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
        ...(key ? { "Idempotency-Key": key } : {}),
      },
      body: text,
      signal: abort.signal,
    });
    noteServerTime(response.headers.get("Date"));
    envelope = (await response.json()) as Envelope<T>;
  } catch {
    throw new NetworkError("no response");
  } finally {
    clearTimeout(timer);
  }
  if (envelope.status !== "success") {
    const { errorType, errorCode, message, data } = envelope;
    const refusal = new ApiError(response.status, errorType ?? "", errorCode, message ?? "", data);
    if (refusal.type === "ConfirmationRequired" && (await confirmIdentity()))
      return call(method, path, body, keepalive, key);
    heard(refusal);
    throw refusal;
  }
  return envelope.data;
}

let confirmIdentity = async (): Promise<boolean> => false;

/** Asks for the identity when the service requires a proof, and repeats the request if confirm returns true. */
export function confirmWith(confirm: () => Promise<boolean>): void {
  confirmIdentity = confirm;
}

let heard: (refusal: ApiError) => void = () => {};

/** Calls listener for every rejected request of the page. */
export function hearRefusals(listener: (refusal: ApiError) => void): void {
  heard = listener;
}

export const api = {
  get: <T>(path: string, query: Query = {}) => get<T>(addressOf(path, query)),
  post: <T>(path: string, body: unknown = {}) => call<T>("POST", path, body),
  /** A POST that the service executes once per key. */
  once: <T>(key: string, path: string, body: unknown) => call<T>("POST", path, body, false, key),
  put: <T>(path: string, body: unknown = {}) => call<T>("PUT", path, body),
  patch: <T>(path: string, body: unknown = {}) => call<T>("PATCH", path, body),
  delete: <T>(path: string, query?: Query, body?: unknown) => call<T>("DELETE", addressOf(path, query ?? {}), body),
  /** A DELETE that is sent even while the page is being left. */
  farewell: (path: string) => call<null>("DELETE", path, undefined, true),
};

/** The first screen finds its data in the document. */
async function get<T>(address: string): Promise<T> {
  return (carried(address) as T | undefined) ?? call<T>("GET", address);
}

function addressOf(path: string, query: Query): string {
  const search = new URLSearchParams(Object.entries(query).map(([k, v]) => [k, String(v)])).toString();
  return search ? `${path}?${search}` : path;
}
