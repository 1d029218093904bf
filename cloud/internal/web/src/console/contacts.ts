// The contacts that receive alerts, of a branch or of the head quarters.

import { api } from "../core/api";
import { type Child, each, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { type Readable, type Signal, signal } from "../core/signal";
import { alertKinds, kindName } from "./alerts";
import { attempt, button, fetched, field, input, section, select, toast } from "./parts";
import { type Branch, mayChange } from "./session";
import type { Settings } from "./settings";
import { t } from "./text";

type Contact = Schemas["AlertContact"];
type Channel = Contact["channel"];

const channels: Channel[] = ["sms", "alimtalk", "mail", "discord", "webhook"];

/** A contact that is being edited. */
interface Draft {
  id: number;
  name: Signal<string>;
  channel: Signal<string>;
  to: Signal<string>;
  from: Signal<string>;
  until: Signal<string>;
  wait: Signal<string>;
  kinds: Signal<string[]>;
}

let serial = 0;

const draft = (c: Partial<Contact>): Draft => ({
  id: ++serial,
  name: signal(c.name ?? ""),
  channel: signal<string>(c.channel ?? "sms"),
  to: signal(c.to ?? ""),
  from: signal(c.hours?.from ?? ""),
  until: signal(c.hours?.to ?? ""),
  wait: signal(String(c.escalateAfterMinutes ?? 0)),
  kinds: signal<string[]>(c.kinds ?? []),
});

const contactOf = (d: Draft): Contact => ({
  name: d.name.peek().trim(),
  channel: d.channel.peek() as Channel,
  to: d.to.peek().trim(),
  kinds: d.kinds.peek() as Contact["kinds"],
  hours: d.from.peek() && d.until.peek() ? { from: d.from.peek(), to: d.until.peek() } : null,
  escalateAfterMinutes: Number(d.wait.peek()) || 0,
});

/** Edits a list of contacts. It keeps what was typed until it is saved. */
function editor(contacts: readonly Contact[], save: (contacts: Contact[]) => Promise<unknown>): Child {
  const rows = signal(contacts.map(draft));
  const { run, view } = attempt();
  const store = async () => {
    if (await run(() => save(rows.peek().map(contactOf)))) toast(t("saved"));
  };
  if (!mayChange.peek()) return h("p", null, contacts.map((c) => c.name).join(", ") || t("contactsDefault"));
  return [
    each(
      rows,
      (d) => String(d.id),
      (d) => row(d.peek(), () => rows.set(rows.peek().filter((o) => o !== d.peek()))),
    ),
    when(
      () => rows().length === 0,
      () => h("p", { class: "nothing" }, t("contactsDefault")),
    ),
    view(),
    h(
      "div",
      { class: "row" },
      button(t("addContact"), () => rows.set([...rows.peek(), draft({})])),
      button(t("saveContacts"), store, { kind: "primary" }),
    ),
  ];
}

function row(d: Draft, remove: () => void): HTMLElement {
  const chosen = (kind: string) => () => d.kinds().includes(kind);
  const flip = (kind: string) => () =>
    d.kinds.set(d.kinds.peek().includes(kind) ? d.kinds.peek().filter((k) => k !== kind) : [...d.kinds.peek(), kind]);
  return h(
    "fieldset",
    { class: "contact" },
    h("legend", null, () => d.name() || t("newContact")),
    h(
      "div",
      { class: "inline" },
      field(t("colName"), input(d.name, { maxlength: 50 })),
      field(
        t("contactChannel"),
        select(d.channel, () => channels.map((c) => ({ value: c, text: t(`channel_${c}`) }))),
      ),
      field(t("contactTo"), input(d.to, { maxlength: 500 })),
      field(t("contactFrom"), input(d.from, { type: "time" })),
      field(t("contactUntil"), input(d.until, { type: "time" })),
      field(t("contactWait"), input(d.wait, { type: "number", min: 0, max: 1440 })),
    ),
    h(
      "details",
      null,
      h("summary", null, () => (d.kinds().length ? t("contactKinds", { n: d.kinds().length }) : t("contactAllKinds"))),
      h(
        "div",
        { class: "kinds" },
        alertKinds.map((kind) =>
          h(
            "label",
            null,
            h("input", { type: "checkbox", checked: chosen(kind), onchange: flip(kind) }),
            " ",
            kindName(kind),
          ),
        ),
      ),
    ),
    button(t("delete"), remove, { kind: "plain" }),
  );
}

/** The contacts of a branch, in its settings. */
export function contactsPart(branch: Branch, data: Readable<Settings>, refresh: () => Promise<void>): Child {
  const path = `/v2/admin/branches/${branch.branch}/settings`;
  return editor(data.peek().alertContacts, async (alertContacts) => {
    const { rooms: _, channels: __, ...now } = await api.get<Settings>(path);
    await api.put(path, { ...now, alertContacts });
    await refresh();
  });
}

/** The contacts of the head quarters. */
export function ownContacts(): Child {
  const source = resource(() => api.get<{ alertContacts: Contact[] }>("/v2/admin/alert-contacts"));
  return section(
    t("contactsTitle"),
    fetched(source, (data) =>
      editor(data.peek().alertContacts, (alertContacts) => api.put("/v2/admin/alert-contacts", { alertContacts })),
    ),
  );
}
