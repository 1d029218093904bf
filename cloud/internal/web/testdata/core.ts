// Tests of the core, run in a real browser.

import { type Priced, price, priceLines } from "../src/booking/price";
import { Availability, type Lookup } from "../src/booking/slots";
import { clockOf, dateOf, inZone, parseDate, parseMinute, parseStoredEnd, slotOf, wire } from "../src/booking/time";
import { bankChoices } from "../src/console/banks";
import { connection, watch } from "../src/console/live";
import { pages } from "../src/console/pages";
import { attempt, button, explain, toast, toastWithUndo } from "../src/console/parts";
import { timesText as consoleTimes, speakIn } from "../src/console/text";
import { ApiError, NetworkError } from "../src/core/api";
import { arriveAt } from "../src/core/arrival";
import { difference, hunks } from "../src/core/diff";
import { append, each, h, match, mount, when } from "../src/core/dom";
import { resource } from "../src/core/resource";
import { boundary, fit } from "../src/core/router";
import { batch, computed, effect, onCleanup, scope, signal, untracked } from "../src/core/signal";
import { localStore, tabStore } from "../src/core/storage";
import { looksLikeEmail, looksLikeMobile, tidyMobile } from "../src/customer/field";
import { orderName } from "../src/customer/pay";
import { dueOf } from "../src/customer/receipt";
import type { Branch } from "../src/customer/service";
import { clockOnDay, span, timesText, won } from "../src/customer/text";
import { equal, report, test } from "./check";

test("a success is shown until the next action begins, not until the page reads something", () => {
  const shown = () => [...document.querySelectorAll(".toast")].map((e) => e.textContent);
  const waits = () => new Promise<void>(() => {});
  const action = button("refund", waits);
  const close = button("close", () => {});
  const form = h("form", { onsubmit: (event: Event) => event.preventDefault() });
  document.body.append(form);

  try {
    toast("sent");
    toast("failed", "bad");
    toastWithUndo("moved", waits);
    void attempt().run(waits); // as a screen reads its data again
    close.click();
    equal(shown().includes("sent"), true, "after a reading and a button that asks for nothing");
    action.click();
    equal(shown().includes("sent"), false, "after an action");
    toast("sent again");
    form.requestSubmit();
    equal(shown().includes("sent again"), false, "after a form");
    equal(shown()[0], "failed");
    equal(shown().length, 2, "what is bad or can be taken back stays:");

    button("copy", async () => toast("copied")).click();
    equal(shown().includes("copied"), true, "after an action that ended at once");
  } finally {
    form.remove();
    document.querySelectorAll(".toast").forEach((e) => {
      e.remove();
    });
  }
});

test("an order name has at most 100 characters and no half of a pair", () => {
  const named = (nameKo: string) => orderName({ nameKo } as Branch, "3");
  equal(named("강남점"), "강남점 3번 룸");
  equal(named("가".repeat(120)), "가".repeat(100));
  equal(named(`${"가".repeat(99)}🏠`), "가".repeat(99));
  equal(named(`${"가".repeat(98)}🏠점`), `${"가".repeat(98)}🏠`);
});

test("a view that throws is replaced by another one", () => {
  const reports: unknown[] = [];
  const heard = (event: ErrorEvent) => {
    event.preventDefault();
    reports.push(event.message);
  };
  addEventListener("error", heard);
  const target = h("div", null);
  const broken = (): never => {
    throw new Error("broken");
  };
  for (const view of [broken, () => [h("p", null, "half"), broken], () => h("p", null, "whole")]) {
    target.replaceChildren();
    append(
      target,
      boundary(view, () => "failed"),
    );
    equal(target.textContent, view.length === 0 && target.querySelector("p") ? "whole" : "failed");
  }
  equal(reports.length, 2, "reported errors:");
  removeEventListener("error", heard);
});

