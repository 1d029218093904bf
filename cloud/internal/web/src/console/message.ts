// One message to a guest: its text, its delivery state, and a button that sends it again.

import { api } from "../core/api";
import { h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { wall } from "./doors";
import { button, chip, dialog, explain, facts, fetched, toast } from "./parts";
import { type Branch, mayBook } from "./session";
import { type TextKey, t } from "./text";

export type Message = Schemas["Message"];

export const messageText = (template: string): string => t(`template_${template}` as TextKey) ?? template;

export const channelText = (channel: string): string => t(`channel_${channel}` as TextKey) ?? channel;

export const messageState = (m: { state: string }): HTMLElement =>
  chip(t(`message_${m.state}` as TextKey), m.state === "FAILED" ? "bad" : m.state === "SENT" ? "good" : "hold");

export function openMessage(branch: Branch, id: string, changed: (() => void) | null): void {
  dialog(t("messageTitle"), (close) => {
    const source = resource(() =>
      api.get<Message & { subject: string | null; text: string }>(`/v2/admin/messages/${id}`),
    );
    const again = async () => {
      try {
        await api.post(`/v2/admin/messages/${id}/resend`);
        toast(t("resent"));
        changed?.();
        close();
      } catch (error) {
        toast(explain(error), "bad");
      }
    };
    return fetched(source, (data) => () => {
      const m = data();
      return [
        facts([
          [t("messageKind"), messageText(m.template)],
          [t("messageTo"), m.to],
          [t("colState"), [messageState(m), m.channel ? ` ${channelText(m.channel)}` : ""]],
          [t("createdAt"), wall(branch, m.createdAt)],
          [t("sentAt"), m.sentAt && wall(branch, m.sentAt)],
          [t("attempts"), m.attempt],
          [t("problem"), m.error],
        ]),
        h(
          "article",
          { class: "preview", "aria-label": t("preview") },
          m.subject ? h("b", null, m.subject) : null,
          h("p", null, m.text),
        ),
        h(
          "div",
          { class: "footer" },
          button(t("close"), close, { kind: "plain" }),
          mayBook() ? button(t("resend"), again, { kind: "primary" }) : null,
        ),
      ];
    });
  });
}
