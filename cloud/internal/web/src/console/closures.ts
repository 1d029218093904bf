// Closes several branches by one rule. The reservations in the way are shown first, and none of them is cancelled.

import { ApiError, api } from "../core/api";
import { type Child, h, match, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { computed, effect, type Signal, signal, untracked } from "../core/signal";
import { branchTitle } from "./alerts";
import { branchChoices } from "./branches";
import { keepTyped } from "./draft";
import { link } from "./link";
import { FieldError } from "./numbers";
import { attempt, button, explain, field, heading, input, section, segmented, select, toastWithUndo } from "./parts";
import { conflictTable } from "./rooms";
import { branches } from "./session";
import { t, weekdayText } from "./text";

type Request = Schemas["ClosureRequest"];
type Result = Schemas["ClosureResult"];
type Conflict = Result["conflicts"][number];
type Closed = Result["closed"][number];

const maxPreviewed = 1000; // branches of one request
/** Branches of one request that changes them. The service changes all of them or none. */
const group = 50;
const maxShown = 200; // conflicts
const maxReason = 100; // characters

/** A rule that is being edited. */
interface Draft {
  kind: Signal<string>;
  from: Signal<string>;
  to: Signal<string>;
  weekday: Signal<string>;
  nth: Signal<string>;
  yearly: Signal<string>;
}

/** The rule of the interface; undefined while a date is missing. */
function ruleOf(d: Draft): Request["rule"] | undefined {
  if (d.kind() === "monthly") return { weekday: Number(d.weekday()), nth: Number(d.nth()) };
  if (d.kind() === "yearly") return d.yearly() ? { yearly: d.yearly().slice(5) } : undefined;
  return d.from() && d.to() ? { from: d.from(), to: d.to() } : undefined;
}

export function closuresScreen(): Child {
  const chosen = signal<string[]>(branches.peek().length === 1 ? [branches.peek()[0]!.branch] : []);
  const draft: Draft = {
    kind: signal("span"),
    from: signal(""),
    to: signal(""),
    weekday: signal("1"),
    nth: signal("1"),
    yearly: signal(""),
  };
  const reason = signal("");
  const ticked = Object.assign(() => JSON.stringify(chosen()), {
    set: (text: string) =>
      chosen.set((JSON.parse(text) as string[]).filter((code) => branches.peek().some((b) => b.branch === code))),
  });
  const { forget, notice } = keepTyped("closures", { ...draft, reason, ticked });
  const found = signal<Conflict[] | null>(null); // of the last preview
  const request = computed((): Omit<Request, "branches"> | null => {
    const rule = ruleOf(draft);
    return rule && reason().trim() && chosen().length ? { rule, reason: reason().trim() } : null;
  });
  effect(() => {
    request();
    chosen();
    untracked(() => found.set(null)); // a preview is of what was entered then
  });
  const { run, view } = attempt();
  const met = signal<Conflict[]>([]); // by the last closure
  const left = signal<string[]>([]); // by the last undo
  const look = () =>
    run(async () => {
      met.set([]);
      left.set([]);
      const list: Conflict[] = [];
      for (const some of groups(chosen.peek(), maxPreviewed))
        list.push(...(await post({ ...request.peek()!, branches: some, preview: true })).conflicts);
      found.set(list);
    });
  const close = () =>
    run(async () => {
      const [rule, all] = [request.peek()!, chosen.peek()];
      const closed: Closed[] = [];
      let failure: unknown;
      for (const some of groups(all, group)) {
        try {
          const result = await post({ ...rule, branches: some });
          closed.push(...result.closed);
          met.set([...met.peek(), ...result.conflicts]);
        } catch (error) {
          failure = error;
          break;
        }
      }
      if (closed.length)
        toastWithUndo(t("closuresDone", { n: closed.length }), async () => {
          met.set([]);
          const { rest, problem } = await reopen(rule, closed);
          left.set(rest);
          if (rest.length) throw new FieldError(`${t("closuresLeft", { n: rest.length })} ${explain(problem)}`);
        });
      found.set(null);
      if (failure) {
        chosen.set(all.slice(closed.length));
        throw new FieldError(`${explain(failure)} ${t("closuresRest", { n: all.length - closed.length })}`);
      }
      chosen.set([]);
      reason.set("");
      forget();
    });
  return [
    heading(t("navClosures")),
    h("p", { class: "lead" }, t("closuresLead")),
    notice,
    section(t("closuresBranches"), branchChoices(chosen)),
    section(t("closuresRule"), rulePart(draft), field(t("reason"), input(reason, { maxlength: maxReason }))),
    view(),
    match(left, (codes) => (codes.length ? leftPart(codes) : null)),
    h(
      "div",
      { class: "row" },
      button(t("closuresPreview"), look, { disabled: () => !request() }),
      button(t("closuresDo"), close, { kind: "danger", disabled: () => !found() }),
    ),
    h(
      "div",
      { role: "status" },
      match(found, (list) => (list ? section(t("closuresConflicts"), conflictsPart(list)) : null)),
      match(met, (list) => (list.length ? section(t("closuresConflicts"), conflictsPart(list)) : null)),
    ),
  ];
}

const post = (request: Request): Promise<Result> => api.post<Result>("/v2/admin/closures", request);

const groups = <T>(list: readonly T[], size: number): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));