test("values are kept in memory if the browser denies storage", () => {
  for (const [name, store] of [
    ["localStorage", localStore],
    ["sessionStorage", tabStore],
  ] as const) {
    const own = Object.getOwnPropertyDescriptor(window, name)!;
    equal(store.set("kept", "1"), true, "stored:");
    equal(window[name].getItem("kept"), "1");
    const denials = [
      { get: () => null },
      {
        get() {
          throw new DOMException("Access is denied", "SecurityError");
        },
      },
    ];
    for (const denial of denials) {
      Object.defineProperty(window, name, { ...denial, configurable: true });
      equal(store.get("a"), null);
      equal(store.set("a", "2"), false, "stored without storage:");
      equal(store.get("a"), "2");
      store.remove("a");
      equal(store.get("a"), null, "removed:");
      store.set("a", "3");
      store.clear();
      equal(store.get("a"), null, "cleared:");
    }
    Object.defineProperty(window, name, own);
    equal(store.get("kept"), "1");
    store.clear();
    equal(window[name].length, 0);
  }
});

test("the console names the date of an end after the next day", async () => {
  await speakIn("ko");
  for (const [end, want] of [
    ["202611221620", "15:00–16:20"],
    ["202611230000", "15:00–24:00"],
    ["202611231700", "15:00–다음 날 17:00"],
    ["202611240000", "15:00–11월 24일 (화) 00:00"],
    ["202611301700", "15:00–11월 30일 (월) 17:00"],
  ])
    equal(consoleTimes(parseMinute("202611221500"), parseMinute(end!)), want);
});

test("an effect runs again when what it read has changed", () => {
  const a = signal(1);
  const seen: number[] = [];
  effect(() => seen.push(a()));
  a.set(2);
  a.set(2);
  a.set(a.peek() + 1);
  equal(seen, [1, 2, 3]);
});

test("an effect that reads a diamond runs once per change", () => {
  const a = signal(1);
  const double = computed(() => a() * 2);
  const triple = computed(() => a() * 3);
  const seen: number[] = [];
  effect(() => seen.push(double() + triple()));
  a.set(2);
  equal(seen, [5, 10]);
});

test("a computed with the same value triggers no effect", () => {
  const a = signal(1);
  let derived = 0;
  const odd = computed(() => {
    derived++;
    return a() % 2 === 1;
  });
  let runs = 0;
  effect(() => {
    odd();
    runs++;
  });
  a.set(3);
  equal([runs, derived], [1, 2]);
});

test("a computed without readers is not computed", () => {
  const a = signal(1);
  let derived = 0;
  const c = computed(() => {
    derived++;
    return a();
  });
  a.set(2);
  equal(derived, 0);
  equal([c(), c.peek(), derived], [2, 2, 1]);
});

test("a batch runs an effect once", () => {
  const [a, b] = [signal(1), signal(1)];
  const seen: number[] = [];
  effect(() => seen.push(a() + b()));
  batch(() => {
    a.set(2);
    b.set(2);
  });
  equal(seen, [2, 4]);
});

test("a dependency that is no longer read is dropped", () => {
  const [first, a, b] = [signal(true), signal("a"), signal("b")];
  let runs = 0;
  effect(() => {
    runs++;
    first() ? a() : b();
  });
  first.set(false);
  a.set("A");
  equal(runs, 2);
  b.set("B");
  equal(runs, 3);
});

test("an effect may change its own dependency until the value settles", () => {
  const a = signal(0);
  effect(() => {
    if (a() < 5) a.set(a() + 1);
  });
  equal(a(), 5);
});

/** The errors reported by the page while body runs. */
function reported(body: () => void): string[] {
  const texts: string[] = [];
  const note = (event: ErrorEvent) => {
    texts.push(event.message);
    event.preventDefault();
  };
  addEventListener("error", note);
  body();
  removeEventListener("error", note);
  return texts;
}

test("effects that never settle are stopped with an error", () => {
  const a = signal(0);
  const errors = reported(() => {
    effect(() => a.set(a() + 1));
    a.set(-1);
  });
  equal(errors.length > 0 && errors.every((e) => e.includes("keep changing")), true);
});

