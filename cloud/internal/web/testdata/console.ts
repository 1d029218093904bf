// Tests of the console's screens, run in a real browser. The page answers their requests itself.

import { dateOf, inZone } from "../src/booking/time";
import { accountScreen } from "../src/console/account";
import { type Alert, alertList } from "../src/console/alerts";
import { cleaningScreen } from "../src/console/cleaning";
import { closuresScreen } from "../src/console/closures";
import { ownContacts } from "../src/console/contacts";
import { type Entry, history } from "../src/console/day/history";
import { deskScreen } from "../src/console/desk";
import { openDoor } from "../src/console/door";
import { doorsScreen } from "../src/console/doors";
import { frame } from "../src/console/frame";
import { guestScreen } from "../src/console/guest";
import { handoverButton, noteForm } from "../src/console/handover";
import { loginScreen } from "../src/console/login";
import { moneyScreen } from "../src/console/money";
import { overviewScreen } from "../src/console/overview";
import { pages } from "../src/console/pages";
import { dialog } from "../src/console/parts";
import { peopleScreen } from "../src/console/people";
import { roomsScreen } from "../src/console/rooms";
import { openSearch } from "../src/console/search";
import { type Branch, branches, identify, me, noticeEnd, type Role } from "../src/console/session";
import { dateText, localText, speakIn } from "../src/console/text";
import { weekScreen } from "../src/console/week";
import { api, hearRefusals } from "../src/core/api";
import { noteServerTime } from "../src/core/clock";
import { type Child, h, mount } from "../src/core/dom";
import type { Schemas } from "../src/core/interface";
import { route } from "../src/core/router";
import { signal } from "../src/core/signal";
import { tabStore } from "../src/core/storage";
import { equal, report, test } from "./check";

/** A request that the service rejects. */
class Refusal {
  constructor(
    readonly status: number,
    readonly errorType: string,
    readonly message: string,
  ) {}
}

interface Asked {
  query: URLSearchParams;
  body: Record<string, unknown>;
}

/** The answers of the service by method and path. An answer that throws is a request without a network. */
type Answers = Record<string, (asked: Asked) => unknown>;

let answers: Answers = {};

let asked: string[] = []; // method, path and query of each request

const network = window.fetch;

window.fetch = async (input, init) => {
  const url = new URL(String(input), location.href);
  if (!url.pathname.startsWith("/api/")) return network(input, init);
  const line = `${init?.method ?? "GET"} ${url.pathname.slice("/api".length)}`;
  asked.push(line + url.search);
  const answer = answers[line];
  if (!answer) throw new TypeError(`no answer to ${line}`);
  const body = init?.body ? (JSON.parse(String(init.body)) as Record<string, unknown>) : {};
  const data = await answer({ query: url.searchParams, body });
  return data instanceof Refusal
    ? Response.json({ ...data, status: "error", errorCode: null, data: null }, { status: data.status })
    : Response.json({ status: "success", data });
};

let sockets: WebSocket[] = [];

window.WebSocket = class {
  onopen?: () => void;
  constructor() {
    sockets.push(this as unknown as WebSocket);
  }
  close(): void {}
} as unknown as typeof WebSocket;

const branchOf = (branch: string, nameKo: string) => ({ branch, nameKo, nameEn: "", timeZone: "Asia/Seoul" }) as Branch;

const gangnam = branchOf("gangnam", "강남점");

/** Logs an administrator in, to a service that gives these answers. */
function enter(role: Role, list: Branch[], given: Answers): void {
  me.set({ adminLoginId: role, role, branchList: list.map((b) => b.branch) });
  branches.set(list);
  answers = given;
  asked = [];
  sockets = [];
  tabStore.clear();
}

const turn = () => new Promise((done) => setTimeout(done, 5));

async function until(what: string, holds: () => unknown): Promise<void> {
  for (let n = 0; !holds(); n++) {
    const page = [...document.querySelectorAll("main, dialog")].map((e) => e.textContent);
    if (n > 600) throw new Error(`never: ${what}. The page: ${page.join(" ").slice(0, 1000)}`);
    await turn();
  }
}

