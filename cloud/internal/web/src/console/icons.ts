// Icons drawn for this project: 24 by 24, one stroke.

import { h } from "../core/dom";

const paths = {
  day: ["M4 5h16v15H4z", "M4 10h16", "M9 5V3M15 5V3", "M8 14h4"],
  doors: ["M6 21V4a1 1 0 0 1 1-1h10a1 1 0 0 1 1 1v17", "M3 21h18", "M14 12h.01"],
  rooms: ["M3 11h18v8M3 19V6", "M3 16h18", "M7 11V8h5v3"],
  climate: ["M10 14V5a2 2 0 1 1 4 0v9a4 4 0 1 1-4 0z", "M12 9v7"],
  devices: ["M6 7h12v10H6z", "M9 7V4M15 7V4M9 20v-3M15 20v-3M6 10H3M6 14H3M21 10h-3M21 14h-3"],
  messages: ["M4 5h16v11H9l-5 4z", "M8 9h8M8 12h5"],
  money: ["M3 6h18v12H3z", "M12 15a3 3 0 1 0 0-6 3 3 0 0 0 0 6z", "M6 9h.01M18 15h.01"],
  audit: ["M6 3h9l4 4v14H6z", "M9 12h6M9 16h6M9 8h3"],
  settings: [
    "M4 7h10M18 7h2M4 17h2M10 17h10",
    "M16 9a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
    "M8 19a2 2 0 1 0 0-4 2 2 0 0 0 0 4z",
  ],
  people: [
    "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7z",
    "M2.5 20c.6-4 3-6 6.500-6s5.900 2 6.500 6",
    "M16 4.500a3.500 3.500 0 0 1 0 6.500M18 14.500c2 .8 3.200 2.700 3.500 5.500",
  ],
  proof: ["M12 3l8 3v6c0 4.500-3 7.500-8 9-5-1.500-8-4.500-8-9V6z", "M8.500 12l2.500 2.500 4.500-5"],
  company: ["M4 21V9l8-5 8 5v12", "M3 21h18", "M10 21v-6h4v6"],
  rollout: ["M12 19V6", "M6.500 11.500L12 6l5.500 5.500", "M5 21h14M5 3h14"],
  integrations: ["M9 7V3M15 7V3", "M7 7h10v4a5 5 0 0 1-10 0z", "M12 16v5"],
  account: ["M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8z", "M4.500 20.500c.8-4 3.500-6 7.500-6s6.700 2 7.500 6"],
  overview: ["M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z"],
  bell: ["M6 16V11a6 6 0 0 1 12 0v5l2 2H4z", "M10 21h4"],
  reports: ["M4 20V10M10 20V4M16 20v-7M21 20H3"],
  settlement: ["M6 3h12v18l-3-2-3 2-3-2-3 2z", "M9 8h6M9 12h6"],
  more: ["M5 12h.01M12 12h.01M19 12h.01"],
  left: ["M15 5l-7 7 7 7"],
  right: ["M9 5l7 7-7 7"],
  plus: ["M12 5v14M5 12h14"],
  search: ["M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14z", "M16.500 16.500L21 21"],
} satisfies Record<string, string[]>;

export type Icon = keyof typeof paths;

export const icon = (name: Icon): Element =>
  h(
    "svg",
    { class: "icon", viewBox: "0 0 24 24", width: 20, height: 20, "aria-hidden": "true" },
    ...paths[name].map((d) => h("path", { d })),
  );