test("an owner disposes of everything under it", () => {
  const a = signal(0);
  const log: string[] = [];
  const [, dispose] = scope(() => {
    effect(() => {
      const n = a();
      effect(() => log.push(`inner ${n} ${a()}`));
      onCleanup(() => log.push(`over ${n}`));
    });
  });
  a.set(1);
  dispose();
  a.set(2);
  equal(log, ["inner 0 0", "over 0", "inner 1 1", "over 1"]);
});

test("a failing effect is reported and does not stop the others", () => {
  const a = signal(0);
  const seen: number[] = [];
  const errors = reported(() => {
    effect(() => {
      if (a() === 1) throw new Error("boom");
    });
    effect(() => seen.push(a()));
    a.set(1);
    a.set(2);
  });
  equal([seen, errors.length, errors[0]?.includes("boom")], [[0, 1, 2], 1, true]);
});

test("untracked reads create no dependency", () => {
  const a = signal(1);
  let runs = 0;
  effect(() => {
    runs++;
    untracked(a);
  });
  a.set(2);
  equal(runs, 1);
});

const place = (): HTMLElement => document.body.appendChild(document.createElement("div"));

test("attributes and texts follow signals", () => {
  const [name, on] = [signal("a"), signal(true)];
  const root = place();
  const unmount = mount(root, () =>
    h("p", { class: () => name(), title: () => (on() ? "yes" : null), "aria-hidden": () => !on() }, "I am ", () =>
      name(),
    ),
  );
  name.set("b");
  on.set(false);
  equal(root.innerHTML, '<p class="b" aria-hidden="true">I am b</p>');
  unmount();
  equal(root.innerHTML, "");
  root.remove();
});

test("text is text, never markup", () => {
  const root = place();
  mount(root, () => h("p", { title: '"><b>' }, "<b>bold</b>", () => "<i>"));
  equal(root.querySelectorAll("b, i").length, 0);
  root.remove();
});

test("a row keeps its element, its input and the focus when it moves", () => {
  const items = signal(["a", "b", "c"]);
  const root = place();
  mount(root, () =>
    h(
      "ul",
      null,
      each(
        items,
        (i) => i,
        (i) => h("li", null, h("input", { id: `row-${i.peek()}` })),
      ),
    ),
  );
  const input = root.querySelector<HTMLInputElement>("#row-c")!;
  input.value = "typed";
  input.focus();
  items.set(["c", "d", "a"]);
  equal(
    [...root.querySelectorAll("input")].map((e) => e.id),
    ["row-c", "row-d", "row-a"],
  );
  equal(root.querySelector("#row-c") === input, true, "the same element:");
  equal([input.value, document.activeElement === input], ["typed", true]);
  root.remove();
});

test("a row whose item changed receives the new item", () => {
  const items = signal([{ id: "1", n: 1 }]);
  const root = place();
  mount(root, () =>
    h(
      "ul",
      null,
      each(
        items,
        (i) => i.id,
        (i) => h("li", null, () => i().n),
      ),
    ),
  );
  const row = root.querySelector("li");
  items.set([{ id: "1", n: 2 }]);
  equal([root.textContent, root.querySelector("li") === row], ["2", true]);
  root.remove();
});

test("a thousand replaced views leave one subscription", () => {
  const [a, runs] = [signal(0), { count: 0 }];
  const root = place();
  mount(root, () =>
    h("div", null, () =>
      h("p", null, String(a()), () => {
        runs.count++;
        return a();
      }),
    ),
  );
  for (let i = 1; i <= 1000; i++) a.set(i);
  runs.count = 0;
  a.set(-1);
  equal([runs.count, root.textContent], [1, "-1-1"]);
  root.remove();
});