/** Shows a view while test runs. */
async function showing(view: () => Child, test: (main: HTMLElement) => Promise<void>): Promise<void> {
  const main = document.body.appendChild(h("main", null));
  const dispose = mount(main, view);
  try {
    await test(main);
  } finally {
    dispose();
    main.remove();
    for (const left of document.querySelectorAll("dialog, .toast")) left.remove();
  }
}

const named = (text: string): HTMLButtonElement => {
  const found = [...document.querySelectorAll("button")].filter((b) => (b.ariaLabel ?? b.textContent.trim()) === text);
  if (found.length !== 1) throw new Error(`${found.length} buttons ${text}`);
  return found[0]!;
};

function type(label: string, text: string): void {
  const found = [...document.querySelectorAll("label")].find((l) => l.textContent.trim() === label)?.control;
  if (!found) throw new Error(`no field ${label}`);
  (found as HTMLInputElement).value = text;
  found.dispatchEvent(new Event("input"));
}

/** The user returns to the tab: the screen reads again what it reads from time to time. */
const returnToTab = () => document.dispatchEvent(new Event("visibilitychange"));

const toasts = () => [...document.querySelectorAll<HTMLElement>(".toast")].map((e) => e.textContent).join("\n");

interface Closure {
  branches: string[];
  preview?: boolean;
  undo?: boolean;
}

/** Closes branches as the service does: fifty in one transaction. met are the branches with a reservation. */
function closing(closed: Set<string>, fails: (c: Closure, branch: string) => Refusal | null, met: () => string[]) {
  return ({ body }: Asked): unknown => {
    const c = body as unknown as Closure;
    const done = { conflicts: [] as unknown[], applied: !c.preview, closed: [] as unknown[] };
    for (let i = 0; i < c.branches.length; i += 50) {
      const group = c.branches.slice(i, i + 50);
      const refusal = group.map((code) => fails(c, code)).find(Boolean);
      if (refusal) return refusal;
      for (const branch of group) {
        if (c.preview !== true) closed[c.undo ? "delete" : "add"](branch);
        if (c.preview !== true) done.closed.push({ branch, revision: 1, kept: [] });
        if (!c.undo && met().includes(branch))
          done.conflicts.push({
            ...{ branch, type: "PAID", status: "DONE", statusDescription: "결제", room: "1", name: `손님 ${branch}` },
            ...{ mobileNum: "", startTime: "2027/01/01 10:00", endTime: "2027/01/01 11:00", orderId: "" },
          });
      }
    }
    return done;
  };
}

async function closeAll(): Promise<void> {
  named("모두 선택").click();
  type("시작일", "2027-01-01");
  type("종료일", "2027-01-01");
  type("사유", "점검");
  named("겹치는 예약 확인").click();
  await until("the preview", () => !named("휴무 등록").disabled);
  named("휴무 등록").click();
}

test("a closure that fails after some branches says which remain, and its undo which it left closed", async () => {
  const closed = new Set<string>();
  const fails = (c: Closure, branch: string) => {
    if (!c.preview && !c.undo && branch === "b101") return new Refusal(503, "InternalServerError", "나중에");
    if (c.undo && branch === "b60") return new Refusal(409, "SettingConflictException", "그 사이에 변경되었습니다.");
    return null;
  };
  const list = Array.from({ length: 120 }, (_, i) => branchOf(`b${i + 1}`, `지점${i + 1}`));
  enter("hq", list, { "POST /v2/admin/closures": closing(closed, fails, () => []) });
  await showing(closuresScreen, async (main) => {
    await closeAll();
    await until("the failure", () => main.querySelector(".problem")?.textContent);
    equal(closed.size, 100);
    const shown = () => main.querySelector<HTMLElement>(".chosen")!.textContent;
    equal(
      [shown(), main.querySelector(".problem")!.textContent!.includes("20곳")],
      ["20곳 선택", true],
      "what remains:",
    );
    named("실행 취소").click();
    await until("the outcome of the undo", () => main.querySelector("[role=alert].notice"));
    equal([...closed], ["b60"]);
    equal(
      main.querySelector<HTMLElement>("[role=alert].notice")!.textContent.includes("지점60"),
      true,
      "the one left:",
    );
    equal(toasts().includes("되돌렸어요"), false, "the undo is not complete");
  });
});

