// Photos, descriptions and amenities of rooms.

import { get } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { english } from "../core/language";
import { t } from "./text";

type Photo = Schemas["RoomPhoto"];
type Profile = Schemas["RoomProfiles"]["rooms"][number];

/** What the rooms of a branch show, by number. */
export type Showcase = Map<string, Profile>;

const patience = 2000; // ms

/** Without an answer in time the rooms have no photos: they can be reserved nevertheless. */
export const getShowcase = (branch: string): Promise<Showcase> =>
  Promise.race([
    get<Schemas["RoomProfiles"]>(`/v2/branches/${branch}/rooms`)
      .then(({ rooms }): Showcase => new Map(rooms.map((r) => [r.roomNo, r])))
      .catch((): Showcase => new Map()),
    new Promise<Showcase>((resolve) => setTimeout(() => resolve(new Map()), patience)),
  ]);

export const read = (text: Schemas["BilingualText"]): string => (english() && text.en) || text.ko;

/** A text, marked as Korean if an English page has no translation. */
const marked = (text: Schemas["BilingualText"]): Child =>
  english() && !text.en ? h("span", { lang: "ko" }, text.ko) : read(text);

/**
 * A photo; sizes is its width on the page. Its box has a fixed shape, so nothing moves when it is loaded. Only photos that the
 * first view of a phone shows are eager. A photo that the text beside it describes has no alt.
 */
export function photo(
  { sources, alt }: Pick<Photo, "sources"> & Partial<Photo>,
  sizes = column,
  eager = false,
  name = "photo",
): HTMLElement {
  const { url, width, height } = sources[0]!;
  return h("img", {
    class: name,
    width,
    height,
    alt: alt ? read(alt) : "",
    loading: eager ? null : "lazy",
    decoding: "async",
    sizes,
    srcset: sources.map((s) => `${s.url} ${s.width}w`).join(", "),
    src: url,
  });
}

const eagerThumbnails = 4; // photoview.go has the same

/** The first photo of a branch or room in a small size; index is its place in a list. */
export const thumbnail = (p: Photo, index = eagerThumbnails): HTMLElement =>
  photo({ ...p, sources: [p.sources[0]!] }, "7rem", index < eagerThumbnails, "photo small");

/** The width of a column of cards. */
const column = "(min-width: 34rem) 31.5rem, 100vw";

/** The photo that stands for a room. */
export const cover = (p: Photo | undefined, eager: boolean): Child => (p ? photo(p, column, eager) : null);

export const amenities = (profile: Profile | undefined): Child =>
  profile && profile.amenities.length > 0
    ? h(
        "ul",
        { class: "amenities", "aria-label": t("amenities") },
        profile.amenities.map((a) => h("li", null, marked(a))),
      )
    : null;

/** Everything that a room shows: its photos side by side, the description and the amenities. */
export function wholeShowcase(profile: Profile | undefined): Child {
  if (!profile) return null;
  const { description, photos } = profile;
  return [
    photos.length > 0
      ? h(
          "div",
          { class: "photos", role: "group", "aria-label": t("photos"), tabindex: photos.length > 1 ? 0 : null },
          photos.map((p) => photo(p, column)),
        )
      : null,
    description.ko || description.en ? h("p", { class: "description" }, marked(description)) : null,
    amenities(profile),
  ];
}

/** Whether a room has anything to show. */
export const showsAnything = (p: Profile): boolean =>
  p.photos.length > 0 || p.amenities.length > 0 || Boolean(p.description.ko || p.description.en);