test("when and match keep a view while their value is unchanged", () => {
  const n = signal(1);
  let [made, matched] = [0, 0];
  const root = place();
  mount(root, () => [
    when(
      () => n() > 0,
      () => {
        made++;
        return "positive";
      },
      () => "none",
    ),
    match(
      () => n() % 2,
      (odd) => {
        matched++;
        return odd ? " odd" : " even";
      },
    ),
  ]);
  n.set(3);
  n.set(5);
  equal([made, matched, root.textContent], [1, 1, "positive odd"]);
  n.set(0);
  equal(root.textContent, "none even");
  root.remove();
});

test("lists and conditions can be siblings", () => {
  const items = signal(["a"]);
  const root = place();
  append(root, [
    when(
      () => items().length > 1,
      () => h("b", null, "many"),
    ),
    each(
      items,
      (i) => i,
      (i) => h("i", null, i.peek()),
    ),
    "end",
  ]);
  items.set(["b", "a"]);
  equal(root.innerHTML.replace(/<!---->/g, ""), "<b>many</b><i>b</i><i>a</i>end");
  root.remove();
});

test("paths match patterns", () => {
  equal(fit("/b/:branch", "/b/gangnam"), { branch: "gangnam" });
  equal(fit("/b/:branch", "/b/%EA%B0%95"), { branch: "강" });
  equal([fit("/b/:branch", "/b/"), fit("/b/:branch", "/b/a/c"), fit("/b/:branch", "/b/%E0%A4%A")], [null, null, null]);
});

test("times are parsed, formatted and corrected", () => {
  const m = parseMinute("202611221550");
  equal(
    [wire(m), dateOf(m), clockOf(m), wire(parseStoredEnd("202611222350"))],
    ["202611221550", "2026-11-22", "15:50", "202611230000"],
  );
  equal(slotOf(parseMinute("202611221559")), parseMinute("202611221550"));
  equal([parseDate("2026-02-30"), parseDate("2026-13-40"), parseDate("x")].map(Number.isNaN), [true, true, true]);
  equal(
    [clockOnDay(parseMinute("202611230000"), m), clockOnDay(parseMinute("202611230130"), m)],
    ["24:00", "다음 날 01:30"],
  );
  equal(timesText(m, m + 80), "15:50–17:10");
  equal([span(10), span(60), span(80), won(1234567)], ["10분", "1시간", "1시간 20분", "1,234,567원"]);
});

test("contacts are normalized and validated", () => {
  equal(
    [
      "０１０－１２３４－５６７８",
      "\u202a010\u20111234\u20115678\u202c",
      "8210 1234 5678",
      "0082-10-1234-5678",
      "82 010 1234 5678",
    ].map(tidyMobile),
    Array(5).fill("010-1234-5678"),
  );
  equal(["01012345678", "010 1234-5678", "0111234567", "010-1234-567", "+82 10"].map(tidyMobile), [
    "010-1234-5678",
    "010-1234-5678",
    "011-123-4567",
    "010-1234-567",
    "+82 10",
  ]);
  for (const right of [
    "010-1234-5678",
    "01012345678",
    "011-123-4567",
    "016 1234 5678",
    "+82 10-1234-5678",
    "+14155552671",
  ])
    equal(looksLikeMobile(right), true, right);
  for (const wrong of [
    "010-1234-567",
    "0212345678",
    "12345678",
    "01012345678901",
    "0101",
    "phone",
    "+1234567",
    "012-345-6789",
  ])
    equal(looksLikeMobile(wrong), false, wrong);
  equal(["a@b.kr", "a b@c.kr", "a@b", "a@@b.kr"].map(looksLikeEmail), [true, false, false, false]);
});

const none: Lookup["unavailableSlots"] = {
  paid: [],
  booking: [],
  paidMargin: [],
  bookingMargin: [],
  breakTime: [],
  closedTime: [],
};

