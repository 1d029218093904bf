// Makes the key page live. Without it the page works too, one form post at a time.

const main = document.getElementById("key")!;
const form = main.querySelector("form")!;
const buttons = [...form.querySelectorAll("button")];
const key = location.pathname.split("/")[2]!;
const doors = `/api/door/v2/unlock`;

let skew = 0; // seconds by which the service's clock is ahead
let busy = false;

type Outcome = "waiting" | "opened" | "pin" | "silent" | "outside" | "offline";
type State = "before" | "open" | "after";

const moment = (name: string): number => Number(main.dataset[name]);
const now = (): number => Date.now() / 1000 + skew;

// --- what is shown --------------------------------------------------------------------------------------------

function show(outcome: Outcome | null, pin = ""): void {
  const digits = main.querySelector(".pin")!;
  digits.replaceChildren(
    ...[...pin].map((d) => Object.assign(document.createElement("i"), { textContent: d, ariaHidden: "true" })),
  );
  digits.setAttribute("aria-label", [...pin].join(" "));
  for (const part of main.querySelectorAll<HTMLElement>("[data-result]")) part.hidden = part.dataset.result !== outcome;
}

function tick(): void {
  const at = now();
  const state: State = at < moment("from") ? "before" : at < moment("to") ? "open" : "after";
  main.dataset.state = state;
  for (const button of buttons) button.disabled = busy || state !== "open";
  for (const left of main.querySelectorAll<HTMLElement>("[data-until]"))
    left.textContent = span(moment(left.dataset.until!) - at, left.dataset.until === "from");
  const used = (at - moment("start")) / (moment("end") - moment("start"));
  main.style.setProperty("--used", `${Math.round(100 * Math.min(1, Math.max(0, used)))}%`);
}

/** How long until a moment, in the page's language: "1시간 5분 남았어요", "in 1 h 5 min". */
function span(seconds: number, untilOpen: boolean): string {
  if (seconds <= 0 || seconds > 172_800) return "";
  const ko = document.documentElement.lang === "ko";
  const minutes = Math.ceil(seconds / 60);
  const [h, m] = [Math.floor(minutes / 60), minutes % 60];
  const text = [h ? h + (ko ? "시간" : " h") : "", m || !h ? m + (ko ? "분" : " min") : ""].join(" ").trim();
  if (untilOpen) return ko ? `${text} 뒤예요.` : `That is in ${text}.`;
  return ko ? `${text} 남았어요.` : `${text} left.`;
}

// --- the service ----------------------------------------------------------------------------------------------

/** Asks how things stand: the clock, the window (staff may have moved it), whether the branch is connected. */
async function refresh(): Promise<void> {
  try {
    const response = await fetch(`/api/v2/keys/${key}`);
    delete main.dataset.net;
    if (response.status === 400) return location.reload(); // no longer a key
    if (!response.ok) return;
    const { data } = await response.json();
    skew = Date.parse(data.serverTime) / 1000 - Date.now() / 1000;
    main.dataset.online = String(data.online);
  } catch {
    main.dataset.net = "off";
  } finally {
    tick();
  }
}

async function unlock(door: string): Promise<[Outcome, string?]> {
  const body = JSON.stringify({ branch: main.dataset.branch, doorlockType: door, key });
  const asked = await fetch(doors, { method: "POST", headers: { "Content-Type": "application/json" }, body });
  if (asked.status === 410) return ["outside"];
  if (!asked.ok) return ["silent"];
  const { data } = await asked.json();
  return result(`${doors}/subscribe?${new URLSearchParams({ requestId: data.requestId, key })}`);
}

/** Waits for the result. A phone that slept or lost its network asks again: the result is kept for a minute. */
async function result(address: string): Promise<[Outcome, string?]> {
  const giveUp = Date.now() + 30_000;
  for (;;) {
    try {
      const response = await fetch(address, { headers: { Accept: "text/event-stream" } });
      if (!response.ok) return ["silent"];
      const event = (await response.text()).match(/^data: ?(.*)$/m);
      if (!event) return ["silent"];
      const { status, failoverKey } = JSON.parse(event[1]!);
      if (status === "SUCCESS") return ["opened"];
      return failoverKey ? ["pin", failoverKey] : ["silent"];
    } catch {
      if (Date.now() > giveUp) return ["silent"];
      await new Promise((wake) => setTimeout(wake, 1000));
    }
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = event.submitter as HTMLButtonElement;
  if (busy) return;
  busy = true;
  button.setAttribute("aria-busy", "true");
  show("waiting");
  tick();
  navigator.vibrate?.(20);
  let answer: [Outcome, string?];
  try {
    answer = await unlock(button.value);
  } catch {
    answer = ["offline"];
  }
  busy = false;
  button.removeAttribute("aria-busy");
  tick();
  show(...answer);
  navigator.vibrate?.(answer[0] === "opened" ? [30, 60, 30] : 200);
  document.getElementById("result")!.scrollIntoView({ block: "nearest" });
  button.focus({ preventScroll: true });
});

// --- from now on ----------------------------------------------------------------------------------------------

void refresh();
setInterval(tick, 1000);
setInterval(() => document.visibilityState === "visible" && void refresh(), 20_000);
document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && void refresh());
addEventListener("online", () => void refresh());
addEventListener("offline", () => (main.dataset.net = "off"));
addEventListener("load", () => {
  void navigator.serviceWorker
    ?.register("/sw.js")
    .then(() => navigator.serviceWorker.ready)
    .then((worker) => worker.active?.postMessage({ keep: location.pathname }));
});

export {};