test("the reservations that a closure has met are shown after it, those since the preview too", async () => {
  const list = [branchOf("b1", "지점1"), branchOf("b2", "지점2")];
  const met = () => (asked.length === 1 ? ["b1"] : ["b1", "b2"]);
  enter("hq", list, { "POST /v2/admin/closures": closing(new Set(), () => null, met) });
  await showing(closuresScreen, async (main) => {
    await closeAll();
    await until("the closure", () => toasts().includes("휴무를 등록했어요"));
    equal([main.textContent.includes("손님 b1"), main.textContent.includes("손님 b2")], [true, true]);
  });
});

let enabled = true;

const dayOf = (date: string) => ({
  date,
  status: "available",
  reason: null,
  rooms: [{ roomNo: "3", machine: "침대", grade: null, enabled, pricing: { min10: null, min30: null, min60: 9000 } }],
  ...{ reservations: [], canceled: [], conflicts: [], closed: [], breaks: [], quarantine: [] },
});

const timeline = ({ query }: Asked) => dayOf(query.get("date")!);

const doors = () => ({ online: true, seenAt: null, doors: [], events: [], passes: [] });

test("the screens of rooms, doors and the week show the next day after midnight", async () => {
  const today = () => dateOf(inZone("Asia/Seoul"));
  const screens: [string, () => Child][] = [
    ["rooms", () => roomsScreen(gangnam)],
    ["doors", () => doorsScreen(gangnam)],
    ["week", () => weekScreen(gangnam, {})],
  ];
  for (const [name, screen] of screens) {
    enter("front-desk", [gangnam], {
      "GET /v2/admin/branches/gangnam/timeline": timeline,
      "GET /v2/admin/branches/gangnam/doors": doors,
    });
    const main = document.body.appendChild(h("main", null));
    const end = route(
      main,
      [{ path: location.pathname, view: screen }],
      () => null,
      (view) => view(),
      () => "failed",
    );
    try {
      const asks = (date: string) => asked.some((line) => line.endsWith(`timeline?date=${date}`));
      await until(`${name}: today`, () => asks(today()));
      asked = [];
      noteServerTime(new Date(Date.now() + 86_400_000).toUTCString());
      await until(`${name}: the next day`, () => asks(today()));
      if (name === "week")
        await until("the mark of today", () => main.querySelector(`[aria-current=date][href$="${today()}"]`));
    } finally {
      noteServerTime(new Date().toUTCString());
      end();
      main.remove();
    }
  }
});

test("the week reads all of its days again, although the connection reports one", async () => {
  enter("viewer", [gangnam], { "GET /v2/admin/branches/gangnam/timeline": timeline });
  await showing(
    () => weekScreen(gangnam, { date: "2027-03-10" }),
    async (main) => {
      sockets[0]!.onopen!(new Event("open"));
      await until("the week", () => main.querySelector("table"));
      await until("the fetch of a new connection", () => asked.length >= 14);
      asked = [];
      returnToTab();
      await until("the other days", () => asked.some((line) => line.endsWith("timeline?date=2027-03-14")));
    },
  );
});

test("figures and notes that no event announces are read again, with a connection too", async () => {
  const screens: [line: string, view: () => Child][] = [
    ["GET /v2/admin/money-desk", deskScreen],
    ["GET /v2/admin/overview", overviewScreen],
    ["GET /v2/admin/overview", () => frame("gangnam", "rooms", () => null)],
    ["GET /v2/admin/branches/gangnam/handover", () => handoverButton(gangnam)],
  ];
  for (const [line, view] of screens) {
    enter("hq", [gangnam], {
      "GET /v2/admin/money-desk": () => ({ items: [] }),
      "GET /v2/admin/alerts": () => ({ alerts: [], next: null }),
      "GET /v2/admin/overview": () => ({ branches: [], next: null }),
      "GET /v2/admin/branches/gangnam/devices": () => ({ online: true, seenAt: null }),
      "GET /v2/admin/branches/gangnam/handover": () => ({ notes: [] }),
    });
    await showing(view, async () => {
      const times = () => asked.filter((a) => a.startsWith(line)).length;
      const before = sockets.length ? 2 : 1; // once more for the new connection
      for (const socket of sockets) socket.onopen!(new Event("open"));
      await until(`${line}: the screen`, () => times() === before);
      returnToTab();
      await until(`${line}: another reading`, () => times() > before);
    });
  }
});