test("free time ends at the first blocked slot", () => {
  const at = (clock: string) => parseMinute(`20261122${clock}`);
  const room = {
    roomNo: "2",
    machine: "",
    grade: null,
    enabled: true,
    pricing: { min10: null, min30: 7000, min60: 13000 },
  };
  const blocked = {
    ...none,
    paid: ["2-202611221200"],
    paidMargin: ["2-202611221150", "2-202611221210"],
    breakTime: ["2-202611221500"],
  };
  const slots = new Availability([{ rooms: [room], unavailableSlots: blocked }], at("0000"), at("0000") + 29 * 60);
  const now = at("1014");
  equal(
    [slots.state("2", at("1000"), now), slots.state("2", at("1010"), now), slots.state("2", at("1150"), now)],
    ["past", "free", "paidMargin"],
  );
  equal([slots.freeFrom("2", at("1010"), now), slots.obstacle("2", at("1010"), now)], [100, "paidMargin"]);
  equal(slots.lengths(room, at("1010"), now), [
    { minutes: 30, won: 7000 },
    { minutes: 60, won: 13000 },
    { minutes: 90, won: 20000 },
  ]);
  equal(slots.firstFree(room, at("1130"), at("2400"), now), { start: at("1220"), free: 160 });
  equal(slots.freeFrom("2", at("1600"), now), 300, "the longest:");
  equal(slots.firstFree(room, at("1600"), at("2400"), now)?.free, 13 * 60, "until the end of the look-up:");
  equal(
    [slots.hasReservation("2", at("1000"), at("1150")), slots.hasReservation("2", at("1000"), at("1200"))],
    [false, true],
  );
  slots.release("2", at("1200"), at("1210"));
  equal(
    [slots.state("2", at("1150"), now), slots.state("2", at("1200"), now), slots.state("2", at("1210"), now)],
    ["paidMargin", "free", "paidMargin"],
    "the time that the browser holds:",
  );
});

interface Oracle {
  prices: (Priced & { start: string; minutes: number; won: number | null })[];
  times: { zone: string; instant: number; wall: string; local: string }[];
}

test("answers that arrive during a press are shown after its click", async () => {
  const answers: ((n: number) => void)[] = [];
  const clicks: number[] = [];
  const target = document.body.appendChild(document.createElement("div"));
  const dispose = mount(target, () => {
    const source = resource(() => new Promise<number>((done) => answers.push(done)));
    target.onkeydown = () => void source.refresh();
    return () => {
      const n = source.data();
      return n === undefined ? null : h("button", { onclick: () => clicks.push(n) }, String(n));
    };
  });
  const later = () => new Promise((done) => setTimeout(done, 10));
  answers[0]!(1);
  await later();
  for (const [end, n] of [
    ["pointerup", 2],
    ["pointercancel", 3],
  ] as const) {
    const button = target.querySelector("button")!;
    button.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true }));
    target.dispatchEvent(new Event("keydown"));
    answers[n - 1]!(n);
    await later();
    equal([button.isConnected, target.textContent], [true, String(n - 1)], "during the press:");
    button.dispatchEvent(new PointerEvent(end, { bubbles: true }));
    button.click();
    await later();
    equal([clicks.pop(), target.textContent], [n - 1, String(n)], `after ${end}:`);
  }
  dispose();
  target.remove();
});

test("the focus stays at its place when a view is replaced", () => {
  const rows = signal(["a", "b"]);
  const target = document.body.appendChild(document.createElement("div"));
  const view = () => () =>
    h(
      "ul",
      null,
      rows().map((row) =>
        h(
          "li",
          null,
          h("button", null, "open ", () => row),
          h("input", { "aria-label": row }),
        ),
      ),
    );
  const dispose = mount(target, view);
  target.querySelectorAll("button")[1]!.focus();
  rows.set(["c", "b", "d"]);
  equal([document.activeElement?.textContent, document.activeElement?.tagName], ["open b", "BUTTON"]);
  target.querySelectorAll("input")[2]!.focus();
  rows.set(["b"]);
  equal(document.activeElement?.tagName, "BODY", "without its row:");
  target.querySelectorAll("button")[0]!.focus();
  rows.set([]);
  equal(document.activeElement?.tagName, "BODY", "without any row:");
  dispose();
  target.remove();
});

