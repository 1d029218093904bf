// Signals: values that track their readers.
//
// A signal holds a value, a computed derives one, an effect acts on them. Each records what it reads while it runs and
// runs again, once, after any of those values changed. An effect owns everything created during its run and disposes of
// it before the next run, so nothing leaks.

export interface Readable<T> {
  (): T;
  /** Reads the value without subscribing to its changes. */
  peek(): T;
}

export interface Signal<T> extends Readable<T> {
  set(value: T): void;
}

type Dispose = () => void;

/** An owner disposes of what was created under it, newest first. */
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

  /** Brings the value up to date. Only a computed has work to do. */
  refresh(): void {}
}

/** The states of a reaction, in the order in which a mark may raise them. */
const fresh = 0;
const doubtful = 1; // a dependency may have changed
const stale = 2; // a dependency has changed
type State = typeof fresh | typeof doubtful | typeof stale;

class Reaction extends Source {
  sources = new Set<Source>();
  state: State = stale;
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
    const first = this.state === fresh;
    this.state = state;
    if (!first) return;
    if (this.isEffect) pending.push(this);
    else for (const r of [...this.readers]) r.mark(doubtful);
  }

  override refresh(): void {
    if (this.state === doubtful) {
      for (const s of [...this.sources]) {
        s.refresh();
        if ((this.state as State) === stale) break;
      }
    }
    const run = this.state === stale;
    this.state = fresh; // before the run, which may change what it reads
    if (run) this.run();
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

const maxRounds = 100; // after which effects that keep changing their own dependencies are stopped

/** Runs the pending effects. A failing effect is reported like any page error and does not stop the others. */
function flush(): void {
  if (depth > 0) return;
  depth++;
  for (let round = 0; pending.length > 0; round++) {
    const effects = pending;
    pending = [];
    if (round > maxRounds) {
      reportError(new Error("effects keep changing what they read"));
      break;
    }
    for (const r of effects) {
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

/** Runs effects once, after all changes made by change. */
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
      for (const r of [...source.readers]) r.mark(stale);
      flush();
    },
  });
}

type Outcome<T> = { value: T } | { error: unknown };

/**
 * A value derived from others. It is computed on first read and recomputed on the first read after a dependency
 * changed. If derive throws, every read rethrows the error until a dependency changes.
 */
export function computed<T>(derive: () => T): Readable<T> {
  let outcome: Outcome<T> | undefined;
  const reaction = new Reaction(() => {
    const previous = outcome;
    try {
      outcome = { value: derive() };
    } catch (error) {
      outcome = { error };
    }
    const same = previous && "value" in previous && "value" in outcome && Object.is(previous.value, outcome.value);
    if (!same) for (const r of reaction.readers) r.mark(stale);
  }, false);
  const result = (): T => {
    if ("error" in outcome!) throw outcome.error;
    return outcome!.value;
  };
  const read = () => {
    reaction.refresh(); // before tracking: the current reader must not be marked by this computation
    reaction.track();
    return result();
  };
  const peek = () => {
    reaction.refresh();
    return result();
  };
  return Object.assign(read, { peek });
}

/** Runs body now and after each change of what it read, until its owner is disposed of. */
export function effect(body: () => void): Dispose {
  const reaction = new Reaction(body, true);
  reaction.refresh();
  return () => reaction.dispose();
}

/** Calls dispose before the running effect runs again, or when its owner is disposed of. */
export function onCleanup(dispose: Dispose): void {
  owner?.add(dispose);
}

/** Reads without subscribing to changes. */
export function untracked<T>(read: () => T): T {
  const previous = reader;
  reader = undefined;
  try {
    return read();
  } finally {
    reader = previous;
  }
}

/** Runs body as the owner of what it creates. A detached scope lives until it is disposed of, others as long as their owner. */
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
