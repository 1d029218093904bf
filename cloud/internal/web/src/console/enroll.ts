// The enrolment of a Pi: a command that works once, and the Pi that the new one replaces.

import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { type Readable, type Signal, signal } from "../core/signal";
import { wall } from "./doors";
import { gather, overhear } from "./live";
import { attempt, button, chip, copy, dialog, fetched, field, select } from "./parts";
import type { Branch } from "./session";
import { t } from "./text";

type Offer = Schemas["EnrollmentToken"];
type Credential = Schemas["AgentCredential"];

const credentialsOf = async (branch: Branch): Promise<Credential[]> =>
  (await api.get<Schemas["DeviceOverview"]>(`/v2/admin/branches/${branch.branch}/devices`)).credentials;

export function openEnroll(branch: Branch): void {
  dialog(t("enroll"), (close) => {
    const source = resource(() => credentialsOf(branch));
    return fetched(source, (known) => {
      const before = known.peek();
      const valid = before.filter((c) => !c.revokedAt);
      // A Pi that is away is the usual reason to enrol another one.
      const replaced = signal(valid.find((c) => c.state === "active" && c.seenAt && !c.online)?.username ?? "");
      const offer = signal<Offer | null>(null);
      const { run, view } = attempt();
      const make = () =>
        run(async () =>
          offer.set(
            await api.post<Offer>(`/v2/admin/branches/${branch.branch}/agents`, { replaces: replaced.peek() || null }),
          ),
        );
      return match(offer, (made) =>
        made
          ? offered(branch, made, arrivals(known, before, source.refresh), replaced.peek(), close)
          : [
              h("p", null, t("enrollText")),
              valid.length ? replacement(valid, replaced) : null,
              view(),
              h(
                "div",
                { class: "footer" },
                button(t("back"), close, { kind: "plain" }),
                button(t("enrollDo"), make, { kind: "primary" }),
              ),
            ],
      );
    });
  });
}

/** The choice of the Pi that the new one replaces, with its consequence. */
const replacement = (valid: Credential[], replaced: Signal<string>): HTMLElement =>
  field(
    t("enrollReplaces"),
    select(replaced, () => [
      { value: "", text: t("enrollReplacesNone") },
      ...valid.map((c) => ({
        value: c.username,
        text: [c.username, t(`piState_${c.state}`), t(c.online ? "online" : "offline")].join(" · "),
      })),
    ]),
    () => (replaced() ? t("enrollReplacesHint", { username: replaced() }) : t("enrollAddsHint")),
  );

/** The Pi that is not among the known ones, once it is enrolled. refresh looks for it at each change of an agent. */
function arrivals(
  now: Readable<Credential[]>,
  before: Credential[],
  refresh: () => Promise<void>,
): () => Credential | null {
  const known = new Set(before.map((c) => c.username));
  const look = gather(refresh);
  overhear((event) => {
    if (!event || event.kind === "agent") look();
  });
  return () => now().find((c) => !known.has(c.username)) ?? null;
}

/** Shows the enrolment command once. The QR code holds the same text, for an operator with a phone at the machine. */
function offered(
  branch: Branch,
  { command, expiresAt, qr }: Offer,
  arrived: () => Credential | null,
  replaced: string,
  close: () => void,
): HTMLElement {
  return h(
    "div",
    { class: "enrolled" },
    h("p", { class: "notice" }, t("enrollOnce", { time: wall(branch, expiresAt) })),
    h("p", null, t("enrollStep")),
    h("pre", { tabindex: 0 }, command),
    h(
      "div",
      { class: "row" },
      button(t("copyCommand"), () => copy(command), { kind: "primary" }),
    ),
    picture(qr, t("enroll")),
    h("p", { role: "status" }, () => progress(arrived(), replaced)),
    h("div", { class: "footer" }, button(t("close"), close, { kind: "plain" })),
  );
}

function progress(arrived: Credential | null, replaced: string): Child {
  if (!arrived) return h("span", { class: "hint" }, t("enrollWaiting"));
  return [
    chip(t("enrollArrived", { username: arrived.username }), "good"),
    replaced
      ? arrived.state === "active"
        ? [" ", chip(t("enrollReplaced", { username: replaced }), "good")]
        : [" ", h("span", { class: "hint" }, t("enrollReplacing", { username: replaced }))]
      : null,
  ];
}

/** qr has one row of 0 and 1 per line. */
export function picture(qr: string, name: string): Element {
  const rows = qr.split("\n");
  const d = rows
    .flatMap((row, y) => [...row].map((bit, x) => (bit === "1" ? `M${x + 4} ${y + 4}h1v1h-1z` : "")))
    .join("");
  const size = rows.length + 8;
  return h(
    "svg",
    { class: "qr", viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": t("qrOf", { name }) },
    h("rect", { width: size, height: size, fill: "#fff" }),
    h("path", { d, fill: "#000" }),
  );
}