test("a resource shows each newer answer, in whatever order they arrive", async () => {
  const answers: ((n: number) => void)[] = [];
  const source = resource(() => new Promise<number>((done) => answers.push(done)));
  const answered = async (i: number) => {
    answers[i]!(i);
    await Promise.resolve();
    await Promise.resolve();
    return source.data();
  };
  void source.refresh();
  void source.refresh();
  const [second, first, third] = [await answered(1), await answered(0), await answered(2)];
  equal([second, first, third], [1, 1, 2]);
  void source.refresh();
  source.retry();
  equal([await answered(3), await answered(4)], [undefined, 4], "after other parameters");
});

test("a resource that could not be fetched again is fetched once more, and shows its data meanwhile", async () => {
  const answers = ["old", null, "new"];
  const repeated: (() => void)[] = [];
  const real = window.setTimeout;
  window.setTimeout = ((task: () => void) => repeated.push(task)) as typeof setTimeout;
  try {
    const source = resource(async () => {
      const answer = answers.shift();
      if (!answer) throw new NetworkError("no response");
      return answer;
    });
    for (let n = 0; n < 3; n++) await Promise.resolve();
    await source.refresh();
    equal([source.data(), repeated.length], ["old", 1]);
    await repeated[0]!();
    equal([source.data(), repeated.length], ["new", 1], "after a while:");
  } finally {
    window.setTimeout = real;
  }
});

test("a screen is fetched again when its connection is open, because its data may be older", () => {
  const opened: WebSocket[] = [];
  const real = window.WebSocket;
  window.WebSocket = class {
    onopen?: () => void;
    constructor() {
      opened.push(this as unknown as WebSocket);
    }
    close(): void {}
  } as unknown as typeof WebSocket;
  const events: unknown[] = [];
  const [, dispose] = scope(() => watch("gangnam", "2026-11-28", (event) => events.push(event)));
  try {
    equal(events, [], "before the connection:");
    opened[0]!.onopen!(new Event("open"));
    equal(events, [null]);
  } finally {
    dispose();
    window.WebSocket = real;
  }
});

test("a connection that has become silent is replaced, because the network may have dropped it without closing it", () => {
  const [realSocket, realTimeout, realClear] = [window.WebSocket, window.setTimeout, window.clearTimeout];
  const opened: WebSocket[] = [];
  const timers = new Map<number, () => void>();
  window.WebSocket = class {
    constructor() {
      opened.push(this as unknown as WebSocket);
    }
    close(): void {}
  } as unknown as typeof WebSocket;
  let serial = 0;
  window.setTimeout = ((task: () => void) => {
    timers.set(++serial, task);
    return serial;
  }) as typeof setTimeout;
  window.clearTimeout = ((timer: number) => timers.delete(timer)) as typeof clearTimeout;
  const pass = () => {
    const [[timer, task] = []] = timers;
    timers.delete(timer!);
    task!();
  };
  const message = (data: string) => opened[opened.length - 1]!.onmessage!(new MessageEvent("message", { data }));
  const events: unknown[] = [];
  const [, dispose] = scope(() => watch("gangnam", "2026-11-28", (event) => events.push(event)));
  try {
    opened[0]!.onopen!(new Event("open"));
    const first = [...timers.keys()];
    message('{"events": []}');
    equal([events, connection.peek()], [[null], "live"], "after a message without events:");
    equal([timers.size, timers.has(first[0]!)], [1, false], "limits of the silence:");
    pass();
    equal([connection.peek(), opened.length], ["polling", 1], "after the silence:");
    pass();
    equal([opened.length, timers.size], [2, 1], "connections:");
    opened[0]!.onclose?.(new CloseEvent("close"));
    equal([opened.length, timers.size], [2, 1], "after the late end of the first one:");
    opened[1]!.onopen!(new Event("open"));
    equal([events, connection.peek()], [[null, null], "live"], "after the second connection:");
  } finally {
    dispose();
    [window.WebSocket, window.setTimeout, window.clearTimeout] = [realSocket, realTimeout, realClear];
  }
  equal(timers.size, 0, "timers that are left:");
});

