// Runs tests in the page and reports to the Go test that opened it.

interface Result {
  name: string;
  problem: string;
}

const tests: [name: string, body: () => void | Promise<void>][] = [];

export function test(name: string, body: () => void | Promise<void>): void {
  tests.push([name, body]);
}

export function equal(got: unknown, want: unknown, what = ""): void {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)];
  if (g !== w) throw new Error(`${what} got ${g}, want ${w}`);
}

export async function report(): Promise<void> {
  const results: Result[] = [];
  for (const [name, body] of tests) {
    let problem = "";
    try {
      await body();
    } catch (error) {
      problem = error instanceof Error ? `${error.message}\n${error.stack}` : String(error);
    }
    results.push({ name, problem });
  }
  await fetch("/results", { method: "POST", body: JSON.stringify(results) });
}