test("the focus stays at a room's switch that was pressed", async () => {
  enabled = true;
  enter("manager", [gangnam], {
    "GET /v2/admin/branches/gangnam/timeline": timeline,
    "PATCH /admin/machines/gangnam/3": ({ body }) => {
      enabled = body.enabled as boolean;
      return null;
    },
  });
  await showing(
    () => roomsScreen(gangnam),
    async (main) => {
      const knob = () => main.querySelector<HTMLElement>("[role=switch]");
      await until("the room", knob);
      knob()!.focus();
      knob()!.click();
      await until("the room is off", () => knob()?.ariaChecked === "false" && toasts());
      equal(document.activeElement === knob(), true, "the switch has the focus:");
    },
  );
});

test("the focus stays in the dialog of a door, whatever its result, and moves on to the code of a second step", async () => {
  let answer: (data: unknown) => void = () => {};
  enter("front-desk", [gangnam], {
    "POST /admin/door/v2/unlock/gangnam/front": () => new Promise((done) => (answer = done)),
    "GET /v2/admin/account": () => ({ totp: false, passkeys: [], passkeysAvailable: false, sessions: [] }),
    "POST /v2/admin/account/totp": () => ({ secret: "s", url: "u", qr: "1" }),
  });
  const streams: EventSource[] = [];
  const real = window.EventSource;
  window.EventSource = class extends EventTarget {
    constructor() {
      super();
      streams.push(this as unknown as EventSource);
    }
    close(): void {}
  } as unknown as typeof EventSource;
  const focus = () => document.activeElement!.closest("button")?.textContent;
  try {
    await showing(
      () => null,
      async () => {
        openDoor(gangnam, "front");
        const press = document.querySelector<HTMLElement>("dialog .primary")!;
        press.focus();
        press.click();
        await until("the request", () => asked.length === 1);
        equal(focus(), "문 열기", "while the door is asked:");
        answer(new Refusal(400, "IllegalArguemntError", ""));
        await until("the refusal", () => document.querySelector("dialog .result.bad"));
        equal(focus(), "다시 열기", "after a refusal:");
        press.click();
        await until("another request", () => asked.length === 2);
        answer({ requestId: "1" });
        await until("the stream", () => streams.length);
        const data = JSON.stringify({ status: "SUCCESS", device: "front", failoverKey: null });
        streams[0]!.dispatchEvent(new MessageEvent("door-result", { data }));
        await until("the result", () => document.querySelector("dialog .result.good"));
        equal(focus(), "닫기", "after the door has opened:");
      },
    );
  } finally {
    window.EventSource = real;
  }
  await showing(accountScreen, async (main) => {
    await until("the account", () => main.querySelector("form.inline"));
    const form = main.querySelector<HTMLFormElement>("form.inline")!;
    const password = form.querySelector("input")!;
    password.value = "secret";
    password.dispatchEvent(new Event("input"));
    password.focus();
    form.requestSubmit();
    await until("the secret", () => main.querySelector(".qr"));
    await turn();
    equal((document.activeElement as HTMLInputElement).autocomplete, "one-time-code");
  });
});

test("a closed dialog returns the focus to the button that has replaced the one that opened it", async () => {
  const names = signal(["one", "two"]);
  let opened: { close: () => void } | undefined;
  const open = () => {
    opened = dialog("title", () => "text");
  };
  const row = (name: string) =>
    h("tr", null, h("td", null, name, h("button", { "aria-label": name.split(" ")[0]!, onclick: open }, "edit")));
  await showing(
    () => h("table", null, () => h("tbody", null, names().map(row))),
    async (main) => {
      for (const [name, change] of [
        ["not replaced", () => {}],
        ["replaced in the meantime", () => names.set(["one changed", "two"])],
      ] as const) {
        main.querySelector("button")!.focus();
        main.querySelector("button")!.click();
        change();
        opened!.close();
        await until(`${name}: the dialog is closed`, () => !document.querySelector("dialog"));
        equal(document.activeElement?.ariaLabel, "one", name);
      }
    },
  );
});