test("a page of a list that did not load is fetched again by its button", async () => {
  const asked: string[] = [];
  let up = false;
  const target = place();
  const dispose = mount(target, () =>
    pages(async (before) => {
      asked.push(before);
      if (!up) throw new NetworkError("no response");
      return before ? [{ id: "1" }] : [{ id: "3" }, { id: "2" }];
    }, 2).view((rows) => h("b", null, rows.map((row) => row.id).join(" ") || "none")),
  );
  const later = () => new Promise((done) => setTimeout(done));
  const shown = () => [target.querySelector("b")?.textContent, target.querySelectorAll("[role=alert]").length];
  const press = async () => {
    target.querySelector<HTMLButtonElement>("button")!.click();
    await later();
  };
  await later();
  equal(shown(), [undefined, 1], "without a network:");
  up = true;
  await press();
  equal(shown(), ["3 2", 0], "after the retry:");
  up = false;
  await press();
  equal(shown(), ["3 2", 1], "without the next page:");
  up = true;
  await press();
  equal(
    [shown(), asked],
    [
      ["3 2 1", 0],
      ["", "", "2", "2"],
    ],
    "after its retry:",
  );
  dispose();
  target.remove();
});

test("prices equal those of the service", async () => {
  const { prices } = (await (await fetch("/oracle")).json()) as Oracle;
  for (const { start, minutes, won, ...room } of prices) {
    equal(price(room, parseMinute(start), minutes), won, JSON.stringify({ room, start, minutes }));
    const lines = priceLines(room, parseMinute(start), minutes);
    if (lines)
      equal(
        lines.reduce((sum, l) => sum + l.minutes, 0),
        minutes,
      );
  }
});

test("local times equal those of the service", async () => {
  const { times } = (await (await fetch("/oracle")).json()) as Oracle;
  for (const { zone, instant, wall, local } of times) {
    equal(wire(inZone(zone, instant)), wall, zone);
    equal(
      dueOf({ receipt: { virtualaccountDueDate: local }, branch: { timeZone: zone } as Branch }),
      instant,
      `${zone} ${local}`,
    );
  }
});

test("a difference holds both texts, and the lines that they share", () => {
  equal(
    difference("a\nb\nc\n", "a\nx\nc\n").map((l) => l.kind + l.text),
    [" a", "-b", "+x", " c"],
  );
  equal(
    difference("", "a\n").map((l) => l.kind + l.text),
    ["+a"],
  );
  equal(
    difference("a\nb\n", "b\nc\n").map((l) => l.kind + l.text),
    ["-a", " b", "+c"],
  );
  let seed = 1;
  const random = (n: number) => {
    seed = (seed * 48271) % 2147483647;
    return seed % n;
  };
  const texts = () => Array.from({ length: random(9) }, () => "abc"[random(3)]);
  for (let i = 0; i < 500; i++) {
    const [before, after] = [texts(), texts()];
    const lines = difference(before.map((l) => `${l}\n`).join(""), after.map((l) => `${l}\n`).join(""));
    const side = (other: string) => lines.filter((l) => l.kind !== other).map((l) => l.text);
    equal([side("+"), side("-")], [before, after]);
  }
});

test("a hunk has three unchanged lines on each side of a change", () => {
  const text = (n: number) => Array.from({ length: 20 }, (_, i) => (i === n || i === 16 ? "x" : String(i))).join("\n");
  const lines = (n: number) => hunks(difference(text(-1), text(n))).map((part) => part.map((l) => l.kind + l.text));
  equal(lines(-1), []);
  equal(lines(5), [[" 2", " 3", " 4", "-5", "+x", " 6", " 7", " 8"]]);
});

