// The contacts that receive alerts, of a branch or of the headquarters.

import { api } from "../core/api";
import { type Child, each, h, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { resource } from "../core/resource";
import { type Readable, type Signal, signal } from "../core/signal";
import { alertKinds, kindName } from "./alerts";
import { edited, keptAttempt, typedRows } from "./draft";
import { FieldError } from "./numbers";
import { button, fetched, field, input, section, select, toast } from "./parts";
import { type Branch, mayChange } from "./session";
import type { Settings } from "./settings";
import { t } from "./text";

type Contact = Schemas["AlertContact"];
type Channel = Contact["channel"];

const channels: Channel[] = ["sms", "alimtalk", "mail", "discord", "webhook"];

/** What is typed in for a contact. */
interface Typed {
  name: string;
  channel: string;
  to: string;
  from: string;
  until: string;
  wait: string;
  kinds: string[];
}

/** A contact that is being edited. */
type Draft = { id: number } & { [field in keyof Typed]: Signal<Typed[field]> };

let serial = 0;

const draft = (typed: Typed): Draft => ({
  id: ++serial,
  name: signal(typed.name),
  channel: signal(typed.channel),
  to: signal(typed.to),
  from: signal(typed.from),
  until: signal(typed.until),
  wait: signal(typed.wait),
  kinds: signal(typed.kinds),
});

const typedOf = (d: Draft): Typed => ({
  name: d.name(),
  channel: d.channel(),
  to: d.to(),
  from: d.from(),
  until: d.until(),
  wait: d.wait(),
  kinds: d.kinds(),
});

const empty: Typed = { name: "", channel: "sms", to: "", from: "", until: "", wait: "0", kinds: [] };

const draftOf = (c: Contact): Draft =>
  draft({
    name: c.name,
    channel: c.channel,
    to: c.to,
    from: c.hours?.from ?? "",
    until: c.hours?.to ?? "",
    wait: String(c.escalateAfterMinutes),
    kinds: c.kinds ?? [],
  });

const contactOf = ({ name, channel, to, from, until, wait, kinds }: Typed): Contact => ({
  name: name.trim(),
  channel: channel as Channel,
  to: to.trim(),
  kinds: kinds as Contact["kinds"],
  hours: from || until ? { from, to: until } : null,
  escalateAfterMinutes: Number(wait) || 0,
});

/** Edits the list of contacts of a branch, or of the headquarters. It keeps what was typed until it is saved. */
function editor(of: string, contacts: readonly Contact[], save: (contacts: Contact[]) => Promise<unknown>): Child {
  const rows = signal(contacts.map(draftOf));
  const { run, view } = keptAttempt(`contacts-${of}`, { rows: edited(typedRows(rows, typedOf, draft)) });
  const store = async () => {
    if (await run(() => save(rows.peek().map((d) => contactOf(typedOf(d)))))) toast(t("saved"));
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
      button(t("addContact"), () => rows.set([...rows.peek(), draft(empty)])),
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

/** Rejects a save over a list that another administrator has changed since it was read: a contact would be lost. */
function unchanged(now: readonly Contact[], read: readonly Contact[]): void {
  if (JSON.stringify(now) !== JSON.stringify(read)) throw new FieldError(t("contactsNewer"));
}

/** The contacts of a branch, in its settings. */
export function contactsPart(branch: Branch, data: Readable<Settings>, refresh: () => Promise<void>): Child {
  const path = `/v2/admin/branches/${branch.branch}/settings`;
  let read = data.peek().alertContacts;
  return editor(branch.branch, read, async (alertContacts) => {
    const { rooms: _, channels: __, ...now } = await api.get<Settings>(path);
    unchanged(now.alertContacts, read);
    await api.put(path, { ...now, alertContacts });
    await refresh();
    read = data.peek().alertContacts;
  });
}

/** The contacts of the headquarters. */
export function ownContacts(): Child {
  const path = "/v2/admin/alert-contacts";
  const fetchList = async () => (await api.get<{ alertContacts: Contact[] }>(path)).alertContacts;
  const source = resource(fetchList);
  return section(
    t("contactsTitle"),
    fetched(source, (data) => {
      let read = data.peek();
      return editor("", read, async (alertContacts) => {
        unchanged(await fetchList(), read);
        await api.put(path, { alertContacts });
        read = await fetchList();
      });
    }),
  );
}
