// The administrators: accounts, roles, branches, password resets.

import { api } from "../core/api";
import { type Child, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { signal } from "../core/signal";
import { branchChoices } from "./branches";
import { edited, keptAttempt, unchangedSince } from "./draft";
import {
  attempt,
  button,
  chip,
  copy,
  dialog,
  explain,
  fetched,
  field,
  heading,
  input,
  question,
  section,
  select,
  table,
  toast,
} from "./parts";
import { me } from "./session";
import { type TextKey, t } from "./text";

type Person = Schemas["Administrator"];

export function peopleScreen(): Child {
  const source = resource(fetchPeople);
  return [
    heading(
      t("navPeople"),
      button(t("addPerson"), () => openPerson(null, source.refresh), { kind: "primary" }),
    ),
    fetched(
      source,
      (data) => () =>
        table<Person>(
          t("navPeople"),
          [
            {
              title: t("loginId"),
              cell: (p) => [h("b", null, p.id), p.demo ? [" ", chip(t("demoSecret"), "hold")] : null],
            },
            { title: t("role"), cell: (p) => t(`role_${p.role}`) },
            { title: t("branches"), kind: "wide", cell: (p) => (p.role === "hq" ? t("all") : p.branches.join(", ")) },
            { title: t("totp"), cell: (p) => (p.totp ? chip(t("on"), "good") : t("off")) },
            { title: t("sessions"), kind: "number", cell: (p) => p.sessions },
            {
              title: t("colState"),
              cell: (p) => (p.disabled ? chip(t("disabled"), "over") : chip(t("valid"), "good")),
            },
            {
              title: "",
              kind: "action",
              cell: (p) => button(t("edit"), () => openPerson(p, source.refresh), { label: `${t("edit")} ${p.id}` }),
            },
          ],
          data(),
        ),
    ),
    personalData(),
  ];
}

/** Generates a random password. */
function generate(): string {
  const letters = "abcdefghijkmnpqrstuvwxyz23456789";
  return Array.from(
    crypto.getRandomValues(new Uint8Array(20)),
    (b, i) => (i && i % 5 === 0 ? "-" : "") + letters[b % letters.length],
  ).join("");
}

const fetchPeople = async () =>
  (await api.get<{ administrators: Person[] }>("/v2/admin/administrators")).administrators;

const rightsOf = (p: Person | undefined) => [p?.role, [...(p?.branches ?? [])].sort()];

function openPerson(person: Person | null, refresh: () => Promise<void>): void {
  dialog(person ? person.id : t("addPerson"), (close) => {
    const id = signal(person?.id ?? "");
    const role = signal<string>(person?.role ?? "manager");
    const password = signal(person ? "" : generate());
    const chosen = signal<string[]>(person?.role === "hq" ? [] : (person?.branches ?? []));
    const branchesTyped = Object.assign(() => JSON.stringify([...chosen()].sort()), {
      set: (text: string) => chosen.set(JSON.parse(text) as string[]),
    });
    const { run, view } = keptAttempt(`person-${person?.id ?? "new"}`, {
      id,
      role: edited(role),
      branches: edited(branchesTyped),
    });
    const call = (action: () => Promise<unknown>, text: string) => () =>
      run(async () => {
        await action();
        toast(text);
        await refresh();
        close();
      });
    const path = `/v2/admin/administrators/${person?.id ?? ""}`;
    const given = () => ({ role: role.peek(), branches: role.peek() === "hq" ? [] : chosen.peek() });
    const save = person
      ? call(async () => {
          unchangedSince(rightsOf(person), rightsOf((await fetchPeople()).find((p) => p.id === person.id)));
          await api.put(path, given());
        }, t("saved"))
      : call(
          () => api.post("/v2/admin/administrators", { id: id.peek().trim(), password: password.peek(), ...given() }),
          t("saved"),
        );
    return [
      h(
        "div",
        { class: "form" },
        person
          ? null
          : field(
              t("loginId"),
              input(id, { maxlength: 40, autocapitalize: "none", autofocus: true }),
              t("loginIdHint"),
            ),
        person ? null : field(t("password"), input(password, { maxlength: 256 }), t("passwordHint")),
        field(
          t("role"),
          select(role, () =>
            (["hq", "manager", "viewer", "front-desk", "accountant", "cleaner"] as const).map((r) => ({
              value: r,
              text: t(`role_${r}`),
            })),
          ),
        ),
        when(
          () => role() !== "hq",
          () => h("fieldset", null, h("legend", null, t("branches")), branchChoices(chosen)),
        ),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary", disabled: () => role() !== "hq" && chosen().length === 0 }),
      ),
      person ? danger(person, path, call) : null,
    ];
  });
}

function danger(
  person: Person,
  path: string,
  call: (action: () => Promise<unknown>, text: string) => () => Promise<boolean>,
): Child {
  const password = generate();
  const self = person.id === me()?.adminLoginId;
  const asked = (action: TextKey, text: TextKey, run: () => Promise<unknown>) => () =>
    question(t(action), t(text, { id: person.id }), t(action), run);
  return h(
    "details",
    null,
    h("summary", null, t("more")),
    h(
      "div",
      { class: "form" },
      field(t("newPassword"), h("input", { type: "text", value: password, readonly: true }), t("resetHint")),
    ),
    h(
      "div",
      { class: "row wrap" },
      button(t("copy"), () => copy(password)),
      button(
        t("resetPassword"),
        asked(
          "resetPassword",
          "resetAsk",
          call(() => api.post(`${path}/password`, { password }), t("passwordReset")),
        ),
      ),
      person.totp
        ? button(
            t("removeTotp"),
            asked(
              "removeTotp",
              "removeTotpAsk",
              call(() => api.delete(`${path}/totp`), t("saved")),
            ),
          )
        : null,
      person.sessions
        ? button(
            t("endSessions"),
            asked(
              "endSessions",
              "endSessionsAsk",
              call(() => api.delete(`${path}/sessions`), t("sessionsEnded")),
            ),
          )
        : null,
      self
        ? null
        : button(
            t(person.disabled ? "enable" : "disable"),
            asked(
              person.disabled ? "enable" : "disable",
              person.disabled ? "enableAsk" : "disableAsk",
              call(() => api.patch(path, { disabled: !person.disabled }), t("saved")),
            ),
            { kind: "danger" },
          ),
    ),
  );
}

/** The personal data of one guest: export and erasure. */
function personalData(): HTMLElement {
  const contact = signal("");
  const { run, view } = attempt();
  const save = () =>
    run(async () => {
      const data = await api.post<unknown>("/v2/admin/personal-data/export", { contact: contact.peek().trim() });
      const link = h("a", {
        href: URL.createObjectURL(new Blob([JSON.stringify(data, null, 2)], { type: "application/json" })),
        download: "personal-data.json",
      });
      link.click();
    });
  const erase = () =>
    dialog(t("eraseTitle"), (close) => {
      const word = signal("");
      const doIt = async () => {
        try {
          const { reservations } = await api.post<{ reservations: number }>("/v2/admin/personal-data/erase", {
            contact: contact.peek().trim(),
          });
          toast(t("erased", { n: reservations }));
          close();
        } catch (error) {
          toast(explain(error), "bad");
        }
      };
      return [
        h("p", null, t("eraseText", { contact: contact.peek() })),
        field(t("eraseWord", { word: t("eraseConfirm") }), input(word, { autofocus: true })),
        h(
          "div",
          { class: "footer" },
          button(t("back"), close, { kind: "plain" }),
          button(t("erase"), doIt, { kind: "danger", disabled: () => word() !== t("eraseConfirm") }),
        ),
      ];
    });
  const empty = () => contact().trim().length < 5;
  return section(
    t("personalData"),
    h("p", { class: "hint" }, t("personalDataHint")),
    field(t("contact"), input(contact, { maxlength: 100, placeholder: "010-0000-0000" })),
    view(),
    h(
      "div",
      { class: "row" },
      button(t("exportPerson"), save, { disabled: empty }),
      button(t("erase"), erase, { kind: "danger", disabled: empty }),
    ),
  );
}
