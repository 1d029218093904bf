// One's own recovery codes.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { attempt, button, copy, dialog, section, submitsOnce } from "./parts";
import { proof } from "./passkeys";
import { t } from "./text";

/** Makes new recovery codes, which replace the earlier ones, and shows them once. */
export function recoveryCodes(): Child {
  const given = proof();
  const { run, view } = attempt();
  const submit = () =>
    run(() =>
      given.run(async (body) => {
        show((await api.post<Schemas["RecoveryCodes"]>("/v2/admin/account/recovery-codes", body)).codes);
        given.clear();
      }),
    );
  return section(
    t("recoveryCodes"),
    h("p", { class: "hint" }, t("recoveryText")),
    h(
      "form",
      { class: "form", onsubmit: submitsOnce(submit) },
      given.view(),
      view(),
      h(
        "div",
        { class: "row" },
        button(t("recoveryMake"), () => {}, { type: "submit" }),
      ),
    ),
  );
}

function show(codes: readonly string[]): void {
  dialog(t("recoveryCodes"), (close) => [
    h("p", null, t("recoveryOnce")),
    h(
      "ul",
      { class: "codes" },
      codes.map((code) => h("li", null, h("code", null, code))),
    ),
    h(
      "div",
      { class: "footer" },
      button(t("copy"), () => copy(codes.join("\n"))),
      button(t("close"), close, { kind: "primary" }),
    ),
  ]);
}
