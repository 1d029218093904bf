// Partner channels that offer the rooms, and the calendars that synchronise both sides.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { type Readable, signal } from "../core/signal";
import { wall } from "./doors";
import { keptAttempt } from "./draft";
import { attempt, button, chip, copy, dialog, field, input, question, select, table, toast } from "./parts";
import { type Branch, mayChange } from "./session";
import type { Settings } from "./settings";
import { t } from "./text";

export type Listing = Schemas["Listing"];

export function channelsPart(branch: Branch, data: Readable<Settings>, refresh: () => Promise<void>): Child {
  return [
    () =>
      table<Listing>(
        t("settingsChannels"),
        [
          { title: t("partner"), cell: (l) => [l.partner, " ", chip(l.channel)] },
          { title: t("room"), cell: (l) => t("roomNo", { n: l.roomNo }) },
          {
            title: t("feed"),
            kind: "wide",
            cell: (l) => [
              l.feedUrl || "–",
              l.fetchError
                ? h("small", { class: "problem" }, ` ${l.fetchError}`)
                : l.fetchedAt
                  ? h("small", null, ` ${wall(branch, l.fetchedAt)}`)
                  : null,
            ],
          },
          { title: t("colState"), cell: (l) => chip(t(l.enabled ? "on" : "off"), l.enabled ? "good" : "over") },
          {
            title: "",
            kind: "action",
            cell: (l) =>
              mayChange()
                ? [
                    button(t(l.hasExport ? "newExportLink" : "exportLink"), () => openExport(branch, l, refresh)),
                    " ",
                    button(
                      t(l.enabled ? "turnOff" : "turnOn"),
                      () =>
                        l.enabled
                          ? question(t("turnOff"), t("channelOffAsk", { partner: l.partner }), t("turnOff"), () =>
                              flip(branch, l, refresh),
                            )
                          : flip(branch, l, refresh),
                      { kind: "plain" },
                    ),
                  ]
                : null,
          },
        ],
        data().channels,
        t("channelsNone"),
      ),
    mayChange() ? button(t("addChannel"), () => openAdd(branch, data.peek(), refresh)) : null,
  ];
}

async function flip(branch: Branch, l: Listing, refresh: () => Promise<void>): Promise<void> {
  await api.patch(`/v2/admin/branches/${branch.branch}/channels/${l.id}`, { enabled: !l.enabled });
  await refresh();
}

/** The link is shown once: the service keeps only its hash. */
function openExport(branch: Branch, l: Listing, refresh: () => Promise<void>): void {
  dialog(t("exportLink"), (close) => {
    const link = signal("");
    const { run, view } = attempt();
    const make = () =>
      run(async () => {
        link.set((await api.post<{ url: string }>(`/v2/admin/branches/${branch.branch}/channels/${l.id}/export`)).url);
        await refresh();
      });
    return [
      h("p", null, t(l.hasExport ? "exportAgainText" : "exportText")),
      () =>
        link()
          ? [
              h("p", { class: "notice" }, t("exportOnce")),
              h("pre", { tabindex: 0 }, link()),
              button(t("copy"), () => copy(link.peek()), { kind: "primary" }),
            ]
          : null,
      view(),
      h("div", { class: "footer" }, button(t("close"), close, { kind: "plain" }), () =>
        link() ? null : button(t("exportDo"), make, { kind: "primary" }),
      ),
    ];
  });
}

function openAdd(branch: Branch, settings: Settings, refresh: () => Promise<void>): void {
  dialog(t("addChannel"), (close) => {
    const [partner, room, feed] = [signal(""), signal(settings.rooms[0]?.roomNo ?? ""), signal("")];
    const { run, view } = keptAttempt(`channel-${branch.branch}`, { partner, room });
    const save = () =>
      run(async () => {
        await api.post(`/v2/admin/branches/${branch.branch}/channels`, {
          partner: partner.peek().trim(),
          roomNo: room.peek(),
          feedUrl: feed.peek().trim(),
        });
        toast(t("saved"));
        await refresh();
        close();
      });
    return [
      h(
        "div",
        { class: "form" },
        field(t("partner"), input(partner, { maxlength: 60, autofocus: true })),
        field(
          t("room"),
          select(room, () => settings.rooms.map((r) => ({ value: r.roomNo, text: t("roomNo", { n: r.roomNo }) }))),
        ),
        field(t("feed"), input(feed, { type: "url", maxlength: 500, placeholder: "https://" }), t("feedHint")),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary", disabled: () => !partner().trim() }),
      ),
    ];
  });
}
