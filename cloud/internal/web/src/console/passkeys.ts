// One's own passkeys, and their use.

import { ApiError, api } from "../core/api";
import { type Child, h, match, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { makePasskey, type PasskeyOptions, passkeysWork, usePasskey } from "../core/passkey";
import { type Signal, signal } from "../core/signal";
import { keepTyped } from "./draft";
import { attempt, button, dialog, field, input, section, submitsOnce, table, toast } from "./parts";
import { localText, t } from "./text";

type Passkey = Schemas["AdminPasskey"];

/** Has the browser use a passkey, and calls send with the answer. The user may cancel, which is no error of the service. */
export async function withPasskey(send: (credential: unknown) => Promise<unknown>): Promise<void> {
  const options = await api.post<PasskeyOptions>("/v2/admin/passkeys/options");
  const credential = await usePasskey(options).catch(() => null);
  if (credential) await send(credential);
  else toast(t("passkeyFailed"), "bad");
}

/** The password, and once the service asks for a second factor, a code or a passkey. */
export function proof(): {
  password: () => Child;
  second: () => Child;
  view: () => Child;
  clear: () => void;
  run: (send: (body: Record<string, string>) => Promise<unknown>) => Promise<unknown>;
} {
  const [password, code] = [signal(""), signal("")];
  const needsCode: Signal<boolean> = signal(false);
  const codeField = input(code, { autocomplete: "one-time-code", maxlength: 14, required: true });
  let again: () => Promise<unknown> = async () => {};
  const run = async (send: (body: Record<string, string>) => Promise<unknown>) => {
    again = () => run(send);
    try {
      await send({ password: password.peek(), ...(code.peek() ? { code: code.peek().replace(/\s/g, "") } : {}) });
    } catch (error) {
      if (!(error instanceof ApiError) || error.type !== "SecondFactorRequired" || needsCode.peek()) throw error;
      needsCode.set(true);
      codeField.focus();
    }
  };
  // A passkey that was used a moment ago is the second factor (docs/specification.md, Login 13).
  const prove = () =>
    withPasskey(async (credential) => {
      await api.post("/v2/admin/account/confirmation", { credential });
      await again();
    });
  const passwordView = () =>
    field(t("passwordNow"), input(password, { type: "password", autocomplete: "current-password", required: true }));
  const second = () =>
    when(needsCode, () => [
      field(t("secondCode"), codeField, t("secondCodeHint")),
      passkeysWork() ? h("div", { class: "row" }, button(t("passkeyConfirm"), prove)) : null,
    ]);
  return {
    password: passwordView,
    second,
    view: () => [passwordView(), second()],
    clear: () => {
      password.set("");
      code.set("");
      needsCode.set(false);
    },
    run,
  };
}

/** The passkeys, and the form for another one, which stays as it is while the list changes. */
export function passkeys(list: () => Passkey[], refresh: () => Promise<void>): Child {
  const rows = (known: Passkey[]) =>
    table<Passkey>(
      t("passkeys"),
      [
        { title: t("passkeyName"), kind: "wide", cell: (p) => p.name },
        { title: t("startedAt"), kind: "brief", cell: (p) => localText(p.createdAt) },
        { title: t("lastUsedAt"), kind: "brief", cell: (p) => (p.lastUsedAt ? localText(p.lastUsedAt) : "–") },
        {
          title: "",
          kind: "action",
          cell: (p) =>
            button(t("passkeyRemove"), () => remove(p, refresh), {
              kind: "danger",
              label: `${t("passkeyRemove")} ${p.name}`,
            }),
        },
      ],
      known,
    );
  return section(
    t("passkeys"),
    h("p", { class: "hint" }, t("passkeysText")),
    match(list, rows),
    passkeysWork() ? add(refresh) : null,
  );
}

function add(refresh: () => Promise<void>): HTMLElement {
  const name = signal("");
  const { forget, notice } = keepTyped("passkey", { name });
  const given = proof();
  const { run, view } = attempt();
  const submit = () =>
    run(() =>
      given.run(async (body) => {
        const options = await api.post<PasskeyOptions>("/v2/admin/account/passkeys/options", body);
        const credential = await makePasskey(options).catch(() => null);
        if (!credential) {
          toast(t("passkeyFailed"), "bad");
          return;
        }
        await api.post("/v2/admin/account/passkeys", { name: name.peek().trim(), credential });
        toast(t("passkeyAdded"));
        name.set("");
        given.clear();
        forget();
        await refresh();
      }),
    );
  return h(
    "form",
    {
      class: "form",
      onsubmit: submitsOnce(submit),
    },
    notice,
    field(t("passkeyName"), input(name, { maxlength: 50, required: true })),
    given.view(),
    view(),
    h("div", { class: "row" }, h("button", { type: "submit", class: "button" }, t("passkeyAdd"))),
  );
}

function remove(passkey: Passkey, refresh: () => Promise<void>): void {
  dialog(t("passkeyRemoveTitle"), (close) => {
    const given = proof();
    const { run, view } = attempt();
    const submit = () =>
      run(() =>
        given.run(async (body) => {
          await api.delete(`/v2/admin/account/passkeys/${passkey.id}`, undefined, body);
          toast(t("passkeyRemoved"));
          close();
          await refresh();
        }),
      );
    return h(
      "form",
      {
        class: "form",
        onsubmit: submitsOnce(submit),
      },
      h("p", null, passkey.name),
      given.view(),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("passkeyRemove"), () => {}, { kind: "danger", type: "submit" }),
      ),
    );
  });
}
