// The drawer of one reservation: its data, its history and the possible actions.

import { inZone } from "../../booking/time";
import { api } from "../../core/api";
import { ticking } from "../../core/clock";
import { type Child, h, when } from "../../core/dom";
import { countdown } from "../../core/format";
import type { Schemas } from "../../core/interface";
import { resource } from "../../core/resource";
import { computed, type Readable } from "../../core/signal";
import { openDoor } from "../door";
import { picture } from "../enroll";
import { link } from "../link";
import { gather, overhear } from "../live";
import { button, chip, copy, type Dialog, dialog, explain, facts, fetched, toast } from "../parts";
import { openOutside, openPartRefund } from "../refund";
import { type Branch, mayBook, mayChange } from "../session";
import { dateText, methodText, phoneText, t, timesText, won } from "../text";
import { openCancel } from "./cancel";
import { history, who } from "./history";
import { keys, openContact, openRotate } from "./key";
import { type Block, fetchDay, kindText, toBlock } from "./model";
import { openMove } from "./move";

export type Record = Schemas["ReservationRecord"];

export const fetchRecord = (id: string): Promise<Record> => api.get<Record>(`/v2/admin/reservations/${id}`);

export function openRecord(branch: Branch, id: string, onclose: () => void): Dialog {
  return dialog(
    t("recordTitle", { id }),
    () => {
      const source = resource(() => fetchRecord(id));
      const refresh = gather(source.refresh);
      overhear((event) => {
        if (!event || event.target === id || event.kind === "payment") refresh();
      });
      return fetched(source, (data) => view(branch, data, refresh));
    },
    { kind: "drawer", onclose },
  );
}

function view(branch: Branch, data: Readable<Record>, refresh: () => void): Child {
  const second = ticking();
  const block = computed<Block>(() => toBlock(data()));
  const ends = computed(() => block().expiresAt);
  return h(
    "div",
    { class: "record" },
    h(
      "div",
      { class: "lead" },
      () => chip(kindText(block().kind), block().kind),
      when(
        () => ends() > 0,
        () => h("b", { class: "left", role: "timer" }, () => countdown(ends() - second())),
      ),
      h("p", { class: "when" }, () => `${dateText(block().start)} ${timesText(block().start, block().end)}`),
      h("p", { class: "where" }, () => `${t("roomNo", { n: data().roomNo })} · ${data().machine}`),
    ),
    () => waiting(data()),
    () => (mayBook() ? actions(branch, data(), block(), refresh) : null),
    () => known(branch, data()),
    () => cleaned(branch, data()),
    () => keys(branch, data(), refresh),
    h("h3", null, t("historyTitle")),
    () => history(branch, data().history, mayBook() ? refresh : null),
  );
}

/** The virtual account that awaits a deposit. */
function waiting(data: Record): Child {
  if (!data.account || data.state !== "WAITING_FOR_DEPOSIT") return null;
  const { account } = data;
  return h(
    "section",
    { class: "account", "aria-label": t("accountTitle") },
    h("p", null, `${account.bankName} · ${account.holder}`),
    h("p", { class: "number" }, account.number),
    h("p", null, h("b", null, won(data.amount)), " ", t("accountWaiting")),
    button(t("copyAccount"), () => copy(account.number)),
    picture(account.qr, t("accountTitle")),
  );
}

/** The key, PIN or code that opened the room: the owner's key is not named. */
const keyText = (key: string | null): string => {
  if (!key || key === "owner") return "";
  return ` · ${key === "pin" || key === "code" ? t(`by_${key}`) : key}`;
};

const cashReceipt = (r: NonNullable<Record["cashReceipt"]>): Child => [
  [t(`cash_${r.type}`), r.number, t(`cash_${r.status}`), r.amount ? won(r.amount) : ""].filter(Boolean).join(" · "),
  r.url && r.amount ? [" ", h("a", { href: r.url, target: "_blank", rel: "noreferrer" }, t("receiptOpen"))] : null,
];

