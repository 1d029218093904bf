// A differential test: random graphs of signals, computeds and effects give the same values, errors and effect runs as
// @preact/signals-core. Version 1.13 is the reference: 1.14 also skips an effect whose signal a batch changed and changed
// back, which no page needs.

import * as preact from "@preact/signals-core";
import * as own from "../src/core/signal";
import { equal, report, test } from "./check";

/** What both libraries can do, behind one interface. */
interface Library {
  signal(value: number): { read(): number; peek(): number; set(value: number): void };
  computed(derive: () => number): { read(): number; peek(): number };
  effect(body: () => void): () => void;
  batch(change: () => void): void;
}

const ours: Library = {
  signal: (value) => {
    const s = own.signal(value);
    return { read: s, peek: s.peek, set: (next) => s.set(next) };
  },
  computed: (derive) => {
    const c = own.computed(derive);
    return { read: c, peek: c.peek };
  },
  effect: own.effect,
  batch: own.batch,
};

const theirs: Library = {
  signal: (value) => {
    const s = preact.signal(value);
    return {
      read: () => s.value,
      peek: () => s.peek(),
      set: (next) => {
        s.value = next;
      },
    };
  },
  computed: (derive) => {
    const c = preact.computed(derive);
    return { read: () => c.value, peek: () => c.peek() };
  },
  effect: (body) => preact.effect(body),
  batch: preact.batch,
};

/** mulberry32 */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** The value, or the error's text. */
function attempt(read: () => number): number | string {
  try {
    return read();
  } catch (error) {
    return (error as Error).message;
  }
}

/** Builds a graph from seed, changes it, and returns everything that could be observed. */
function play(seed: number, library: Library): unknown[] {
  const pick = random(seed);
  const log: unknown[] = [];
  const signals = Array.from({ length: 2 + pick(4) }, () => library.signal(pick(5)));
  const nodes: { read(): number; peek(): number }[] = [...signals];
  for (let count = pick(8); count > 0; count--) {
    const [a, b, c] = [nodes[pick(nodes.length)]!, nodes[pick(nodes.length)]!, nodes[pick(nodes.length)]!];
    const [kind, limit] = [pick(5), pick(6)];
    nodes.push(
      library.computed(() => {
        if (kind === 0) return a.read() + b.read();
        if (kind === 1) return a.read() % 2 === 0 ? b.read() : c.read();
        if (kind === 2) return Math.min(a.read(), limit);
        if (kind === 3) return a.read() + b.peek();
        const value = a.read();
        if (value > limit) throw new Error(`${value} is over ${limit}`);
        return value - b.read();
      }),
    );
  }
  const effects: (() => void)[] = [];
  const addEffect = () => {
    const name = effects.length;
    const read = Array.from({ length: 1 + pick(3) }, () => nodes[pick(nodes.length)]!);
    const runs: unknown[] = [];
    log.push([`effect ${name}`, runs]);
    effects.push(library.effect(() => void runs.push(read.map((n) => attempt(n.read)))));
  };
  for (let count = pick(4); count > 0; count--) addEffect();
  const step = (): void => {
    const what = pick(10);
    const target = signals[pick(signals.length)]!;
    if (what < 6) target.set(pick(5));
    else if (what < 8) log.push(attempt(nodes[pick(nodes.length)]!.read));
    else if (what < 9) log.push(attempt(nodes[pick(nodes.length)]!.peek));
    else if (pick(2)) addEffect();
    else effects[pick(effects.length + 1)]?.();
  };
  for (let count = 5 + pick(20); count > 0; count--) {
    if (pick(4)) step();
    else
      library.batch(() => {
        for (let n = 1 + pick(4); n > 0; n--) step();
      });
  }
  return log;
}

test("random graphs behave as in @preact/signals-core", () => {
  for (let seed = 1; seed <= 5000; seed++) equal(play(seed, ours), play(seed, theirs), `seed ${seed}:`);
});

await report();
