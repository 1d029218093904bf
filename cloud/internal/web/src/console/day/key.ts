// The keys of a reservation: why a door does not open, companions, another key, a corrected contact.

import { api } from "../../core/api";
import { type Child, h } from "../../core/dom";
import type { Schemas } from "../../core/interface";
import { language } from "../../core/language";
import { resource } from "../../core/resource";
import { signal } from "../../core/signal";
import { edited, keptAttempt } from "../draft";
import { button, chip, dialog, explain, fetched, field, input, toast } from "../parts";
import { type Branch, mayBook } from "../session";
import { t } from "../text";
import { type Record, wallTime } from "./record";

type Why = Schemas["Why"];

/** The keys of a reservation that has or had one, with the sentence that its guest sees. */
export function keys(branch: Branch, data: Record, refresh: () => void): Child {
  if (!data.keys.length) return null;
  const why = resource(() => api.get<Why>(`/v2/admin/reservations/${data.id}/why?door=room&lang=${language.peek()}`));
  return h(
    "section",
    { class: "keys", "aria-label": t("keysTitle") },
    h("h3", null, t("keysTitle")),
    fetched(why, (found) => h("p", { class: "why", "data-code": () => found().code }, () => found().message)),
    h(
      "ul",
      null,
      data.keys.map((k) =>
        h(
          "li",
          null,
          chip(t(`keyKind_${k.kind}`), k.revokedAt ? "off" : ""),
          " ",
          k.label ?? "",
          h("small", null, ` ${keyState(branch, k)}`),
          k.kind === "companion" && !k.revokedAt && mayBook()
            ? button(t("keyRevoke"), () => revoke(data.id, k.id, refresh), { kind: "plain" })
            : null,
        ),
      ),
    ),
  );
}

function keyState(branch: Branch, k: Schemas["AccessKey"]): string {
  if (k.revokedAt) return `${t(`keyRevoked_${k.revokedAs ?? "revoked"}`)} · ${wallTime(branch, k.revokedAt)}`;
  return k.lastUsedAt ? t("keyUsed", { at: wallTime(branch, k.lastUsedAt) }) : t("keyUnused");
}

async function revoke(id: string, key: string, refresh: () => void): Promise<void> {
  try {
    await api.delete(`/v2/admin/reservations/${id}/companions/${key}`);
    toast(t("keyRevoked"));
    refresh();
  } catch (error) {
    toast(explain(error), "bad");
  }
}

/** Asks for the reason and replaces the key. */
export function openRotate(data: Record, refresh: () => void): void {
  dialog(t("rotateKey"), (close) => {
    const reason = signal("");
    const { run, view } = keptAttempt(`rotate-${data.id}`, { reason });
    const submit = () =>
      run(async () => {
        const { sent } = await api.post<Schemas["KeyRotated"]>(`/v2/admin/reservations/${data.id}/key`, {
          reason: reason.peek().trim(),
        });
        toast(t(sent ? "rotated" : "rotatedUnsent"));
        refresh();
        close();
      });
    return [
      h("p", null, t("rotateKeyText")),
      h(
        "div",
        { class: "form" },
        field(t("keyReason"), input(reason, { maxlength: 500, required: true, autofocus: true })),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("rotateKey"), submit, { kind: "primary", disabled: () => !reason().trim() }),
      ),
    ];
  });
}

/** Corrects the contact, which replaces the key, too. */
export function openContact(data: Record, refresh: () => void): void {
  dialog(t("correctContact"), (close) => {
    const [name, mobile, email, reason] = [data.name, data.mobileNum, data.email, ""].map((v) => signal(v ?? ""));
    const { run, view } = keptAttempt(`contact-${data.id}`, {
      name: edited(name!),
      mobile: edited(mobile!),
      email: edited(email!),
      reason: reason!,
    });
    const submit = () =>
      run(async () => {
        const changed = (now: string, before: string | null) => (now.trim() === (before ?? "") ? {} : now.trim());
        const fields = Object.entries({
          name: changed(name!.peek(), data.name),
          mobileNum: changed(mobile!.peek(), data.mobileNum),
          email: changed(email!.peek(), data.email),
        }).filter(([, value]) => typeof value === "string");
        await api.patch(`/v2/admin/reservations/${data.id}/contact`, {
          ...Object.fromEntries(fields),
          reason: reason!.peek().trim(),
        });
        toast(t("contactCorrected"));
        refresh();
        close();
      });
    return [
      h("p", null, t("correctText")),
      h(
        "div",
        { class: "form" },
        field(t("mobile"), input(mobile!, { maxlength: 20, inputmode: "tel", autofocus: true })),
        field(t("email"), input(email!, { maxlength: 100, inputmode: "email" })),
        field(t("colName"), input(name!, { maxlength: 50 })),
        field(t("keyReason"), input(reason!, { maxlength: 500, required: true })),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("correctContact"), submit, { kind: "primary", disabled: () => !reason!().trim() }),
      ),
    ];
  });
}
