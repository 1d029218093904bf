// Makes the key page live. Without scripts the page works too, one form post at a time.
//
// A press is a small state machine with deadlines: it asks for the door, waits for the result, and ends within ten
// seconds with one of the outcomes below. Every outcome has a panel in the page, so it can be shown without a network.
//
// The parts that no door needs (stay, companions, climate, codes) are a script of their own, loaded once the service has responded.

import type { Schemas } from "./core/interface";
import type { Parts } from "./key-parts";

type Outcome =
  | "waiting"
  | "opened"
  | "pin"
  | "code"
  | "over" // the one-time code has expired
  | "failed" // the lock did not obey
  | "unknown" // the request may have reached the door, but no result arrived
  | "unreachable" // the server did not respond
  | "offline" // the phone has no network
  | "server" // the server responded with an error
  | "busy"
  | "stale" // the page shows another room or time than the reservation
  | "outside";
type Door = Schemas["UnlockRequest"]["doorlockType"];
type Answer = [outcome: Outcome, pin?: string];
type State = "before" | "open" | "leaving" | "after";

const pressTimeout = 8500; // ms from the press to its outcome
const askTimeout = 4000; // ms until the service must have accepted the request
const resultTimeout = 8000; // ms until the service must have sent the result
const retryDelay = 500; // doubled each time
const codeTTL = 55_000; // ms; a code is accepted for a minute at least, and its answer took some seconds
const refreshTimeout = 8000;
const refreshInterval = 20_000;

const main = document.getElementById("key")!;
const form = main.querySelector("form")!;
const buttons = form.querySelectorAll("button");
const key = location.pathname.split("/")[2]!;
const { lang } = document.documentElement; // read before the browser translates the page and changes it
const doors = "/api/door/v2/unlock";

let skew = 0; // seconds by which the service's clock is ahead
let synced = false; // the last answer of the service has set skew; the phone's clock alone may be hours off, so it closes no door
let busy = false;
let stale = false; // the page is being replaced
let pressed: HTMLButtonElement | undefined; // browsers of 2021 do not name the submitter of a form

const moment = (name: string): number => Number(main.dataset[name]);
const now = (): number => Date.now() / 1000 + skew;
const sleep = (ms: number) => new Promise((wake) => setTimeout(wake, ms));

/** fetch with a deadline for the headers and the body. */
function request(
  address: string,
  ms: number,
  init: RequestInit = {},
): { response: Promise<Response>; extend(ms: number): void } {
  const abort = new AbortController();
  let timer = setTimeout(() => abort.abort(), ms);
  const extend = (more: number) => {
    clearTimeout(timer);
    timer = setTimeout(() => abort.abort(), more);
  };
  return { response: fetch(address, { ...init, signal: abort.signal }), extend };
}

// --- display --------------------------------------------------------------------------------------------------

/** Shows the digits that a keypad takes. */
function spell(digits: Element, pin: string): void {
  digits.textContent = "";
  for (const d of pin) {
    const digit = digits.appendChild(document.createElement("i"));
    digit.textContent = d;
    digit.setAttribute("aria-hidden", "true");
  }
  digits.setAttribute("aria-label", [...pin].join(" "));
}

/** Shows the PIN of the reservation, from 30 minutes before the start. The stored page shows it without a network. */
function showPass(pin: Schemas["KeyFacts"]["pin"]): void {
  const part = main.querySelector<HTMLElement>("#pass")!;
  const before = part.textContent;
  part.hidden = !pin;
  spell(part.querySelector(".pin")!, pin?.code ?? "");
  part.querySelector(".hint")!.textContent = pin ? (pin.ready ? part.dataset.help! : part.dataset.notReady!) : "";
  if (part.textContent !== before) keep(true);
}

const why = main.querySelector("#why")!;
let codeEnd = Infinity; // ms since 1970: when the one-time code of the press expires

/** Shows the panel of an outcome. */
function show(outcome: Outcome, pin = ""): void {
  codeEnd = outcome === "code" ? Date.now() + codeTTL : Infinity;
  main.querySelectorAll("[data-result] .pin").forEach((digits) => {
    spell(digits, pin);
  });
  main.querySelectorAll<HTMLElement>("[data-result]").forEach((panel) => {
    panel.hidden = panel.dataset.result !== outcome;
    const headline = panel.querySelector<HTMLElement>("[data-text]")!;
    const text = headline.dataset.text!.replace("{door}", pressed?.dataset.name ?? "");
    headline.textContent = text[0]!.toUpperCase() + text.slice(1);
  });
}

