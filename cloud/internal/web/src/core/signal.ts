// Signals: values that remember who reads them.
//
// A signal holds a value, a computed derives one, an effect does something with them. Each notes what it
// reads while it runs and runs again, once, when any of that has changed. Everything made while an effect
// runs belongs to that run and is disposed of before the next one, so nothing is left behind.

export interface Readable<T> {
  (): T;
  /** Reads the value without being told of its changes. */
  peek(): T;
}

export interface Signal<T> extends Readable<T> {
  set(value: T): void;
  update(change: (value: T) => T): void;
}

type Dispose = () => void;

/** An owner disposes of what was made under it. */
class Scope {
  private disposals: Dispose[] = [];

  add(dispose: Dispose): void {
    this.disposals.push(dispose);
  }

  dispose(): void {
    const all = this.disposals;
    this.disposals = [];
    for (let i = all.length; i-- > 0; ) all[i]!();
  }
}

let owner: Scope | undefined;
let reader: Reaction | undefined;

class Source {
  readers = new Set<Reaction>();

  track(): void {
    if (reader) {
      this.readers.add(reader);
      reader.sources.add(this);
    }
  }

  /** Brings the value up to date; only a computed has anything to do. */
  refresh(): void {}
}

enum State {
  Fresh,
  /** Something it depends on may have changed. */
  Doubtful,
  /** Something it depends on has changed. */
  Stale,
}

class Reaction extends Source {
  sources = new Set<Source>();
  state = State.Stale;
  readonly scope = new Scope();
  disposed = false;

  constructor(
    private readonly body: () => void,
    private readonly isEffect: boolean,
  ) {
    super();
    owner?.add(() => this.dispose());
  }

  mark(state: State): void {
    if (this.state >= state || this.disposed) return;
    const first = this.state === State.Fresh;
    this.state = state;
    if (!first) return;
    if (this.isEffect) pending.push(this);
    else for (const r of [...this.readers]) r.mark(State.Doubtful);
  }

  override refresh(): void {
    if (this.state === State.Doubtful) {
      for (const s of [...this.sources]) {
        s.refresh();
        if ((this.state as State) === State.Stale) break;
      }
    }
    const stale = this.state === State.Stale;
    this.state = State.Fresh; // before the run, which may change what it reads
    if (stale) this.run();
  }

  run(): void {
    this.forget();
    const [previousReader, previousOwner] = [reader, owner];
    [reader, owner] = [this, this.scope];
    try {
      this.body();
    } finally {
      [reader, owner] = [previousReader, previousOwner];
    }
  }

  private forget(): void {
    this.scope.dispose();
    for (const s of this.sources) s.readers.delete(this);
    this.sources.clear();
  }

  dispose(): void {
    this.disposed = true;
    this.forget();
  }
}

let pending: Reaction[] = [];
let depth = 0;

const endless = 100; // turns after which effects are taken not to come to rest

/** Runs what is pending. An effect that fails is reported like any error of the page and keeps no other from running. */
function flush(): void {
  if (depth > 0) return;
  depth++;
  for (let turns = 0; pending.length > 0; turns++) {
    const turn = pending;
    pending = [];
    if (turns > endless) {
      reportError(new Error("effects keep changing what they read"));
      break;
    }
    for (const r of turn) {
      if (r.disposed) continue;
      try {
        r.refresh();
      } catch (error) {
        reportError(error);
      }
    }
  }
  depth--;
}

/** Runs effects once, after all of change. */
export function batch(change: () => void): void {
  depth++;
  try {
    change();
  } finally {
    depth--;
    flush();
  }
}

export function signal<T>(initial: T): Signal<T> {
  const source = new Source();
  let value = initial;
  const read = () => {
    source.track();
    return value;
  };
  return Object.assign(read, {
    peek: () => value,
    set(next: T) {
      if (Object.is(value, next)) return;
      value = next;
      for (const r of [...source.readers]) r.mark(State.Stale);
      flush();
    },
    update(change: (value: T) => T) {
      this.set(change(value));
    },
  });
}

/** A value derived from others; made when first read, and again only after they changed. */
export function computed<T>(derive: () => T): Readable<T> {
  let value: T;
  const reaction = new Reaction(() => {
    const next = derive();
    if (Object.is(value, next)) return;
    value = next;
    for (const r of reaction.readers) r.mark(State.Stale);
  }, false);
  const peek = () => {
    reaction.refresh();
    return value;
  };
  const read = () => {
    const fresh = peek(); // first: who reads it now need not hear that it has just been made
    reaction.track();
    return fresh;
  };
  return Object.assign(read, { peek });
}

/** Runs body now and whenever what it read has changed, until the owner is disposed of. */
export function effect(body: () => void): Dispose {
  const reaction = new Reaction(body, true);
  reaction.refresh();
  return () => reaction.dispose();
}

/** Calls dispose when the running effect runs again or its owner goes. */
export function onCleanup(dispose: Dispose): void {
  owner?.add(dispose);
}

/** Reads without being told of changes. */
export function untracked<T>(read: () => T): T {
  const previous = reader;
  reader = undefined;
  try {
    return read();
  } finally {
    reader = previous;
  }
}

/** Runs body as the owner of what it makes. A detached scope lives until it is disposed of, others as long as their owner. */
export function scope<T>(body: () => T, detached = false): [result: T, dispose: Dispose] {
  const own = new Scope();
  if (!detached) owner?.add(() => own.dispose());
  const previous = owner;
  owner = own;
  try {
    return [untracked(body), () => own.dispose()];
  } finally {
    owner = previous;
  }
}
