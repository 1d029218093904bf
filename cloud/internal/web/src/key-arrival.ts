// The way from the street to the room. Its photos load when the guest opens the part.

import type { Schemas } from "./core/interface";
import { get, tools } from "./key-call";

/** Shows the arrival steps of the branch, if it has any. */
export async function connectArrival(main: HTMLElement): Promise<void> {
  const { steps } = await get<Schemas["Arrival"]>(`branches/${main.dataset.branch!}/arrival`);
  const part = main.querySelector<HTMLElement>("#arrival")!;
  part.querySelector("ol")!.append(
    ...steps.map(({ text, sources }) => {
      const step = document.createElement("li");
      step.textContent = text[tools.lang as "ko" | "en"];
      const source = sources.filter(({ width }) => width <= 960).pop() ?? sources[0]; // that of a phone
      if (source) {
        const photo = new Image(source.width, source.height);
        photo.loading = "lazy";
        photo.alt = "";
        photo.src = source.url;
        step.append(photo);
      }
      return step;
    }),
  );
  part.hidden = steps.length === 0;
}
