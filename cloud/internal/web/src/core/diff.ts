// The difference of two texts, by lines.

export interface Line {
  /** - is only in the first text, + only in the second one. */
  kind: " " | "-" | "+";
  text: string;
}

/** Returns the lines of both texts in order, with a longest common subsequence of them as unchanged. */
export function difference(before: string, after: string): Line[] {
  const [a, b] = [lines(before), lines(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let [endA, endB] = [a.length, b.length];
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  return [
    ...a.slice(0, start).map(same),
    ...between(a.slice(start, endA), b.slice(start, endB)),
    ...a.slice(endA).map(same),
  ];
}

const same = (text: string): Line => ({ kind: " ", text });

function lines(text: string): string[] {
  const all = text.split("\n");
  if (all[all.length - 1] === "") all.pop();
  return all;
}

function between(a: string[], b: string[]): Line[] {
  // common[i][j] is the length of the longest common subsequence of a from i and b from j.
  const common = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      common[i]![j] = a[i] === b[j] ? common[i + 1]![j + 1]! + 1 : Math.max(common[i + 1]![j]!, common[i]![j + 1]!);
  const found: Line[] = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      found.push(same(a[i]!));
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && common[i + 1]![j]! >= common[i]![j + 1]!))
      found.push({ kind: "-", text: a[i++]! });
    else found.push({ kind: "+", text: b[j++]! });
  }
  return found;
}

/** Splits lines at long unchanged parts, of which only the lines next to a change remain. */
export function hunks(all: Line[], context = 3): Line[][] {
  const found: Line[][] = [];
  let last = -1; // the line that was taken last
  all.forEach((line, at) => {
    if (!all.slice(Math.max(0, at - context), at + context + 1).some((near) => near.kind !== " ")) return;
    if (last !== at - 1 || found.length === 0) found.push([]);
    found[found.length - 1]!.push(line);
    last = at;
  });
  return found;
}