test("the search of the first page finds a branch beyond its first fifty", async () => {
  const list = Array.from({ length: 430 }, (_, i) => branchOf(`b${i + 1}`, `지점${i + 1}`));
  const item = (b: Branch): Schemas["BranchOverview"] => ({
    ...{ branch: b.branch, name: b.nameKo, nameEn: "", online: true, since: null, openAlerts: 0, worstAlert: null },
    ...{ occupiedRooms: 0, rooms: 1, nextArrival: null, todayAmount: 0, unlockSuccess7d: null },
  });
  enter("hq", list, {
    "GET /v2/admin/alerts": () => ({ alerts: [], next: null }),
    "GET /v2/admin/overview": ({ query }) => {
      const [from, limit] = [Number(query.get("cursor") ?? 0), Number(query.get("limit"))];
      if (limit > 200) return new Refusal(400, "IllegalArguemntError", "limit");
      const next = from + limit < list.length ? String(from + limit) : null;
      return { branches: list.slice(from, from + limit).map(item), next };
    },
  });
  await showing(overviewScreen, async (main) => {
    const cards = () => [...main.querySelectorAll<HTMLElement>(".branchcard b")].map((b) => b.textContent);
    await until("the first page", () => cards().length === 50);
    const box = main.querySelector<HTMLInputElement>("input[type=search]")!;
    box.value = "지점417";
    box.dispatchEvent(new Event("input"));
    await until("the branch", () => cards().length === 1);
    equal(cards(), ["지점417"]);
  });
});

test("a page of a list that was asked for stays, whenever an earlier reload is answered", async () => {
  const waiting: { before: string; answer: (ids: string[]) => void }[] = [];
  const list = pages<{ id: string }>(
    (before) => new Promise((done) => waiting.push({ before, answer: (ids) => done(ids.map((id) => ({ id }))) })),
    2,
  );
  await showing(
    () => list.view((rows) => h("b", null, rows.map((row) => row.id).join(" "))),
    async (main) => {
      const shown = () => main.querySelector("b")?.textContent;
      waiting.shift()!.answer(["3", "2"]);
      await until("the first page", () => shown() === "3 2");
      void list.reload();
      named("더 보기").click();
      equal(
        waiting.map((w) => w.before),
        ["", "2"],
      );
      waiting[1]!.answer(["1"]);
      await until("the next page", () => shown() === "3 2 1");
      waiting[0]!.answer(["3", "2"]);
      await turn();
      equal(shown(), "3 2 1", "after the answer of the reload:");
    },
  );
});

test("a note is added once, although Enter is held down on a slow network", async () => {
  let answer: (data: null) => void = () => {};
  enter("front-desk", [gangnam], {
    "POST /v2/admin/branches/gangnam/handover": () => new Promise((done) => (answer = done)),
  });
  let read = 0;
  await showing(
    () => noteForm("/v2/admin/branches/gangnam/handover", async () => void read++),
    async (main) => {
      const form = main.querySelector("form")!;
      type("새 메모", "전구 교체");
      for (let n = 0; n < 3; n++) form.requestSubmit();
      await until("the request", () => asked.length > 0);
      equal(asked.length, 1);
      answer(null);
      await until("the answer", () => read === 1);
      type("새 메모", "수건");
      form.requestSubmit();
      await until("another note", () => asked.length === 2);
    },
  );
});

