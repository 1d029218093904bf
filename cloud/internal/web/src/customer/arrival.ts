// The way from the street to the room.

import { type Child, h } from "../core/dom";
import { resource } from "../core/resource";
import { arrivalSteps } from "./service";
import { photo, read } from "./showcase";
import { t } from "./text";

/** The arrival steps of a branch, closed at first. Photos load when it is opened. Without steps nothing is shown. */
export function arrival(branch: string): Child {
  const steps = resource(() => arrivalSteps(branch));
  return () => {
    const found = steps.data();
    if (!found?.length) return null;
    return h(
      "details",
      { class: "arrival" },
      h("summary", null, t("arrival")),
      h(
        "ol",
        null,
        found.map(({ text, sources }) => h("li", null, read(text), sources.length > 0 ? photo({ sources }) : null)),
      ),
    );
  };
}
