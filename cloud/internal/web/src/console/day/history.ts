// The history of a reservation, latest entry first.

import { clockOf, dateOf, inZone } from "../../booking/time";
import { type Child, h } from "../../core/dom";
import type { Schemas } from "../../core/interface";
import { channelText, messageText, openMessage } from "../message";
import { button } from "../parts";
import type { Branch } from "../session";
import { dateText, methodText, type TextKey, t, timesText, won } from "../text";

export type Entry = Schemas["HistoryEntry"];

/** Views are listed in the audit log only: they do not change the reservation. */
const looks = new Set(["reservation.view", "reservation.search"]);

export function history(branch: Branch, entries: Entry[], refresh: (() => void) | null): HTMLElement {
  const today = dateOf(inZone(branch.timeZone));
  return h(
    "ol",
    { class: "history" },
    entries
      .filter((e) => e.kind !== "deed" || !looks.has(String(e.detail.action)))
      .reverse()
      .map((e) => {
        const at = inZone(branch.timeZone, Date.parse(e.at));
        const seconds = new Date(Date.parse(e.at)).toISOString().slice(17, 19);
        return h(
          "li",
          { class: e.kind },
          h("time", { datetime: e.at }, dateOf(at) === today ? "" : `${dateText(at)} `, `${clockOf(at)}:${seconds}`),
          h("p", null, h("b", null, title(e)), rest(branch, e), e.by ? h("small", null, ` ${who(e.by)}`) : null),
          e.kind === "message" && e.detail.id
            ? button(t("preview"), () => openMessage(branch, String(e.detail.id), refresh), { kind: "plain" })
            : null,
        );
      }),
  );
}

/** States of the provider that the entry's title already says. */
const said = new Set(["DONE", "READY", "IN_PROGRESS", "WAITING_FOR_DEPOSIT", "CANCELED", "PARTIAL_CANCELED"]);

/** Shows admin:hq as hq. */
export const who = (actor: string): string => actor.replace(/^admin:/, "");

function title(e: Entry): string {
  const d = e.detail;
  switch (e.kind) {
    case "created":
      return t(`created_${d.source as "CUSTOMER" | "ADMIN" | "PARTNER"}`);
    case "money":
      return known(`money_${String(d.what)}`, String(d.what));
    case "message":
      return `${t("historyMessage")} · ${messageText(String(d.template))}`;
    case "door":
      return t(d.device === "front" ? "historyFront" : "historyRoom");
    case "refund":
      return `${t("historyRefund")} · ${known(`refund_${String(d.state)}`, String(d.state))}`;
    case "deed":
      return known(`deed_${String(d.action)}`, String(d.action));
    default:
      return t(`history_${e.kind}`);
  }
}

/** The text of a key that a newer service may send and this page does not have yet. */
function known(key: string, otherwise: string): string {
  return t(key as TextKey) ?? otherwise;
}

function rest(branch: Branch, { kind, detail: d }: Entry): Child {
  const at = (text: unknown) => inZone(branch.timeZone, Date.parse(String(text)));
  const otherDay = () => dateOf(at(d.fromStart)) !== dateOf(at(d.toStart));
  const stay = (room: unknown, start: unknown, end: unknown) =>
    [
      t("roomNo", { n: String(room) }),
      ...(otherDay() ? [dateText(at(start))] : []),
      timesText(at(start), at(end)),
    ].join(" ");
  const part = (...texts: (string | null | false)[]) =>
    texts
      .filter(Boolean)
      .map((text) => ` · ${text}`)
      .join("");
  switch (kind) {
    case "paid":
    case "money":
    case "refund":
      return part(
        d.amount !== null && d.amount !== undefined && won(Number(d.amount)),
        methodText(d.method as string | null),
        said.has(String(d.code)) ? null : (d.code as string | null),
        d.message as string | null,
        (d.reason ?? null) as string | null,
      );
    case "message":
      return part(
        known(`message_${String(d.state)}`, String(d.state)),
        d.channel ? channelText(String(d.channel)) : null,
        d.error as string | null,
      );
    case "door":
      return part(
        known(`door_${String(d.state)}`, String(d.state)),
        d.latencyMs !== null && `${(Number(d.latencyMs) / 1000).toFixed(2)} s`,
        d.state !== "SUCCESS" && (d.detail as string | null),
      );
    case "deed":
      return part(d.reason ? known(`cancelReason_${String(d.reason)}`, String(d.reason)) : null);
    case "move":
      return part(
        `${stay(d.fromRoom, d.fromStart, d.fromEnd)} → ${stay(d.toRoom, d.toStart, d.toEnd)}`,
        d.reason as string | null,
      );
    default:
      return null;
  }
}
