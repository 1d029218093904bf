// The company as guests see it: facts, names, colour, logo, and the terms with the privacy policy.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { type Signal, signal } from "../core/signal";
import { editedAll, keptAttempt, unchangedSince } from "./draft";
import { entitiesPart } from "./entities";
import { factFields, facts, labelOf, signalsOf, valuesOf } from "./facts";
import { attempt, button, chip, dialog, fetched, field, heading, input, section, table, toast } from "./parts";
import { localText, t } from "./text";

type Profile = Schemas["CompanyProfile"];
type Text = Schemas["LegalText"];

const names = ["nameKo", "nameEn", "messagePrefix", "color"] as const;
const path = "/v2/admin/company";

const fetchTexts = async () => (await api.get<{ texts: Text[] }>(`${path}/texts`)).texts;

export function companyScreen(): Child {
  const profile = resource(() => api.get<Profile>(path));
  const texts = resource(fetchTexts);
  return [
    heading(t("navCompany")),
    fetched(profile, (data) => [profileForm(data.peek(), profile.refresh), () => logoPart(data(), profile.refresh)]),
    entitiesPart(),
    fetched(texts, (data) => () => textsPart(data(), texts.refresh)),
  ];
}

function profileForm(profile: Profile, refresh: () => Promise<void>): Child {
  const company = signalsOf(facts, profile.company);
  const brand = signalsOf(names, profile.brand);
  const { run, view } = keptAttempt("company", editedAll({ ...company, ...brand }));
  const texts = (p: Profile) => [p.company, p.brand];
  let read = profile;
  const save = () =>
    run(async () => {
      unchangedSince(texts(read), texts(await api.get<Profile>(path)));
      read = await api.put<Profile>(path, { company: valuesOf(company), brand: valuesOf(brand) });
      await refresh();
      toast(t("saved"));
    });
  return section(
    t("companyFacts"),
    profile.missing.length
      ? h("p", { class: "hint" }, t("companyMissing", { list: profile.missing.map(labelOf).join(", ") }))
      : null,
    h(
      "div",
      { class: "form" },
      factFields(company),
      field(t("brandNameKo"), input(brand.nameKo, { maxlength: 20 })),
      field(t("brandNameEn"), input(brand.nameEn, { maxlength: 20 })),
      field(t("messagePrefix"), input(brand.messagePrefix, { maxlength: 20 }), t("messagePrefixHint")),
      field(t("brandColor"), input(brand.color, { maxlength: 7, placeholder: "#1b64da" }), t("brandColorHint")),
    ),
    view(),
    h("div", { class: "row" }, button(t("save"), save, { kind: "primary" })),
  );
}

function logoPart(profile: Profile, refresh: () => Promise<void>): Child {
  const { run, view } = attempt();
  const change = (request: () => Promise<unknown>) =>
    run(async () => {
      await request();
      await refresh();
      toast(t("saved"));
    });
  const upload = async (event: Event) => {
    const picture = (event.target as HTMLInputElement).files?.[0];
    if (picture) await change(async () => api.put<Profile>(`${path}/logo`, { data: await base64(picture) }));
  };
  return section(
    t("logo"),
    profile.logo ? h("p", null, h("img", { src: profile.logo, alt: t("logo"), height: 48 })) : null,
    field(t("logoFile"), h("input", { type: "file", accept: "image/png,image/jpeg", onchange: upload }), t("logoHint")),
    view(),
    profile.logo
      ? h(
          "div",
          { class: "row" },
          button(t("logoRemove"), () => change(() => api.delete<Profile>(`${path}/logo`))),
        )
      : null,
  );
}

const base64 = async (file: File): Promise<string> =>
  btoa(String.fromCharCode(...new Uint8Array(await file.slice(0, 1 << 16).arrayBuffer())));

function textsPart(texts: Text[], refresh: () => Promise<void>): Child {
  return section(
    t("legalTexts"),
    h("p", { class: "hint" }, t("legalTextsHint")),
    h(
      "div",
      { class: "row" },
      button(t("addVersion"), () => openVersion(texts[0]!, refresh), { kind: "primary" }),
    ),
    table<Text>(
      t("legalTexts"),
      [
        { title: t("textVersion"), cell: (x) => h("b", null, x.version) },
        { title: t("textSince"), cell: (x) => localText(x.createdAt) },
        { title: t("colState"), cell: (x) => (x === texts[0] ? chip(t("valid"), "good") : chip(t("earlier"), "over")) },
        {
          title: "",
          kind: "action",
          cell: (x) =>
            h(
              "a",
              { href: `/terms?version=${encodeURIComponent(x.version)}`, target: "_blank", rel: "noopener" },
              t("read"),
            ),
        },
      ],
      texts,
    ),
  );
}

const parts = ["termsKo", "termsEn", "privacyKo", "privacyEn"] as const;

/** A new version starts from the current one. */
function openVersion(current: Text, refresh: () => Promise<void>): void {
  dialog(t("addVersion"), (close) => {
    const version = signal("");
    const edited = signalsOf(parts, current);
    const { run, view } = keptAttempt("legal-text", { version, ...editedAll(edited) });
    const save = () =>
      run(async () => {
        unchangedSince(current.version, (await fetchTexts())[0]?.version);
        await api.post<null>(`${path}/texts`, { version: version.peek().trim(), ...valuesOf(edited) });
        await refresh();
        close();
        toast(t("saved"));
      });
    return [
      h(
        "div",
        { class: "form" },
        field(
          t("textVersion"),
          input(version, { maxlength: 20, autofocus: true, placeholder: "2027-01-01" }),
          t("versionHint"),
        ),
        parts.map((part) => field(t(`text_${part}`), area(edited[part]))),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary", disabled: () => version().trim() === "" }),
      ),
    ];
  });
}

const area = (value: Signal<string>): HTMLElement =>
  h("textarea", {
    rows: 8,
    maxlength: 20_000,
    value: () => value(),
    oninput: (e: Event) => value.set((e.target as HTMLTextAreaElement).value),
  });
