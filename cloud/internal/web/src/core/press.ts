// The press of a pointer, from which a click follows if both ends are on the same element.

let press: Promise<void> | undefined;

addEventListener(
  "pointerdown",
  () => {
    press ??= new Promise((done) => {
      const over = new AbortController();
      const end = () => {
        over.abort();
        press = undefined;
        setTimeout(done); // the click comes first
      };
      for (const name of ["pointerup", "pointercancel", "blur"])
        addEventListener(name, end, { capture: true, signal: over.signal });
    });
  },
  true,
);

/** Waits for the click of a press in progress. */
export async function released(): Promise<void> {
  while (press) await press;
}