/**
 * Removes the closures that a rule has added. A branch that has been changed since keeps them. After any other failure, so do the
 * branches that follow: rest are their codes.
 */
async function reopen(
  rule: Omit<Request, "branches">,
  closed: readonly Closed[],
): Promise<{ rest: string[]; problem: unknown }> {
  const rest: string[] = [];
  let problem: unknown;
  const undo = (some: Closed[]) => post({ ...rule, branches: codesOf(some), undo: true, closed: some });
  const waiting = groups(closed, group);
  for (let some = waiting.shift(); some; some = waiting.shift()) {
    try {
      await undo(some);
    } catch (error) {
      problem = error;
      const changed = error instanceof ApiError && error.type === "SettingConflictException";
      if (changed && some.length > 1) waiting.unshift(...groups(some, 1));
      else rest.push(...codesOf(some));
      if (!changed) rest.push(...waiting.splice(0).flatMap(codesOf));
    }
  }
  return { rest, problem };
}

const codesOf = (list: readonly Closed[]): string[] => list.map((c) => c.branch);

/** The branches whose closures were not taken back, with the settings where they are removed. */
const leftPart = (codes: readonly string[]): HTMLElement =>
  h(
    "div",
    { class: "notice", role: "alert" },
    h("p", null, t("closuresLeft", { n: codes.length })),
    h(
      "ul",
      null,
      codes.map((code) => h("li", null, link(`/console/${code}/settings`, branchTitle(code)))),
    ),
  );

function rulePart(d: Draft): Child {
  const is = (kind: string) => () => d.kind() === kind;
  const numbers = (count: number, text: (n: number) => string) => () =>
    Array.from({ length: count }, (_, i) => ({ value: String(i + 1), text: text(i + 1) }));
  return [
    segmented(t("closuresRule"), d.kind, [
      { value: "span", text: t("closureSpan") },
      { value: "monthly", text: t("closureMonthly") },
      { value: "yearly", text: t("closureYearly") },
    ]),
    h(
      "div",
      { class: "inline" },
      when(is("span"), () => [
        field(t("dateFrom"), input(d.from, { type: "date" })),
        field(t("dateTo"), input(d.to, { type: "date" })),
      ]),
      when(is("monthly"), () => [
        field(
          t("closureNth"),
          select(
            d.nth,
            numbers(5, (n) => t("nth", { n })),
          ),
        ),
        field(
          t("closureWeekday"),
          select(
            d.weekday,
            numbers(7, (n) => weekdayText(n % 7)),
          ),
        ),
      ]),
      when(is("yearly"), () => field(t("closureDay"), input(d.yearly, { type: "date" }), t("closureDayHint"))),
    ),
  ];
}

const conflictsPart = (list: Conflict[]): Child =>
  list.length === 0
    ? h("p", { class: "nothing" }, t("closuresFree"))
    : [
        h("p", null, t("closuresText", { n: list.length })),
        conflictTable(
          t("closuresConflicts"),
          list.slice(0, maxShown),
          (c) => c.branch,
          () => {},
          [{ title: t("branch"), kind: "brief", cell: (c) => branchTitle(c.branch) }],
        ),
        list.length > maxShown ? h("p", { class: "hint" }, t("closuresMore", { n: list.length - maxShown })) : null,
      ];