test("the photo of a cleaner survives a new reservation, and one that no browser reads is sent", async () => {
  const room = { branch: "gangnam", roomNo: "2", machine: "침대", endedAt: new Date().toISOString() };
  let nextArrival: string | null = null;
  let sent = "";
  enter("cleaner", [gangnam], {
    "GET /v2/admin/cleaning": () => ({ rooms: [{ ...room, nextArrival }] }),
    "POST /v2/admin/cleaning/gangnam/2/done": ({ body }) => {
      sent = String(body.data);
      return new Refusal(400, "IllegalArguemntError", "사진을 읽을 수 없습니다.");
    },
  });
  await showing(cleaningScreen, async (main) => {
    await until("the room", () => main.querySelector("input[type=file]"));
    const chosen = new DataTransfer();
    chosen.items.add(new File(["no picture"], "room.heic"));
    const box = main.querySelector<HTMLInputElement>("input[type=file]")!;
    box.files = chosen.files;
    box.dispatchEvent(new Event("change"));
    equal(main.textContent.includes("사진을 골랐어요"), true);
    nextArrival = new Date(Date.now() + 7_200_000).toISOString();
    returnToTab();
    await until("the next arrival", () => main.textContent.includes("다음 고객"));
    equal(main.textContent.includes("사진을 골랐어요"), true, "after a new reservation, the photo is chosen:");
    named("2번 룸 청소 완료").click();
    await until("the refusal", () => main.querySelector(".problem")?.textContent);
    equal([atob(sent), main.querySelector(".problem")!.textContent], ["no picture", "사진을 읽을 수 없습니다."]);
  });
});

test("hours of a contact with one end are not saved as all day", async () => {
  const contact = {
    name: "김당직",
    channel: "sms",
    to: "01011112222",
    kinds: [],
    hours: null,
    escalateAfterMinutes: 0,
  };
  let saved: Schemas["AlertContact"][] = [];
  enter("hq", [gangnam], {
    "GET /v2/admin/alert-contacts": () => ({ alertContacts: [contact] }),
    "PUT /v2/admin/alert-contacts": ({ body }) => {
      saved = body.alertContacts as typeof saved;
      return new Refusal(400, "IllegalArguemntError", "시간");
    },
  });
  await showing(ownContacts, async (main) => {
    await until("the contact", () => main.querySelector("fieldset"));
    const [from] = main.querySelectorAll<HTMLInputElement>("input[type=time]");
    from!.value = "22:00";
    from!.dispatchEvent(new Event("input"));
    const save = [...main.querySelectorAll("button")].find((b) => b.classList.contains("primary"))!;
    save.click();
    await until("the request", () => saved.length);
    equal(saved[0]!.hours, { from: "22:00", to: "" });
  });
});

test("an alert about a calendar says so and leads to the channels", async () => {
  const since = new Date().toISOString();
  const rest = { notifiedAt: null, acknowledgedBy: null, acknowledgedAt: null, endedAt: null };
  const alert: Alert = { id: "1", kind: "discrepancy", branch: "gangnam", subject: "calendar:12", since, ...rest };
  enter("hq", [gangnam], {});
  await showing(
    () => alertList(signal([alert]), () => {}),
    async (main) => {
      equal(
        main.querySelector(".what")!.textContent,
        "강남점 외부 예약 채널의 캘린더를 읽을 수 없어요. 지점 설정에서 확인해 주세요.",
      );
      equal(main.querySelector("a")!.getAttribute("href"), "/console/gangnam/settings");
    },
  );
});

test("the history names the date of what was not today, and of a move to another day", () => {
  const zone = "Asia/Seoul";
  const now = inZone(zone);
  const at = (ms: number) => new Date(Date.now() + ms).toISOString();
  const entry = (kind: string, when: string, detail: object) =>
    ({ kind, at: when, by: null, detail }) as unknown as Entry;
  const hour = 3_600_000;
  const sinceMidnight = (now % 1440) * 60_000;
  const moved = (toStart: string, toEnd: string) =>
    entry("move", at(0), {
      ...{ fromRoom: 1, fromStart: "2027-01-04T01:00:00Z", fromEnd: "2027-01-04T02:00:00Z", toRoom: 2, toStart, toEnd },
      reason: null,
    });
  const times = (entries: Entry[]) =>
    [...history(gangnam, entries, null).querySelectorAll("time")].map((e) => e.textContent);
  const [yesterday] = times([entry("canceled", at(-sinceMidnight - hour), {})]);
  equal(/^\d\d:\d\d:\d\d$/.test(yesterday!), false, `an entry of an hour before midnight: ${yesterday}`);
  const [today] = times([entry("canceled", at(-1), {})]);
  equal(/^\d\d:\d\d:\d\d$/.test(today!), true, `an entry of now: ${today}`);
  const text = (e: Entry) => history(gangnam, [e], null).querySelector("p")!.textContent!;
  equal(text(moved("2027-01-04T03:00:00Z", "2027-01-04T04:00:00Z")).includes("10:00–11:00 → 2번 룸 12:00–13:00"), true);
  const other = text(moved("2027-01-06T01:00:00Z", "2027-01-06T02:00:00Z"));
  equal([other.includes("1월 4일"), other.includes("1월 6일")], [true, true], other);
});

