// One's own password, second step and sessions.

import { api } from "../core/api";
import { type Child, h, match } from "../core/dom";
import type { Schemas } from "../core/interface";
import { passkeysWork } from "../core/passkey";
import { resource } from "../core/resource";
import { signal } from "../core/signal";
import { picture } from "./enroll";
import {
  attempt,
  button,
  chip,
  fetched,
  field,
  heading,
  input,
  section,
  segmented,
  submitsOnce,
  table,
  toast,
} from "./parts";
import { passkeys, proof } from "./passkeys";
import { recoveryCodes } from "./recovery";
import { me } from "./session";
import { localText, t } from "./text";
import { theme } from "./theme";

type Session = Schemas["AdminSession"];
type Account = Schemas["AdminAccount"];

export function accountScreen(): Child {
  const source = resource(() => api.get<Account>("/v2/admin/account"));
  return [
    heading(t("navAccount")),
    h("p", { class: "lead" }, me()?.adminLoginId ?? "", " · ", t(`role_${me()?.role ?? "viewer"}`)),
    section(
      t("theme"),
      segmented(t("theme"), theme, [
        { value: "system", text: t("themeSystem") },
        { value: "light", text: t("themeLight") },
        { value: "dark", text: t("themeDark") },
      ]),
    ),
    section(t("changePassword"), passwordForm()),
    fetched(source, (data) => [
      section(
        t("totp"),
        match(
          () => data().totp,
          (on) => (on ? totpOff(source.refresh) : totpOn(source.refresh)),
        ),
      ),
      data().passkeysAvailable
        ? match(
            () => passkeysWork() || data().passkeys.length > 0,
            (shown) => (shown ? passkeys(() => data().passkeys, source.refresh) : null),
          )
        : null,
      match(
        () => data().totp || data().passkeys.length > 0,
        (on) => (on ? recoveryCodes() : null),
      ),
      section(t("sessions"), () => sessions(data().sessions, source.refresh)),
    ]),
  ];
}

function passwordForm(): HTMLElement {
  const given = proof();
  const next = signal("");
  const { run, view } = attempt();
  const save = () =>
    run(() =>
      given.run(async (body) => {
        await api.post("/v2/admin/account/password", { ...body, newPassword: next.peek() });
        given.clear();
        next.set("");
        toast(t("passwordChanged"));
      }),
    );
  return h(
    "form",
    {
      class: "form",
      onsubmit: submitsOnce(save),
    },
    h("input", { type: "text", autocomplete: "username", value: me()?.adminLoginId ?? "", hidden: true }),
    given.password(),
    field(
      t("newPassword"),
      input(next, { type: "password", autocomplete: "new-password", minlength: 12, maxlength: 256, required: true }),
      t("passwordHint"),
    ),
    given.second(),
    view(),
    h("div", { class: "row" }, h("button", { type: "submit", class: "button primary" }, t("changePassword"))),
  );
}

function totpOn(refresh: () => Promise<void>): Child {
  const begun = signal<{ secret: string; url: string; qr: string } | null>(null);
  const [code, password] = [signal(""), signal("")];
  const codeField = input(code, {
    inputmode: "numeric",
    autocomplete: "one-time-code",
    maxlength: 7,
    required: true,
  });
  const { run, view } = attempt();
  const begin = () =>
    run(async () => {
      begun.set(await api.post("/v2/admin/account/totp", { password: password.peek() }));
      codeField.focus(); // the field of the password has disappeared
    });
  const confirm = () =>
    run(async () => {
      await api.put("/v2/admin/account/totp", { code: code.peek().replace(/\s/g, "") });
      toast(t("totpOnDone"));
      await refresh();
    });
  return [
    h("p", { class: "hint" }, t("totpText")),
    match(begun, (b) =>
      b
        ? [
            picture(b.qr, t("totp")),
            h("p", null, t("totpSecret"), " ", h("code", null, b.secret)),
            h(
              "form",
              {
                class: "inline",
                onsubmit: submitsOnce(confirm),
              },
              field(t("secondCode"), codeField),
              button(t("totpConfirm"), () => {}, { kind: "primary", type: "submit" }),
            ),
          ]
        : h(
            "form",
            {
              class: "inline",
              onsubmit: submitsOnce(begin),
            },
            field(
              t("passwordNow"),
              input(password, { type: "password", autocomplete: "current-password", required: true }),
            ),
            button(t("totpBegin"), () => {}, { type: "submit" }),
          ),
    ),
    view(),
  ];
}

function totpOff(refresh: () => Promise<void>): Child {
  const code = signal("");
  const { run, view } = attempt();
  const off = () =>
    run(async () => {
      await api.delete("/v2/admin/account/totp", undefined, { code: code.peek().replace(/\s/g, "") });
      toast(t("totpOffDone"));
      await refresh();
    });
  return [
    h("p", null, chip(t("on"), "good"), " ", t("totpIsOn")),
    h(
      "form",
      {
        class: "inline",
        onsubmit: submitsOnce(off),
      },
      field(t("secondCode"), input(code, { inputmode: "numeric", maxlength: 7, required: true })),
      button(t("totpTurnOff"), () => {}, { kind: "danger", type: "submit" }),
    ),
    view(),
  ];
}

/** Browser and system, such as Chrome · Windows. An unknown client is shown by its own name. */
function browser(agent: string): string {
  const first = (list: readonly (readonly [RegExp, string])[]) => list.find(([pattern]) => pattern.test(agent))?.[1];
  const name = first([
    [/Edg\//, "Edge"],
    [/Whale\//, "Whale"],
    [/SamsungBrowser\//, "Samsung Internet"],
    [/Firefox\//, "Firefox"],
    [/Chrome\//, "Chrome"],
    [/Safari\//, "Safari"],
  ]);
  const system = first([
    [/iPhone|iPad/, "iOS"],
    [/Android/, "Android"],
    [/Windows/, "Windows"],
    [/Mac OS X/, "macOS"],
    [/Linux/, "Linux"],
  ]);
  return name ? [name, system].filter(Boolean).join(" · ") : agent || "–";
}

function sessions(list: Session[], refresh: () => Promise<void>): Child {
  return table<Session>(
    t("sessions"),
    [
      {
        title: t("startedAt"),
        kind: "brief",
        cell: (s) => [
          s.startedAt ? localText(s.startedAt) : "–",
          s.current ? [" ", chip(t("thisSession"), "good")] : null,
        ],
      },
      { title: t("address"), cell: (s) => h("code", null, s.address ?? "–") },
      { title: t("browser"), kind: "wide", cell: (s) => h("span", { title: s.agent }, browser(s.agent ?? "")) },
      { title: t("expiresAt"), kind: "brief", cell: (s) => localText(s.expiresAt) },
      {
        title: "",
        kind: "action",
        cell: (s) =>
          s.current
            ? null
            : button(
                t("endSession"),
                async () => {
                  await api.delete(`/v2/admin/account/sessions/${s.id}`);
                  await refresh();
                },
                { kind: "danger", label: `${t("endSession")} ${s.address ?? ""}` },
              ),
      },
    ],
    list,
  );
}
