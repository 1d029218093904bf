// All messages to the guests of a branch.

import { api } from "../core/api";
import { whileSeen } from "../core/clock";
import { type Child, h, match } from "../core/dom";
import { signal } from "../core/signal";
import { wall } from "./doors";
import { link } from "./link";
import { channelText, type Message, messageState, messageText, openMessage } from "./message";
import { pages } from "./pages";
import { button, heading, segmented, table } from "./parts";
import type { Branch } from "./session";
import { t } from "./text";

const size = 50;
/** Milliseconds after which messages that are not sent yet are fetched again. */
const openEvery = 2000;

export function messagesScreen(branch: Branch): Child {
  const state = signal("");
  return [
    heading(
      t("navMessages"),
      segmented(t("colState"), state, [
        { value: "", text: t("all") },
        { value: "FAILED", text: t("message_FAILED") },
      ]),
    ),
    h("p", { class: "lead" }, t("messagesLead")),
    match(state, (wanted) => {
      const list = pages(
        async (before) =>
          (
            await api.get<{ messages: Message[] }>(`/v2/admin/branches/${branch.branch}/messages`, {
              ...(before ? { before } : {}),
              ...(wanted ? { state: wanted } : {}),
              limit: size,
            })
          ).messages,
        size,
      );
      whileSeen(openEvery, () => {
        const rows = list.rows.peek();
        if (rows.length <= size && rows.some((m) => m.state === "QUEUED" || m.state === "SENDING")) void list.reload();
      });
      return list.view((rows) =>
        table<Message>(
          t("navMessages"),
          [
            { title: t("colWhen"), kind: "brief", cell: (m) => wall(branch, m.createdAt) },
            { title: t("messageKind"), cell: (m) => messageText(m.template) },
            { title: t("messageTo"), cell: (m) => m.to },
            { title: t("colState"), cell: (m) => [messageState(m), m.channel ? ` ${channelText(m.channel)}` : ""] },
            {
              title: t("reservation"),
              cell: (m) =>
                m.reservationId ? link(`/console/${branch.branch}/day?r=${m.reservationId}`, m.reservationId) : "–",
            },
            {
              title: "",
              kind: "action",
              cell: (m) =>
                button(t("preview"), () => openMessage(branch, m.id, () => void list.reload()), {
                  kind: "plain",
                  label: `${t("preview")} ${m.id}`,
                }),
            },
          ],
          rows,
          t("messagesNone"),
        ),
      );
    }),
  ];
}