test("a date of more than half a year ago or ahead has its year", () => {
  const days = 86_400_000;
  for (const [distance, dated] of [
    [-366, true],
    [-184, true],
    [-182, false],
    [0, false],
    [182, false],
    [184, true],
    [366, true],
  ] as const) {
    const at = Date.now() + distance * days;
    const minute = inZone("Asia/Seoul", at);
    const year = `${dateOf(minute).slice(0, 4)}년 `;
    const texts = [dateText(minute), localText(new Date(at).toISOString(), "gangnam")];
    equal(
      texts.map((text) => text.startsWith(year)),
      [dated, dated],
      `${distance} days: ${texts}`,
    );
  }
});

test("a draft is not shown to another administrator who logs in after the session has ended", async () => {
  enter("hq", [gangnam], {});
  let id = "gangnam-desk";
  answers = {
    "GET /v2/me": () => ({ loginType: "admin", adminLoginId: id, role: "front-desk", branchList: ["gangnam"] }),
    "GET /v2/branches": () => ({ branches: [gangnam] }),
  };
  const key = "console-draft-register-gangnam";
  await identify();
  tabStore.set(key, '{"name":"최지우"}');
  await identify();
  equal(tabStore.get(key), '{"name":"최지우"}', "the same administrator:");
  id = "night-shift";
  await identify();
  equal(tabStore.get(key), null, "another one:");
});

test("a login that the browser does not remember says so", async () => {
  enter("hq", [], {
    "POST /admin/login": () => ({ adminLoginId: "hq", branchList: [] }),
    "GET /v2/me": () => new Refusal(401, "AuthenticationError", "인증되지 않은 사용자입니다."),
    "GET /v2/branches": () => ({ branches: [] }),
  });
  await showing(loginScreen, async (main) => {
    type("아이디", "hq");
    type("비밀번호", "hq-demo");
    named("로그인").click();
    await until("the reason", () => main.textContent.includes("쿠키를 저장하지 않아요"));
  });
});

test("a refusal shows the screen again if the administrator has other rights now", async () => {
  enter("manager", [gangnam], {
    "POST /v2/admin/closures": () => new Refusal(403, "AuthorizationError", "권한이 없습니다."),
    "GET /v2/me": () => ({ loginType: "admin", adminLoginId: "manager", role: "viewer", branchList: ["gangnam"] }),
    "GET /v2/branches": () => ({ branches: [gangnam] }),
  });
  const main = document.body.appendChild(h("main", null));
  const end = route(
    main,
    [{ path: location.pathname, view: () => h("b", null, me.peek()!.role) }],
    () => null,
    (view) => view(),
    () => "failed",
  );
  noticeEnd();
  try {
    equal(main.textContent, "manager");
    await api.post("/v2/admin/closures").catch(() => {});
    await until("the rights", () => main.textContent === "viewer");
    asked = [];
    await api.post("/v2/admin/closures").catch(() => {});
    await until("a further look", () => asked.includes("GET /v2/branches"));
  } finally {
    hearRefusals(() => {});
    end();
    main.remove();
  }
});