let relock: ReturnType<typeof setTimeout> | undefined;

/** Shows how long the lock stays open, and then what to do if the door was not pushed in time. */
function countPulse(): void {
  const panel = main.querySelector<HTMLElement>('[data-result="opened"]')!;
  const [bar, again] = [panel.querySelector<HTMLElement>(".pulse")!, panel.querySelector<HTMLElement>(".again")!];
  clearTimeout(relock);
  again.hidden = true;
  bar.hidden = false;
  bar.style.setProperty("--pulse", `${moment("pulse")}s`);
  bar.replaceWith(bar.cloneNode(true)); // restarts the animation
  relock = setTimeout(() => {
    panel.querySelector<HTMLElement>(".pulse")!.hidden = true;
    again.hidden = false;
  }, moment("pulse") * 1000);
}

function tick(): void {
  if (Date.now() >= codeEnd) show("over");
  const at = now();
  const state: State =
    at < moment("from") ? "before" : at < moment("to") ? "open" : at < moment("end") ? "leaving" : "after";
  main.dataset.state = state;
  for (const button of buttons) button.disabled = busy || (synced && state !== "open") || stale;
  main.querySelectorAll<HTMLElement>("[data-until]").forEach((left) => {
    left.textContent = span(moment(left.dataset.until!) - at, left.dataset.until === "from");
  });
  const used = (at - moment("start")) / (moment("end") - moment("start"));
  main.style.setProperty("--used", `${Math.round(100 * Math.max(0, used))}%`);
}

/** The time until an instant in the page's language: "1시간 5분 남았어요", "in 1 h 5 min". */
function span(seconds: number, untilOpen: boolean): string {
  if (seconds <= 0 || seconds > 172_800) return "";
  const ko = lang === "ko";
  const minutes = Math.ceil(seconds / 60);
  const [h, m] = [Math.floor(minutes / 60), minutes % 60];
  const text = [h ? h + (ko ? "시간" : " h") : "", m || !h ? m + (ko ? "분" : " min") : ""].join(" ").trim();
  if (untilOpen) return ko ? `${text} 뒤예요.` : `That is in ${text}.`;
  return ko ? `${text} 남았어요.` : `${text} left.`;
}

// --- the reservation ------------------------------------------------------------------------------------------

let refreshing = false;
let parts: Promise<Parts> | undefined;

/** Shows the parts of the page that need scripts and the network. If their script does not arrive, they stay hidden. */
async function showParts(facts: Schemas["KeyFacts"]): Promise<void> {
  if (now() >= moment("end")) return;
  const load = (): Promise<typeof import("./key-parts")> => import(main.dataset.parts!);
  try {
    parts ??= load().then(({ connectParts }) => connectParts(main, key, now, { request, spell, lang }));
    (await parts).refresh(facts);
  } catch {
    parts = undefined;
  }
}

/** Fetches the reservation again. Staff may have moved or cancelled it, and then this page is no longer true. */
async function refresh(): Promise<void> {
  if (refreshing) return;
  refreshing = true;
  try {
    const response = await request(`/api/v2/keys/${key}`, refreshTimeout).response;
    if (response.status === 400) return replacePage("gone");
    if (!response.ok) throw new Error();
    const data = ((await response.json()) as { data: Schemas["KeyFacts"] }).data;
    delete main.dataset.net;
    skew = Date.parse(data.serverTime) / 1000 - Date.now() / 1000;
    synced = true;
    main.dataset.connected = String(data.online);
    showPass(data.pin);
    void showParts(data);
    const [from, to] = [Date.parse(data.windowFrom) / 1000, Date.parse(data.windowTo) / 1000];
    if (data.roomNo !== main.dataset.room || from !== moment("from") || to !== moment("to")) replacePage("moved");
  } catch {
    synced = false;
    main.dataset.net = navigator.onLine ? "down" : "off";
  } finally {
    refreshing = false;
    tick();
  }
}

/** Asks the service worker to store this page, again if it is stored already. */
function keep(again: boolean): void {
  void navigator.serviceWorker?.ready.then((worker) => worker.active?.postMessage({ keep: location.pathname, again }));
}

/** Loads the page again. Until it arrives, the doors of the old reservation cannot be pressed. */
function replacePage(reason: "moved" | "gone"): void {
  if (busy || stale) return;
  stale = true;
  show("stale");
  location.replace(`${location.pathname}?fresh=${reason}`);
}

// --- pressing -------------------------------------------------------------------------------------------------

