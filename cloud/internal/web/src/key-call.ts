// Requests of the key page's parts. They may take longer than a press, because nothing waits for them at a door.

const timeout = 8000; // ms

/** What the script of the page lends to its parts. */
export interface Tools {
  /** fetch with a deadline for the headers and the body. */
  request(address: string, ms: number, init?: RequestInit): { response: Promise<Response> };
  /** Shows the digits that a keypad takes. */
  spell(digits: Element, pin: string): void;
  /** The language of the page as the service sent it: "ko" or "en". */
  lang: string;
}

export let tools: Tools;

export const lend = (lent: Tools): void => {
  tools = lent;
};

/** Failed is thrown for an error response. message is the service's explanation in Korean; it may be empty. */
export class Failed extends Error {}

/** Calls an operation of the key and returns the data of the answer. path begins with the key. */
export const call = <T>(method: string, path: string, body?: unknown): Promise<T> => ask(method, `keys/${path}`, body);

/** Reads what the service shows to everybody. */
export const get = <T>(path: string): Promise<T> => ask("GET", path);

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await tools.request(`/api/v2/${path}`, timeout, {
    method,
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body), // undefined: none
  }).response;
  const answer = (await response.json()) as { data: T; message: string | null };
  if (!response.ok) throw new Failed(answer.message ?? "");
  return answer.data;
}

/** Returns what to show for an error: the service's explanation on the Korean page, otherwise the page's own sentence. */
export function explanation(error: unknown, otherwise = document.getElementById("parts")!.dataset.failed!): string {
  const said = error instanceof Failed && tools.lang === "ko" ? error.message : "";
  return said || otherwise;
}