function known(branch: Branch, data: Record): Child {
  const at = (text: string | null) => (text ? wallTime(branch, text) : null);
  return facts([
    [t("colName"), data.name],
    [
      t("mobile"),
      data.mobileNum && [
        h("a", { href: `tel:${data.mobileNum}` }, phoneText(data.mobileNum)),
        " · ",
        link(`/console/${branch.branch}/guest/${data.id}`, t("guestPage")),
      ],
    ],
    [t("email"), data.email && h("a", { href: `mailto:${data.email}` }, data.email)],
    [
      t("amount"),
      data.amount || data.method ? [won(data.amount), data.method ? ` · ${methodText(data.method)}` : ""] : null,
    ],
    [t("balance"), balance(data)],
    [t("note"), data.note],
    [t("createdBy"), data.createdBy],
    [t("orderId"), data.orderId && h("code", { class: "long" }, data.orderId)],
    [t("createdAt"), at(data.createdAt)],
    [t("paidAt"), at(data.paidAt)],
    [t("enteredAt"), data.stay && [at(data.stay.enteredAt), keyText(data.stay.byKey)]],
    [t("leftAt"), data.stay?.leftAt && at(data.stay.leftAt)],
    [t("canceledAt"), at(data.canceledAt)],
    [t("refundUntil"), at(data.refundUntil)],
    [
      t("receipt"),
      data.receiptUrl && h("a", { href: data.receiptUrl, target: "_blank", rel: "noreferrer" }, t("receiptOpen")),
    ],
    [t("cashReceipt"), data.cashReceipt && cashReceipt(data.cashReceipt)],
  ]);
}

/** The sum that a cancellation returns, if it differs from the amount. */
function balance(data: Record): Child {
  const { amount, balance, extensionsBalance } = data;
  if (data.state !== "DONE" || (!extensionsBalance && balance === amount)) return null;
  const all = won(balance + extensionsBalance);
  return extensionsBalance ? t("balanceExtended", { all, extension: won(extensionsBalance) }) : all;
}

/** The photo that a cleaner took after the stay. */
function cleaned(branch: Branch, { cleaned, roomNo }: Record): Child {
  if (!cleaned) return null;
  return h(
    "figure",
    null,
    h("img", { class: "photo", src: cleaned.photo, alt: t("cleanedPhoto", { n: roomNo }) }),
    h("figcaption", null, `${t("cleanedAt")} · ${wallTime(branch, cleaned.at)} · ${who(cleaned.by)}`),
  );
}

/** An instant in the branch's time zone. */
export function wallTime(branch: Branch, at: string): string {
  const minute = inZone(branch.timeZone, Date.parse(at));
  return `${dateText(minute)} ${new Date(minute * 60_000).toISOString().slice(11, 16)}`;
}

function actions(branch: Branch, data: Record, block: Block, refresh: () => void): Child {
  const list: Child[] = [];
  if (data.movable)
    list.push(
      button(t("move"), async () =>
        openMove(branch, block, block, await fetchDay(branch.branch, dateOfStart(data)), () => {}, refresh),
      ),
    );
  if (data.keyLink) {
    const link = data.keyLink;
    list.push(
      button(t("resendKey"), () => resend(data.id).then(refresh)),
      button(t("copyKeyLink"), () => copy(link)),
      button(t("rotateKey"), () => openRotate(data, refresh)),
    );
    list.push(
      button(t("openFrontDoor"), () => openDoor(branch, "front")),
      button(t("openRoomDoor"), () => openDoor(branch, "room", data.roomNo)),
    );
  }
  if (data.state === "DONE" && data.balance > 0 && mayChange())
    list.push(
      button(t("partRefund"), () => openPartRefund(data.id, data.method, refresh)),
      button(t("outside"), () => openOutside(data.id, data.balance, refresh, data.extensionsBalance)),
    );
  if (data.correctable) list.push(button(t("correctContact"), () => openContact(data, refresh)));
  if (data.cancelable)
    list.push(
      button(t(data.state === "DONE" ? "cancelPaid" : "cancelHold"), () => openCancel(data, refresh), {
        kind: "danger",
      }),
    );
  return list.length ? h("div", { class: "actions" }, list) : null;
}

const dateOfStart = (data: Record) => `${data.start.slice(0, 4)}-${data.start.slice(4, 6)}-${data.start.slice(6, 8)}`;

async function resend(id: string): Promise<void> {
  try {
    await api.post(`/v2/admin/reservations/${id}/key-message`);
    toast(t("resent"));
  } catch (error) {
    toast(explain(error), "bad");
  }
}