/** Asks for a door until there is an outcome. Asking again is safe: the service joins a press that is still pending. */
async function press(door: Door): Promise<Answer> {
  const end = Date.now() + pressTimeout;
  let sent = false; // whether a request may have reached the door
  for (let delay = retryDelay; Date.now() + delay < end; delay *= 2) {
    try {
      return await ask(door, end);
    } catch (error) {
      sent ||= error instanceof DOMException; // stopped by a deadline, not refused by the network
    }
    await sleep(delay);
  }
  if (!navigator.onLine) return ["offline"];
  return [sent ? "unknown" : "unreachable"];
}

async function ask(door: Door, end: number): Promise<Answer> {
  const left = () => Math.max(0, end - Date.now());
  const asked = request(doors, Math.min(askTimeout, left()), {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "text/event-stream" },
    body: JSON.stringify({
      branch: main.dataset.branch!,
      doorlockType: door,
      key,
      room: main.dataset.room!,
    } satisfies Schemas["UnlockRequest"]),
  });
  const response = await asked.response;
  asked.extend(Math.min(resultTimeout, left()));
  if (!response.ok) return refused(response.status);
  let id = response.headers.get("Door-Request");
  if (id) {
    const answer = read(await response.text().catch(() => ""));
    if (answer) return answer;
  } else {
    id = ((await response.json()) as { data: { requestId: string } }).data.requestId;
  }
  return subscribe(id, left);
}

/** Waits for the result of an accepted request. The service keeps it for a minute, so a lost answer is asked for again. */
async function subscribe(requestId: string, left: () => number): Promise<Answer> {
  const address = `${doors}/subscribe?${new URLSearchParams({ requestId, key })}`;
  for (let delay = retryDelay; left() > delay; delay *= 2) {
    try {
      const response = await request(address, left(), { headers: { Accept: "text/event-stream" } }).response;
      const answer = response.ok ? read(await response.text()) : undefined;
      if (answer) return answer;
      if (!response.ok && response.status < 500) return refused(response.status);
    } catch {
      // lost: ask again
    }
    await sleep(delay);
  }
  return ["unknown"];
}

/** Reads the event of a result; undefined if the stream has none. */
function read(stream: string): Answer | undefined {
  const event = stream.match(/^data: ?(.*)$/m);
  if (!event) return undefined;
  const { status, failoverKey, failoverKind } = JSON.parse(event[1]!) as Schemas["DoorResult"];
  if (status === "SUCCESS") return ["opened"];
  if (!failoverKey) return ["failed"];
  return [failoverKind ?? "pin", failoverKey];
}

function refused(status: number): Answer {
  if (status === 410) return ["outside"];
  if (status === 409 || status === 400) return ["stale"];
  return [status === 429 ? "busy" : "server"];
}

form.addEventListener("click", (event) => {
  pressed = (event.target as Element).closest("button") ?? undefined;
});

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = (event.submitter as HTMLButtonElement | undefined) ?? pressed ?? buttons[0]!;
  if (busy) return;
  pressed = button;
  busy = true;
  button.setAttribute("aria-busy", "true");
  why.textContent = "";
  show("waiting");
  tick();
  let answer: Answer;
  try {
    answer = await press(button.value as Door);
  } catch {
    answer = ["server"]; // the answer is not readable
  }
  busy = false;
  button.removeAttribute("aria-busy");
  tick();
  show(...answer);
  if (answer[0] !== "opened") void parts?.then((loaded) => loaded.explain(button.value)).catch(() => {});
  navigator.vibrate?.(answer[0] === "opened" ? [30, 60, 30] : 200);
  document.getElementById("result")!.scrollIntoView({ block: "nearest" });
  button.focus({ preventScroll: true });
  if (answer[0] === "opened") {
    countPulse();
    if (button.value === "front") main.dataset.next = "room";
  }
  if (answer[0] === "stale") void refresh();
});

// --- start ----------------------------------------------------------------------------------------------------

if (main.querySelector('[data-result="opened"]:not([hidden])')) countPulse();
void refresh();
setInterval(tick, 1000);
const refreshVisible = () => {
  if (document.visibilityState === "visible") void refresh();
};
setInterval(refreshVisible, refreshInterval);
document.addEventListener("visibilitychange", refreshVisible);
addEventListener("online", refreshVisible);
addEventListener("offline", () => {
  main.dataset.net = "off";
});
addEventListener("load", () => {
  void navigator.serviceWorker
    ?.register("/sw.js")
    .then(() => keep(/fresh|lang/.test(location.search)))
    .catch(() => {}); // the page works without a worker
});
