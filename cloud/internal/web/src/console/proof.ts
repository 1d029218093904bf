// The proof: the rules of the service, checked on the rows of its database every night and on demand.

import { api } from "../core/api";
import { type Child, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { signal } from "../core/signal";
import { link } from "./link";
import { attempt, button, chip, fetched, heading, saveFile, section, table } from "./parts";
import { localText, type TextKey, t } from "./text";

type Proof = Schemas["Proof"];
type Rule = Schemas["ProofRule"];
type Finding = Schemas["ProofFinding"];

export function proofScreen(): Child {
  const kept = resource(async () => (await api.get<{ proofs: Proof[] }>("/v2/admin/proofs")).proofs);
  const fresh = signal<Proof | null>(null);
  const { run, view } = attempt();
  const check = () => run(async () => fresh.set(await api.get<Proof>("/v2/admin/proof")));
  return [
    heading(t("navProof"), button(t("proofNow"), check, { kind: "primary" })),
    h("p", { class: "lead" }, t("proofLead")),
    view(),
    when(
      () => fresh() !== null,
      () => () => report(fresh()!),
    ),
    fetched(kept, (list) => () => [
      fresh() === null && list()[0] ? report(list()[0]!) : null,
      section(
        t("proofKept"),
        table<Proof>(
          t("proofKept"),
          [
            { title: t("colWhen"), kind: "brief", cell: (p) => localText(p.report.at) },
            { title: t("proofViolations"), kind: "number", cell: (p) => p.report.violations },
            { title: t("proofHead"), kind: "wide", cell: (p) => h("code", null, p.report.head) },
            {
              title: "",
              kind: "action",
              cell: (p) =>
                button(t("proofSave"), () => save(p), { label: `${t("proofSave")} ${localText(p.report.at)}` }),
            },
          ],
          list(),
        ),
      ),
    ]),
  ];
}

function report(p: Proof): Child {
  const { at, violations, rules } = p.report;
  const found = rules.flatMap((rule) => rule.found.map((finding) => ({ rule, finding })));
  return section(
    t("proofOf", { at: localText(at) }),
    h(
      "p",
      null,
      violations === 0 ? chip(t("proofHolds"), "good") : chip(t("proofBroken", { n: violations }), "bad"),
      " ",
      button(t("proofSave"), () => save(p)),
    ),
    table<Rule>(
      t("proofRules"),
      [
        { title: t("proofRule"), kind: "wide", cell: (r) => [h("b", null, r.id), " ", ruleText(r)] },
        { title: t("proofChecked"), kind: "number", cell: (r) => r.checked },
        { title: t("proofViolations"), kind: "number", cell: (r) => (r.violations ? chip(r.violations, "bad") : 0) },
      ],
      rules,
    ),
    found.length > 0
      ? table<{ rule: Rule; finding: Finding }>(
          t("proofViolations"),
          [
            { title: t("proofRule"), kind: "brief", cell: (f) => f.rule.id },
            { title: t("target"), cell: (f) => subject(f.finding) },
            { title: t("colDetail"), kind: "wide", cell: (f) => f.finding.detail },
            { title: t("proofRepair"), cell: (f) => repair(f.finding) },
          ],
          found,
        )
      : null,
  );
}

const ruleText = (r: Rule): string => t(`proofRule_${r.id}` as TextKey) ?? r.text;

function subject({ subject, branch }: Finding): Child {
  const id = /^reservation:(\d+)$/.exec(subject)?.[1];
  return id && branch ? link(`/console/${branch}/day?r=${id}`, subject) : subject;
}

/** The place in the console where the repair is done. */
function repair({ repair, branch, subject }: Finding): Child {
  if (!repair) return "–";
  const places: Record<string, string> = { settle: "money", revoke: "devices" };
  const id = /\d+/.exec(subject)?.[0];
  const screen = places[repair.verb] ?? (subject.startsWith("reservation:") ? `day?r=${id}` : "day");
  return link(`/console/${branch}/${screen}`, t(`proofRepair_${repair.verb}`));
}

/** Saves the signed document, which `yeolda proof verify` reads. */
const save = (p: Proof): void =>
  saveFile(`proof-${p.report.at.slice(0, 10)}.json`, "application/json", JSON.stringify(p));
