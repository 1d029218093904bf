// One-time codes for the keypads of the branch's agent, without a press before: digits to type and a QR code to scan.

import type { Schemas } from "./core/interface";
import { call, explanation, tools } from "./key-call";

const svg = "http://www.w3.org/2000/svg";
const quietZone = 4; // modules around a QR code

/** Connects the part of the page and returns the function that shows it if a door has such a keypad. */
export function connectCodes(main: HTMLElement, key: string, now: () => number): (facts: Schemas["KeyFacts"]) => void {
  const part = main.querySelector<HTMLDetailsElement>("#codes")!;
  const [choice, panel] = [part.querySelector(".choice")!, part.querySelector<HTMLElement>(".panel")!];
  const [told, shown] = [panel.querySelector("[role=status]")!, panel.querySelector<HTMLElement>("div")!];
  const over = main.querySelector<HTMLElement>("[data-result=over] b")!.dataset.text!;
  let timer: ReturnType<typeof setInterval> | undefined;
  let giving = false; // a code is on its way; the buttons are not disabled, because a disabled element loses the focus

  const buttons = Array.from(main.querySelectorAll<HTMLButtonElement>("button[name=door]"), (door) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = door.dataset.name!;
    button.value = door.value;
    button.onclick = () => void give(button);
    return button;
  });

  /** Shows a text. Screen readers announce a code and its end, not every second between. */
  function tell(said: string, quiet = false): void {
    told.setAttribute("aria-live", quiet ? "off" : "polite");
    told.textContent = said;
  }

  async function give(button: HTMLButtonElement): Promise<void> {
    if (giving) return;
    giving = true;
    button.setAttribute("aria-busy", "true");
    panel.setAttribute("aria-busy", "true");
    panel.hidden = false; // from now on, so that nothing below moves when a code arrives or expires
    clearInterval(timer);
    shown.hidden = true;
    told.textContent = "";
    try {
      const code = await call<Schemas["OneTimeCode"]>("POST", `${key}/codes`, { door: button.value });
      tools.spell(shown.querySelector(".pin")!, code.code);
      shown.querySelector(".qr")!.replaceWith(draw(code.qr));
      shown.hidden = false;
      const until = Date.parse(code.until) / 1000;
      const tick = (): void => {
        const left = Math.ceil(until - now());
        const said = part.dataset.left!.replace("{door}", button.textContent!).replace("{s}", String(left));
        tell(left > 0 ? said : over, left > 0 && told.textContent !== "");
        if (left > 0) return;
        clearInterval(timer);
        shown.hidden = true;
      };
      tick();
      timer = setInterval(tick, 1000);
    } catch (error) {
      tell(explanation(error));
    }
    button.removeAttribute("aria-busy");
    panel.removeAttribute("aria-busy");
    giving = false;
  }

  /** Draws a QR code from its lines of 0 and 1. */
  function draw(lines: string): SVGElement {
    const rows = lines.split("\n");
    const size = rows.length + 2 * quietZone;
    const picture = document.createElementNS(svg, "svg");
    picture.setAttribute("class", "qr");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", "QR");
    picture.setAttribute("viewBox", `-${quietZone} -${quietZone} ${size} ${size}`);
    const path = picture.appendChild(document.createElementNS(svg, "path"));
    const modules = rows.flatMap((row, y) => Array.from(row, (dark, x) => (dark === "1" ? `M${x} ${y}h1v1h-1z` : "")));
    path.setAttribute("d", modules.join(""));
    return picture;
  }

  return (facts) => {
    const offered = buttons.filter((b) => facts.keypads?.[b.value as "front" | "room"] === "agent");
    const open = offered.length > 0 && main.dataset.state === "open";
    if (open && part.hidden && !facts.online) part.open = true; // the doors above will not open, so codes are needed
    part.hidden = !open;
    if (choice.childElementCount !== offered.length) choice.replaceChildren(...offered);
  };
}
