// Photos, a description and amenities of a room, in Korean and English.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { english } from "../core/language";
import { type Readable, type Signal, signal } from "../core/signal";
import { editedAll, keepTyped, keptAttempt } from "./draft";
import { attempt, button, dialog, explain, field, input, toast } from "./parts";
import type { Branch } from "./session";
import { t } from "./text";
import { photoInput, uploadOf } from "./upload";

type Profile = Schemas["RoomProfiles"]["rooms"][number];
type Photo = Schemas["RoomPhoto"];

const maxPhotos = 6;

const read = async (branch: Branch, roomNo: string): Promise<Profile> => {
  const { rooms } = await api.get<Schemas["RoomProfiles"]>(`/v2/branches/${branch.branch}/rooms`);
  return rooms.find((r) => r.roomNo === roomNo)!;
};

export async function openShowcase(branch: Branch, roomNo: string): Promise<void> {
  const address = `/v2/admin/branches/${branch.branch}/rooms/${roomNo}`;
  let profile: Profile;
  try {
    profile = await read(branch, roomNo);
  } catch (error) {
    toast(explain(error), "bad");
    return;
  }
  dialog(t("showcaseTitle", { n: roomNo }), (close) => {
    const photos = signal(profile.photos);
    const refresh = async () => photos.set((await read(branch, roomNo)).photos);
    return [photosPart(address, photos, refresh), textsPart(address, profile, close)];
  });
}

function photosPart(address: string, photos: Readable<Photo[]>, refresh: () => Promise<void>): Child {
  const ko = signal("");
  const en = signal("");
  const { forget, notice } = keepTyped(`photo-${address}`, { ko, en });
  const { run, view } = attempt();
  const file = signal<File | null>(null);
  const choose = photoInput(file);
  const add = () =>
    run(async () => {
      await api.post(`${address}/photos`, {
        data: await uploadOf(file.peek()!),
        alt: { ko: ko.peek().trim(), en: en.peek().trim() },
      });
      choose.value = "";
      file.set(null);
      ko.set("");
      en.set("");
      forget();
      await refresh();
      toast(t("photoAdded"));
    });
  const remove = (photo: Photo) =>
    run(async () => {
      await api.delete(`${address}/photos/${photo.id}`);
      await refresh();
      toast(t("deleted"));
    });
  return [
    h("h3", null, t("photos")),
    () =>
      h(
        "ul",
        { class: "photos" },
        photos().map((p) =>
          h(
            "li",
            null,
            thumbnail(p),
            button(t("delete"), () => remove(p), { label: nameOf(p) }),
          ),
        ),
      ),
    () =>
      photos().length >= maxPhotos
        ? h("p", { class: "hint" }, t("photosFull"))
        : h(
            "div",
            { class: "form" },
            field(t("photoFile"), choose, t("photoHint")),
            field(t("altKo"), input(ko, { maxlength: 100 }), t("altHint")),
            field(t("altEn"), input(en, { maxlength: 100, lang: "en" })),
            button(t("photoAdd"), add, { disabled: () => !file() || !ko().trim() || !en().trim() }),
          ),
    notice,
    view(),
  ];
}

const nameOf = (p: Photo): string => `${t("delete")} ${altOf(p)}`;
const altOf = (p: Photo): string => (english() ? p.alt.en : p.alt.ko);

const thumbnail = (p: Photo): HTMLElement => {
  const { url, width, height } = p.sources[0]!;
  return h("img", { src: url, width, height, alt: altOf(p) });
};

function textsPart(address: string, profile: Profile, close: () => void): Child {
  const differs = signal("");
  const description = { ko: signal(profile.description.ko), en: signal(profile.description.en) };
  const amenities = {
    ko: signal(profile.amenities.map((a) => a.ko).join("\n")),
    en: signal(profile.amenities.map((a) => a.en).join("\n")),
  };
  const { run, view } = keptAttempt(
    `profile-${address}`,
    editedAll({
      descriptionKo: description.ko,
      descriptionEn: description.en,
      amenitiesKo: amenities.ko,
      amenitiesEn: amenities.en,
    }),
  );
  const save = () => {
    const [ko, en] = [linesOf(amenities.ko.peek()), linesOf(amenities.en.peek())];
    differs.set(ko.length === en.length ? "" : t("amenitiesDiffer", { ko: ko.length, en: en.length }));
    if (differs.peek()) return;
    return run(async () => {
      await api.put(`${address}/profile`, {
        description: { ko: description.ko.peek(), en: description.en.peek() },
        amenities: ko.map((text, i) => ({ ko: text, en: en[i] })),
      });
      toast(t("saved"));
      close();
    });
  };
  return [
    h(
      "div",
      { class: "form" },
      field(t("descriptionKo"), area(description.ko, 500)),
      field(t("descriptionEn"), area(description.en, 500, "en")),
      field(t("amenitiesKo"), area(amenities.ko, 400), t("amenitiesHint")),
      field(t("amenitiesEn"), area(amenities.en, 400, "en")),
    ),
    h("div", { class: "problem", role: "alert" }, () => differs()),
    view(),
    h(
      "div",
      { class: "footer" },
      button(t("back"), close, { kind: "plain" }),
      button(t("save"), save, { kind: "primary" }),
    ),
  ];
}

export const area = (value: Signal<string>, maxlength: number, lang: string | null = null): HTMLElement =>
  h("textarea", {
    rows: 3,
    maxlength,
    lang,
    value: () => value(),
    oninput: (e: Event) => value.set((e.target as HTMLTextAreaElement).value),
  });

const linesOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
