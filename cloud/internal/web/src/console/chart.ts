// A line chart over time: axis, band, one line. The same values are in a table beside it.

import { h } from "../core/dom";
import { onCleanup } from "../core/signal";

export interface Point {
  at: number; // ms since 1970
  value: number;
}

export interface ChartOptions {
  label: string;
  unit: string;
  from: number;
  to: number;
  /** The range of acceptable values. */
  band?: [low: number, high: number];
  time: (at: number) => string;
}

const height = 180;
const margin = { left: 44, right: 8, top: 10, bottom: 24 };
const namespace = "http://www.w3.org/2000/svg";

function draw(tag: string, attributes: Record<string, string | number>, text?: string): SVGElement {
  const element = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

/** Returns a step of 1, 2 or 5 times a power of ten, so that about four steps fit. */
function ticks(low: number, high: number): number[] {
  const rough = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough)!;
  const first = Math.ceil(low / step) * step;
  return Array.from({ length: Math.floor((high - first) / step + 1e-9) + 1 }, (_, i) =>
    Number((first + i * step).toFixed(6)),
  );
}

/** Draws the chart at its displayed width, and again when the width changes, so that its text keeps its size. */
export function chart(points: readonly Point[], options: ChartOptions): Element {
  const box = h("div", { class: "chartbox" });
  let drawn = 0;
  const observer = new ResizeObserver(() => {
    const width = Math.round(box.clientWidth);
    if (width === drawn || width === 0) return;
    drawn = width;
    box.replaceChildren(drawing(points, width, options));
  });
  observer.observe(box);
  onCleanup(() => observer.disconnect());
  return box;
}

const perLabel = 110; // px

function drawing(
  points: readonly Point[],
  width: number,
  { label, unit, from, to, band, time }: ChartOptions,
): Element {
  const values = points.map((p) => p.value);
  let [low, high] = [Math.min(...values, ...(band ?? [])), Math.max(...values, ...(band ?? []))];
  const room = Math.max((high - low) * 0.1, 0.5);
  [low, high] = [low - room, high + room];
  const x = (at: number) => margin.left + ((at - from) / (to - from)) * (width - margin.left - margin.right);
  const y = (value: number) => margin.top + ((high - value) / (high - low)) * (height - margin.top - margin.bottom);
  const svg = draw("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  if (band)
    svg.append(
      draw("rect", {
        class: "band",
        x: margin.left,
        width: width - margin.left - margin.right,
        y: y(band[1]),
        height: y(band[0]) - y(band[1]),
      }),
    );
  for (const value of ticks(low, high)) {
    svg.append(
      draw("line", { class: "gridline", x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value) }),
    );
    svg.append(
      draw("text", { class: "tick", x: margin.left - 6, y: y(value) + 4, "text-anchor": "end" }, `${value}${unit}`),
    );
  }
  const parts = width > 5 * perLabel ? 4 : 2;
  for (let i = 0; i <= parts; i++) {
    const at = from + ((to - from) * i) / parts;
    svg.append(
      draw(
        "text",
        { class: "tick", x: x(at), y: height - 6, "text-anchor": i === 0 ? "start" : i === parts ? "end" : "middle" },
        time(at),
      ),
    );
  }
  svg.append(draw("path", { class: "line", d: line(points, x, y, (to - from) / 40) }));
  return svg;
}

/** Draws the line with a gap where readings are missing. A single reading becomes a dot. */
function line(points: readonly Point[], x: (at: number) => number, y: (v: number) => number, gap: number): string {
  return points
    .map((p, i) => {
      const place = `${x(p.at).toFixed(1)} ${y(p.value).toFixed(1)}`;
      return i === 0 || p.at - points[i - 1]!.at > gap ? `M${place}h0` : `L${place}`;
    })
    .join("");
}
