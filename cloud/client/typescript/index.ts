/**
 * TypeScript client of Yeolda. Its types are generated from openapi.yaml (npm run types); the requests are openapi-fetch's.
 */
import createClient from "openapi-fetch";
import type { components, paths } from "./generated/openapi";

export type Schemas = components["schemas"];

/** An answer that is not a success (docs/specification.md, Errors). */
export class YeoldaError extends Error {
  constructor(
    readonly http: number,
    /** Such as ResourceConflictException; empty if the answer has no envelope. */
    readonly type: string,
    message: string,
    /** Names the request in the log of the service. */
    readonly requestId: string | null,
    /** The payment provider's code if it rejected a payment. */
    readonly code: string | null = null,
    /** Such as the conflicts of a 409. */
    readonly data: unknown = null,
    /** The seconds to wait before the request is repeated: of 429 and 503. */
    readonly retryAfter: number | null = null,
  ) {
    super(message);
  }
}

/**
 * Returns a client of the service at an address such as "https://yeolda.example". The token is that of a program; what needs none
 * works without. The client keeps cookies, so one client is one guest: it holds at most one room at a time.
 */
export function yeolda(address: string, token = "") {
  const api = createClient<paths>({
    baseUrl: `${address.replace(/\/+$/, "")}/api`,
    redirect: "manual", // fetch repeats a POST, PUT or DELETE as a GET, which changes nothing and succeeds
  });
  const cookies = new Map<string, string>();
  api.use({
    onRequest({ request }) {
      if (token) request.headers.set("Authorization", `Bearer ${token}`);
      if (cookies.size)
        request.headers.set("Cookie", [...cookies].map(([name, value]) => `${name}=${value}`).join("; "));
      return request;
    },
    async onResponse({ request, response }) {
      for (const cookie of response.headers.getSetCookie()) {
        const [, name, value] = /^([^=;]+)=([^;]*)/.exec(cookie) ?? [];
        if (!name) continue; // a proxy's: browsers accept a cookie without a name
        if (value) cookies.set(name, value);
        else cookies.delete(name); // its hold or session is over
      }
      if (response.ok) {
        const [type = ""] = (response.headers.get("Content-Type") ?? "").split(";");
        const foreign = await problemOf(response, type.trim().toLowerCase());
        request.signal.throwIfAborted();
        if (foreign)
          throw new Error(`the answer of ${new URL(request.url).host} ${foreign}: it is not a Yeolda service`);
        return;
      }
      const body: unknown = await response.json().catch(() => null); // of a proxy
      request.signal.throwIfAborted(); // the caller wants no answer, not even its status
      const { errorType, message, errorCode, data = null } = (body ?? {}) as Record<string, unknown>;
      const wait = response.headers.get("Retry-After");
      const moved = response.headers.get("Location");
      const reason =
        moved && URL.canParse(moved, request.url)
          ? `the service has moved to ${new URL(moved, request.url).origin}` // the rest may contain a key
          : response.statusText;
      throw new YeoldaError(
        response.status,
        text(errorType) ?? "",
        text(message) ?? reason,
        response.headers.get("X-Request-Id"),
        text(errorCode),
        data,
        /^\d+$/.test(wait ?? "") ? Number(wait) : null, // a proxy may send a date
      );
    },
  });
  return api;
}

/** The types of answers that are not JSON: streams, tables and the description of the interface. */
const files = [
  "text/event-stream",
  "text/csv",
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
  "application/yaml",
];

/**
 * Returns why a success is not one of a Yeolda service, or null. A proxy, the login page of a network or another service also answer
 * with 200, and then nothing was done.
 */
async function problemOf(response: Response, type: string): Promise<string | null> {
  if (response.status === 204) return null;
  if (files.includes(type)) return null;
  if (type !== "application/json") return `is of type "${type}"`;
  const body: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  return (body as Record<string, unknown> | null)?.status === "success" ? null : "has no envelope";
}

/** Returns the data of an answer: `await dataOf(api.GET("/v2/hold"))`. Throws an Error if the answer has no envelope, such as a file. */
export async function dataOf<T>(answer: Promise<{ data?: { data?: T } | string }>): Promise<T> {
  const { data: envelope } = await answer;
  if (typeof envelope !== "object" || !envelope || !("data" in envelope)) throw new Error("the answer has no data");
  return envelope.data as T;
}

/** Returns a string as it is, and null for any other value. */
function text(value: unknown) {
  return typeof value === "string" ? value : null;
}
