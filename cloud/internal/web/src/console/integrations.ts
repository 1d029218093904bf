// Access for other programs: tokens, and webhooks that deliver the stream of events.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { type Signal, signal } from "../core/signal";
import { keptAttempt } from "./draft";
import { attempt, button, chip, copy, dialog, fetched, field, heading, input, section, table, toast } from "./parts";
import { branches, branchName } from "./session";
import { localText, t } from "./text";

type Token = Schemas["Token"];
type Webhook = Schemas["Webhook"];

const scopes = ["read", "book", "money", "doors", "climate"] as const;

export function integrationsScreen(): Child {
  return [heading(t("navIntegrations")), tokens(), webhooks()];
}

const placesText = (codes: string[]): string => (codes.length ? codes.join(", ") : t("all"));

function tokens(): HTMLElement {
  const source = resource(async () => (await api.get<{ tokens: Token[] }>("/v2/admin/tokens")).tokens);
  return section(
    t("tokens"),
    h("p", { class: "hint" }, t("tokensHint")),
    h(
      "div",
      { class: "row" },
      button(t("addToken"), () => openToken(source.refresh), { kind: "primary" }),
    ),
    fetched(
      source,
      (data) => () =>
        table<Token>(
          t("tokens"),
          [
            { title: t("tokenName"), cell: (k) => h("b", null, k.name) },
            { title: t("scopes"), kind: "wide", cell: (k) => k.scopes.map((s) => t(`scope_${s}`)).join(", ") },
            { title: t("branches"), cell: (k) => placesText(k.branches) },
            { title: t("lastUsedAt"), cell: (k) => (k.lastUsedAt ? localText(k.lastUsedAt) : "–") },
            { title: t("expiresAt"), cell: (k) => (k.expiresAt ? localText(k.expiresAt) : "–") },
            {
              title: "",
              kind: "action",
              cell: (k) =>
                button(
                  t("revoke"),
                  () => confirmRemoval(k.name, t("revokeTokenText"), `tokens/${k.id}`, source.refresh),
                  {
                    label: `${t("revoke")} ${k.name}`,
                  },
                ),
            },
          ],
          data(),
        ),
    ),
  );
}

function openToken(refresh: () => Promise<void>): void {
  dialog(t("addToken"), (close) => {
    const name = signal("");
    const chosen = signal(new Set<string>(["read"]));
    const places = signal(new Set<string>());
    const { run, view } = keptAttempt("token", { name });
    const save = () =>
      run(async () => {
        const { token } = await api.post<Schemas["NewToken"]>("/v2/admin/tokens", {
          name: name.peek().trim(),
          scopes: [...chosen.peek()],
          branches: [...places.peek()],
        });
        await refresh();
        close();
        showSecret(t("tokenOnce"), token);
      });
    return [
      h(
        "div",
        { class: "form" },
        field(t("tokenName"), input(name, { maxlength: 50, autofocus: true })),
        choices(
          t("scopes"),
          scopes.map((s) => [s, t(`scope_${s}`)]),
          chosen,
        ),
        choices(
          t("branchesOrAll"),
          branches().map((b) => [b.branch, branchName(b)]),
          places,
        ),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary", disabled: () => !name().trim() || chosen().size === 0 }),
      ),
    ];
  });
}

/** A list of check boxes. */
function choices(title: string, items: (readonly [string, string])[], chosen: Signal<Set<string>>): HTMLElement {
  const pick = (value: string, on: boolean) => {
    const next = new Set(chosen.peek());
    if (on) next.add(value);
    else next.delete(value);
    chosen.set(next);
  };
  return h(
    "fieldset",
    null,
    h("legend", null, title),
    items.map(([value, text]) =>
      h(
        "label",
        { class: "check" },
        h("input", {
          type: "checkbox",
          checked: chosen.peek().has(value),
          onchange: (e: Event) => pick(value, (e.target as HTMLInputElement).checked),
        }),
        text,
      ),
    ),
  );
}