test("a busy button of the console keeps the focus and ignores further presses", async () => {
  let runs = 0;
  let end = () => {};
  const save = button("save", () => {
    runs++;
    return new Promise<void>((done) => (end = done));
  });
  document.body.append(save);
  save.focus();
  save.click();
  await new Promise((painted) => requestAnimationFrame(() => requestAnimationFrame(painted)));
  equal(document.activeElement === save, true, "the focus");
  save.click();
  equal([runs, save.getAttribute("aria-busy")], [1, "true"]);
  end();
  await new Promise((done) => setTimeout(done));
  save.click();
  equal(runs, 2);
  save.remove();
});

test("a list of banks that does not arrive is a message, and the next one is asked for again", async () => {
  const ask = window.fetch;
  const unhandled: unknown[] = [];
  const note = (event: PromiseRejectionEvent) => unhandled.push(event.reason);
  addEventListener("unhandledrejection", note);
  window.fetch = () => Promise.reject(new TypeError("no network"));
  const none = bankChoices();
  const message = () => document.querySelector(".toast.bad");
  while (!message()) await new Promise((done) => setTimeout(done, 10));
  window.fetch = async () =>
    Response.json({ status: "success", data: { banks: [{ code: "88", name: "신한", issues: true }] } });
  const some = bankChoices((b) => b.issues);
  while (some().length === 0) await new Promise((done) => setTimeout(done, 10));
  window.fetch = ask;
  removeEventListener("unhandledrejection", note);
  equal([unhandled.length, none(), some()], [0, [], [{ value: "88", text: "신한" }]]);
});

test("the English console explains a refusal in English", async () => {
  await speakIn("en");
  const refusal = (message: string) => explain(new ApiError(400, "IllegalArguemntError", null, message));
  equal(["아이디 또는 비밀번호가 올바르지 않습니다.", "한도 초과"].map(refusal), [
    "The ID or the password is wrong.",
    "The request was refused. (한도 초과)",
  ]);
  await speakIn("ko");
  equal(refusal("한도 초과"), "한도 초과");
});

test("a heading that replaces another one gets the focus that was lost, also on the first screen", async () => {
  const main = document.body.appendChild(h("main", null));
  const turn = () => new Promise((done) => setTimeout(done));
  const [, dispose] = scope(() => arriveAt(main, true));
  await turn();
  main.append(h("h1", { tabindex: -1 }, "first"), h("button", null));
  await turn();
  equal(document.activeElement?.tagName, "BODY", "the browser focuses the first screen");
  for (const [name, lost, want] of [
    ["kept", false, "other"],
    ["lost", true, "next"],
  ] as const) {
    const other = document.body.appendChild(h("button", null, "other"));
    (lost ? main.querySelector("button")! : other).focus();
    main.replaceChildren(h("h1", { tabindex: -1 }, "next"), h("button", null));
    await turn();
    equal(document.activeElement?.textContent, want, name);
    other.remove();
  }
  dispose();
  main.remove();
});

test("a new screen's heading gets the focus, also if it comes late, but not from the user", async () => {
  const main = document.body.appendChild(h("main", null));
  const heading = () => h("h1", { tabindex: -1 }, "title");
  const turn = () => new Promise((done) => setTimeout(done));
  const screens: [name: string, soon: boolean, busy: boolean, want: string][] = [
    ["at once", true, false, "H1"],
    ["late", false, false, "H1"],
    ["late, and the user types", false, true, "INPUT"],
  ];
  for (const [name, soon, busy, want] of screens) {
    const field = h("input", null);
    main.replaceChildren(field);
    (document.activeElement as HTMLElement | null)?.blur();
    const [, dispose] = scope(() => {
      if (soon) main.append(heading());
      arriveAt(main);
    });
    await turn();
    if (busy) field.focus();
    if (!soon) main.append(h("section", null, heading()));
    await turn();
    equal(document.activeElement?.tagName, want, name);
    dispose();
  }
  main.remove();
});

void report();
