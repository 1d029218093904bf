// The legal entities that sell beside that of the settings, and the branches at which they sell.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { signal } from "../core/signal";
import { editedAll, keptAttempt, unchangedSince } from "./draft";
import { factFields, facts, signalsOf, valuesOf } from "./facts";
import { attempt, button, dialog, fetched, field, input, section, select, table, toast } from "./parts";
import { branches, branchName } from "./session";
import { t } from "./text";

type List = Schemas["LegalEntities"];
type Entity = Schemas["LegalEntity"];

const path = "/v2/admin/entities";

export function entitiesPart(): Child {
  const list = resource(() => api.get<List>(path));
  return fetched(list, (data) => () => entitiesTable(data().entities, list.refresh));
}

function entitiesTable(entities: Entity[], refresh: () => Promise<void>): Child {
  return section(
    t("entities"),
    h("p", { class: "hint" }, t("entitiesHint")),
    h(
      "div",
      { class: "row" },
      button(t("addEntity"), () => openEntity(null, refresh)),
    ),
    table<Entity>(
      t("entities"),
      [
        {
          title: t("entityCode"),
          cell: (x) => [h("b", null, x.entity), x.retiredAt ? ` ${t("entityRetired")}` : ""],
        },
        { title: t("fact_name"), cell: (x) => x.company.name ?? "" },
        { title: t("clientKey"), cell: (x) => x.clientKey },
        { title: "", kind: "action", cell: (x) => button(t("edit"), () => openEntity(x, refresh)) },
        { title: "", kind: "action", cell: (x) => switchButton(x, refresh) },
      ],
      entities,
    ),
    entities.length
      ? assignments(
          entities.filter((x) => !x.retiredAt),
          refresh,
        )
      : null,
  );
}

/** The button that retires an entity whose contract has ended, or takes it back into use. */
function switchButton(x: Entity, refresh: () => Promise<void>): Child {
  const { run, view } = attempt();
  const change = () =>
    run(async () => {
      await api.patch<List>(`${path}/${x.entity}`, { enabled: x.retiredAt !== null });
      await refresh();
      toast(t("saved"));
    });
  return [button(t(x.retiredAt ? "useEntity" : "retireEntity"), change), view()];
}

/** Who sells at each branch. */
function assignments(entities: Entity[], refresh: () => Promise<void>): Child {
  const { run, view } = attempt();
  const choices = [
    { value: "", text: t("entityOfSettings") },
    ...entities.map((e) => ({ value: e.entity, text: e.entity })),
  ];
  const rows = branches().map((b) => {
    const now = entities.find((e) => e.branches.includes(b.branch))?.entity ?? "";
    return { branch: b, now, chosen: signal(now) };
  });
  const save = () =>
    run(async () => {
      for (const { branch, now, chosen } of rows)
        if (chosen.peek() !== now)
          await api.put<List>(`/v2/admin/branches/${branch.branch}/entity`, { entity: chosen.peek() || null });
      await refresh();
      toast(t("saved"));
    });
  return [
    h("h3", null, t("entityBranches")),
    h(
      "div",
      { class: "form" },
      rows.map(({ branch, chosen }) =>
        field(
          branchName(branch),
          select(chosen, () => choices),
        ),
      ),
    ),
    view(),
    h("div", { class: "row" }, button(t("saveEntities"), save)),
  ];
}

function openEntity(entity: Entity | null, refresh: () => Promise<void>): void {
  dialog(entity ? entity.entity : t("addEntity"), (close) => {
    const code = signal(entity?.entity ?? "");
    const company = signalsOf(facts, entity?.company ?? {});
    const keys = signalsOf(["clientKey", "widgetSecretKey", "apiSecretKey"] as const, {
      clientKey: entity?.clientKey ?? "",
    });
    const { run, view } = keptAttempt(`entity-${entity?.entity ?? "new"}`, {
      code,
      ...editedAll({ ...company, clientKey: keys.clientKey }),
    });
    const texts = (e: Entity | null | undefined) => [e?.company, e?.clientKey];
    const save = () =>
      run(async () => {
        const { entities } = await api.get<List>(path);
        unchangedSince(texts(entity), texts(entities.find((e) => e.entity === code.peek().trim())));
        const secrets = Object.fromEntries(Object.entries(valuesOf(keys)).filter(([, value]) => value));
        await api.put<List>(`${path}/${encodeURIComponent(code.peek().trim())}`, {
          company: valuesOf(company),
          clientKey: "",
          ...secrets,
        });
        await refresh();
        close();
        toast(t("saved"));
      });
    const secret = { type: "password", autocomplete: "off", maxlength: 200 };
    const hint = entity ? t("secretKept") : "";
    return [
      h(
        "div",
        { class: "form" },
        entity
          ? null
          : field(t("entityCode"), input(code, { maxlength: 30, placeholder: "seoul" }), t("entityCodeHint")),
        factFields(company),
        field(t("clientKey"), input(keys.clientKey, { maxlength: 200 })),
        field(t("widgetSecretKey"), input(keys.widgetSecretKey, secret), hint),
        field(t("apiSecretKey"), input(keys.apiSecretKey, secret), hint),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary", disabled: () => code().trim() === "" }),
      ),
    ];
  });
}
