// The icons.

import { brandLogo } from "../core/brand";
import { h } from "../core/dom";

const draw = (name: string, ...paths: string[]): Element =>
  h(
    "svg",
    { class: `icon ${name}`, viewBox: "0 0 24 24", width: 24, height: 24, "aria-hidden": "true" },
    ...paths.map((d) => h("path", { d })),
  );

/** The company's logo, or the shipped mark. */
export const mark = (): Element =>
  brandLogo
    ? h("img", { class: "mark", src: brandLogo, alt: "", height: 28 })
    : h(
        "svg",
        { class: "mark", viewBox: "0 0 512 512", width: 28, height: 28, "aria-hidden": "true" },
        h("rect", { width: 512, height: 512, rx: 116, fill: "var(--blue)" }),
        h("path", { d: "M160 404V224a96 96 0 0 1 192 0v180z", fill: "#fff" }),
        h("circle", { cx: 256, cy: 240, r: 32, fill: "var(--blue)" }),
        h("rect", { x: 240, y: 244, width: 32, height: 86, rx: 10, fill: "var(--blue)" }),
      );

export const backArrow = (): Element => draw("back", "M14.5 5 7.5 12l7 7");
export const calendar = (): Element => draw("calendar", "M4.5 6.5h15v13h-15z", "M4.5 10.5h15", "M8.5 4v4", "M15.5 4v4");
export const payment = (): Element => draw("payment", "M3.5 6.5h17v11h-17z", "M3.5 10.5h17", "M7 14.5h3");
export const key = (): Element =>
  draw("key", "M8 16.5a4.5 4.5 0 1 1 4.2-6.1L20.5 10.5v3h-2.5v2.5h-3v-2.5h-2.8A4.5 4.5 0 0 1 8 16.5z", "M7.5 12v.1");
export const chevron = (): Element => draw("chevron", "m9.5 5 7 7-7 7");
export const check = (): Element => draw("check", "m5 12.5 4.5 4.5L19 7.5");
export const clock = (): Element => draw("clock", "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M12 7v5.2l3.4 2");
export const cross = (): Element => draw("cross", "m6 6 12 12", "M18 6 6 18");
export const question = (): Element => draw("question", "M9 9a3 3 0 1 1 4.6 2.5c-1 .7-1.6 1.3-1.6 2.5", "M12 17.6v.1");
export const warning = (): Element => draw("warning", "M12 4 2.8 20h18.4z", "M12 10v4.5", "M12 17.3v.1");

/** A round sign at the top of a screen with a single message. */
export const sign = (icon: Element, kind: "good" | "wait" | "bad"): Element =>
  h("div", { class: `sign ${kind}`, "aria-hidden": "true" }, icon);