test("lists that the service cuts say so", async () => {
  const item = {
    kind: "pending",
    branch: "gangnam",
    reservationId: "1",
    orderId: "o",
    refundId: null,
    differenceId: null,
  };
  const stay = {
    ...{ id: "1", branch: "gangnam", roomNo: "1", start: "202701011000", end: "202701011050" },
    state: "DONE",
  };
  for (const [count, cut] of [
    [99, false],
    [100, true],
    [500, true],
  ] as const) {
    const rest = { amount: 1000, since: new Date().toISOString(), dueAt: null, detail: "", account: null };
    const reservations = Array.from({ length: count }, () => ({
      ...stay,
      stayEnd: "202701011100",
      name: "손님",
      amount: 0,
    }));
    enter("viewer", [gangnam], {
      "GET /v2/admin/money-desk": () => ({ items: Array.from({ length: count }, () => ({ ...item, ...rest })) }),
      "GET /v2/admin/reservations/1/guest": () => ({
        name: "손님",
        mobileNum: "01011112222",
        block: null,
        notes: [],
        reservations,
      }),
    });
    await showing(deskScreen, async (main) => {
      await until("the desk", () => main.querySelectorAll("tbody tr").length === count);
      equal(main.textContent.includes("500건만"), count === 500, `${count} items`);
    });
    await showing(
      () => guestScreen(gangnam, { id: "1" }),
      async (main) => {
        await until("the stays", () => main.querySelectorAll("tbody tr").length === count);
        equal(main.querySelector<HTMLElement>("dl.facts")!.textContent.includes(`${count}+`), cut, `${count} stays`);
      },
    );
  }
});

test("the search says that it shows a part of what it has found", async () => {
  const list = Array.from({ length: 30 }, (_, i) => branchOf(`b${i + 1}`, `지점${i + 1}`));
  enter("accountant", list, {});
  await showing(
    () => null,
    async () => {
      openSearch();
      const box = document.querySelector<HTMLInputElement>("dialog [role=combobox]")!;
      const hint = () => document.querySelector<HTMLElement>("dialog p.hint[role=status]")!.textContent;
      const search = (text: string) => {
        box.value = text;
        box.dispatchEvent(new Event("input"));
      };
      search("지점30");
      await until("one branch", () => document.querySelectorAll("dialog [role=option]").length === 1);
      equal(hint().includes("더 있어요"), false, hint());
      search("지점");
      await until("some branches", () => document.querySelectorAll("dialog [role=option]").length > 1);
      equal(hint().includes("더 있어요"), true, hint());
    },
  );
});

test("the payments stay where they are while no money moves", async () => {
  const totals = { paid: 0, net: 0, outside: 0 };
  let paid = 0;
  const payment = (id: number) => ({
    ...{ id: String(id), paidAt: null, start: "202701011000", end: "202701011100", roomNo: "1", name: `손님 ${id}` },
    ...{ method: "카드", amount: 1000, state: "DONE", orderId: `o${id}` },
  });
  enter("accountant", [gangnam], {
    "GET /v2/admin/branches/gangnam/money": () => ({
      sums: [],
      totals: { ...totals, paid },
      refunds: [],
      differences: [],
    }),
    "GET /v2/admin/branches/gangnam/payments": ({ query }) => {
      const last = Number(query.get("before") ?? 101);
      return { payments: Array.from({ length: Math.min(50, last - 1) }, (_, i) => payment(last - 1 - i)) };
    },
  });
  await showing(
    () => moneyScreen(gangnam),
    async (main) => {
      await until("a page", () => main.textContent.includes("손님 100"));
      named("더 보기").click();
      await until("another page", () => main.querySelectorAll("tbody tr").length === 100);
      const kept = main.querySelector("table");
      asked = [];
      returnToTab(); // without a connection
      await until("the sums", () => asked.some((line) => line.includes("/money")));
      await turn();
      equal(main.contains(kept), true, "the list after a reading without a change:");
      paid = 5000;
      returnToTab();
      await until("the new sum", () => main.textContent.includes("5,000"));
      equal(
        asked.some((line) => line.includes("/payments")),
        true,
        "a change is read:",
      );
    },
  );
});

test("the branches of an administrator are found among many", async () => {
  const list = Array.from({ length: 300 }, (_, i) => branchOf(`b${i + 1}`, `지점${i + 1}`));
  enter("hq", list, { "GET /v2/admin/administrators": () => ({ administrators: [] }) });
  await showing(peopleScreen, async () => {
    named("관리자 추가").click();
    const boxes = () => document.querySelectorAll("dialog input[type=checkbox]").length;
    equal(boxes(), 300);
    const filter = document.querySelector<HTMLInputElement>("dialog input[type=search]")!;
    filter.value = "지점29";
    filter.dispatchEvent(new Event("input"));
    equal(boxes(), 11);
    named("모두 선택").click();
    equal(document.querySelectorAll("dialog input[type=checkbox]:checked").length, 11);
  });
});

void speakIn("ko").then(report);