/** Shows a secret that the service does not show again. */
function showSecret(text: string, secret: string): void {
  dialog(t("secretTitle"), (close) => [
    h("p", null, text),
    field(t("secretTitle"), h("input", { type: "text", value: secret, readonly: true })),
    h(
      "div",
      { class: "footer" },
      button(t("copy"), () => copy(secret)),
      button(t("back"), close, { kind: "primary" }),
    ),
  ]);
}

function confirmRemoval(name: string, text: string, path: string, refresh: () => Promise<void>): void {
  dialog(name, (close) => {
    const { run, view } = attempt();
    const remove = () =>
      run(async () => {
        await api.delete(`/v2/admin/${path}`);
        toast(t("saved"));
        await refresh();
        close();
      });
    return [
      h("p", null, text),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("delete"), remove, { kind: "danger" }),
      ),
    ];
  });
}

function webhooks(): HTMLElement {
  const source = resource(async () => (await api.get<{ webhooks: Webhook[] }>("/v2/admin/webhooks")).webhooks);
  const change = async (w: Webhook) => {
    await api.patch(`/v2/admin/webhooks/${w.id}`, { enabled: !w.enabled });
    await source.refresh();
  };
  return section(
    t("webhooks"),
    h("p", { class: "hint" }, t("webhooksHint")),
    h(
      "div",
      { class: "row" },
      button(t("addWebhook"), () => openWebhook(source.refresh), { kind: "primary" }),
    ),
    fetched(
      source,
      (data) => () =>
        table<Webhook>(
          t("webhooks"),
          [
            { title: t("receiver"), kind: "wide", cell: (w) => h("b", null, w.url) },
            { title: t("branches"), cell: (w) => placesText(w.branches) },
            { title: t("eventTypes"), cell: (w) => placesText(w.types) },
            { title: t("pendingEvents"), kind: "number", cell: (w) => w.pending },
            { title: t("colState"), cell: webhookState },
            {
              title: "",
              kind: "action",
              cell: (w) => [
                button(t(w.enabled ? "disable" : "enable"), () => change(w), {
                  label: `${t(w.enabled ? "disable" : "enable")} ${w.url}`,
                }),
                button(
                  t("remove"),
                  () => confirmRemoval(w.url, t("removeWebhookText"), `webhooks/${w.id}`, source.refresh),
                  { label: `${t("remove")} ${w.url}` },
                ),
              ],
            },
          ],
          data(),
        ),
    ),
  );
}

function webhookState(w: Webhook): Child {
  if (!w.enabled) return chip(t("disabled"), "over");
  if (w.failingSince) return chip(t("receiverAway"), "hold");
  return chip(t("valid"), "good");
}

function openWebhook(refresh: () => Promise<void>): void {
  dialog(t("addWebhook"), (close) => {
    const address = signal("https://");
    const types = signal(new Set<string>());
    const places = signal(new Set<string>());
    const { run, view } = keptAttempt("webhook", { address });
    const save = () =>
      run(async () => {
        const { secret } = await api.post<Schemas["NewWebhook"]>("/v2/admin/webhooks", {
          url: address.peek().trim(),
          types: [...types.peek()],
          branches: [...places.peek()],
        });
        await refresh();
        close();
        showSecret(t("webhookSecretOnce"), secret);
      });
    const families = ["reservation", "door-request", "refund", "alert", "branch"] as const;
    return [
      h(
        "div",
        { class: "form" },
        field(t("receiver"), input(address, { maxlength: 500, type: "url", autofocus: true }), t("receiverHint")),
        choices(
          t("eventTypesOrAll"),
          families.map((f) => [`${f}.*`, `${f}.*`]),
          types,
        ),
        choices(
          t("branchesOrAll"),
          branches().map((b) => [b.branch, branchName(b)]),
          places,
        ),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary", disabled: () => address().trim().length < 10 }),
      ),
    ];
  });
}
