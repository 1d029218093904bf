// Small drawing functions: DOM and SVG without a library.

const NS = "http://www.w3.org/2000/svg";

/** h("p.hint", {title: "x"}, "text", child): an element. Functions are listeners. */
export function h(selector, attributes = {}, ...children) {
  const [tag, ...classes] = selector.split(".");
  const el = document.createElement(tag || "div");
  if (classes.length) el.className = classes.join(" ");
  return fill(el, attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(NS, tag), attributes, children);
}

function fill(el, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") el.addEventListener(name, value);
    else if (value === true) el.setAttribute(name, "");
    else if (value !== false && value != null) el.setAttribute(name, value);
  }
  el.append(...children.filter((c) => c != null));
  return el;
}

/** A door seen from the corridor: frame, leaf on its hinge, bolt, relay lamp. CSS moves the parts. */
export function door(label) {
  return svg(
    "svg",
    { viewBox: "0 0 64 84", class: "door", role: "img", "aria-label": label },
    svg("rect", { x: 8, y: 4, width: 44, height: 76, class: "frame" }),
    svg("rect", { x: 11, y: 7, width: 38, height: 73, class: "gap" }),
    svg(
      "g",
      { class: "leaf" },
      svg("rect", { x: 11, y: 7, width: 38, height: 73, class: "panel" }),
      svg("rect", { x: 17, y: 14, width: 26, height: 24, class: "window" }),
      svg("circle", { cx: 43, cy: 47, r: 2.2, class: "handle" }),
    ),
    svg("rect", { x: 47, y: 44, width: 7, height: 5, rx: 1.5, class: "bolt" }),
    svg("circle", { cx: 58, cy: 12, r: 4, class: "lamp" }),
  );
}

/** The envelope of an infrared signal, marks up, to scale in time, and its axis. */
export function waveform(durations) {
  const width = 1000,
    high = 8,
    low = 52;
  const total = durations.reduce((a, b) => a + b, 0) || 1;
  let x = 0,
    d = `M0 ${low}`;
  durations.forEach((length, i) => {
    const y = i % 2 === 0 ? high : low;
    d += `V${y}`;
    x += (length / total) * width;
    d += `H${x.toFixed(2)}`;
  });
  d += `V${low}H${width}`;
  const ms = total / 1000;
  const step = [1, 2, 5, 10, 20, 50, 100, 200].find((s) => ms / s <= 9) ?? 500;
  const grid = [],
    axis = h("div.axis", { "aria-hidden": "true" });
  for (let t = 0; t <= ms; t += step) {
    const share = t / ms;
    grid.push(svg("line", { x1: share * width, x2: share * width, y1: 0, y2: 60, class: "grid" }));
    if (share > 0.96) continue; // its label would stick out
    const label = h("span", {}, `${t} ms`);
    label.style.left = `${share * 100}%`;
    axis.append(label);
  }
  return [
    svg(
      "svg",
      {
        viewBox: `0 0 ${width} 60`,
        class: "waveform",
        preserveAspectRatio: "none",
        role: "img",
        "aria-label": `${ms.toFixed(1)} ms`,
      },
      ...grid,
      svg("path", { d, class: "trace" }),
    ),
    axis,
  ];
}

/** A logic analyser: one row a relay, the last `span` ms, now at the right. */
export class Scope {
  constructor(host, span) {
    this.host = host;
    this.span = span;
    this.rows = new Map();
  }

  build(doors, nameOf) {
    const label = 92,
      width = 1000,
      rowHeight = 24;
    this.left = label;
    this.width = width - label - 8;
    const height = doors.length * rowHeight + 20;
    this.rows.clear();
    const body = doors.map((d, i) => {
      const top = i * rowHeight;
      const path = svg("path", { class: "trace" });
      this.rows.set(d.device, { path, top });
      return svg(
        "g",
        {},
        svg("text", { x: 0, y: top + 17, class: "name" }, nameOf(d.device)),
        svg("text", { x: label - 10, y: top + 17, class: "gpio", "text-anchor": "end" }, String(d.pin)),
        svg("line", { x1: label, x2: width, y1: top + 21, y2: top + 21, class: "base" }),
        path,
      );
    });
    const ticks = [];
    for (let s = 0; s <= this.span; s += 10_000) {
      const x = this.left + this.width * (1 - s / this.span);
      ticks.push(
        svg("line", { x1: x, x2: x, y1: 0, y2: height - 18, class: "grid" }),
        svg(
          "text",
          { x, y: height - 4, class: "tick", "text-anchor": s === 0 ? "end" : "middle" },
          s === 0 ? "0 s" : `−${s / 1000}`,
        ),
      );
    }
    this.host.replaceChildren(
      svg(
        "svg",
        { viewBox: `0 0 ${width} ${height}`, class: "scope", role: "img", "aria-label": "relays" },
        ...ticks,
        ...body,
      ),
    );
  }

  /** actuations: [{device, start, end}] in ms, end undefined while energised. */
  draw(actuations, now) {
    const x = (t) => this.left + this.width * Math.max(0, Math.min(1, 1 - (now - t) / this.span));
    for (const [device, { path, top }] of this.rows) {
      let d = `M${this.left} ${top + 20}`;
      for (const a of actuations) {
        const end = a.end ?? now;
        if (a.device !== device || end < now - this.span) continue;
        d += `H${x(a.start).toFixed(1)}V${top + 5}H${Math.max(x(end), x(a.start) + 1).toFixed(1)}V${top + 20}`;
      }
      path.setAttribute("d", `${d}H${this.left + this.width}`);
    }
  }
}

/** A line of recent values. */
export function sparkline(values) {
  const min = Math.min(...values),
    max = Math.max(...values),
    span = Math.max(max - min, 0.4);
  const points = values.map(
    (v, i) =>
      `${((i / Math.max(values.length - 1, 1)) * 100).toFixed(1)},${(26 - ((v - (min + max - span) / 2) / span) * 22).toFixed(1)}`,
  );
  return svg(
    "svg",
    { viewBox: "0 0 100 30", class: "spark", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("polyline", { points: points.join(" ") }),
  );
}
