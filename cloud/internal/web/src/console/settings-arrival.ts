// The way from the street to the rooms of a branch, step by step, in Korean and English.

import { api } from "../core/api";
import { type Child, h } from "../core/dom";
import type { Schemas } from "../core/interface";
import { english } from "../core/language";
import { resource } from "../core/resource";
import { type Readable, signal } from "../core/signal";
import { editedAll, keptAttempt } from "./draft";
import { attempt, button, dialog, fetched, field, toast } from "./parts";
import { type Branch, mayChange } from "./session";
import { area } from "./settings-showcase";
import { t } from "./text";
import { photoInput, uploadOf } from "./upload";

type Step = Schemas["Arrival"]["steps"][number];

const maxSteps = 8;

const address = (branch: Branch): string => `/v2/admin/branches/${branch.branch}/arrival`;

export function arrivalPart(branch: Branch): Child {
  const source = resource(async () => {
    const { steps } = await api.get<Schemas["Arrival"]>(`/v2/branches/${branch.branch}/arrival`);
    return steps;
  });
  return [h("p", { class: "hint" }, t("arrivalHint")), fetched(source, (steps) => list(branch, steps, source.refresh))];
}

function list(branch: Branch, steps: Readable<Step[]>, refresh: () => Promise<void>): Child {
  const { run, view } = attempt();
  const change = (action: () => Promise<unknown>) => () =>
    run(async () => {
      await action();
      await refresh();
    });
  const actions = (step: Step, i: number): Child => {
    const act = (what: string, action: () => unknown, disabled = false) =>
      button(what, action, { label: `${what} ${t("arrivalStep", { n: i + 1 })}`, disabled: () => disabled });
    const move = (position: number) =>
      change(() => api.put(`${address(branch)}/${step.id}`, { text: step.text, position }));
    return h(
      "div",
      { class: "row" },
      act("↑", move(i), i === 0),
      act("↓", move(i + 2), i === steps().length - 1),
      act(t("edit"), () => openStep(branch, step, i + 1, refresh)),
      act(
        t("delete"),
        change(() => api.delete(`${address(branch)}/${step.id}`)),
      ),
    );
  };
  return [
    () =>
      steps().length === 0
        ? h("p", { class: "nothing" }, t("nothing"))
        : h(
            "ol",
            { class: "steps" },
            steps().map((step, i) =>
              h("li", null, h("p", null, textOf(step)), picture(step), mayChange() ? actions(step, i) : null),
            ),
          ),
    view(),
    () => {
      if (!mayChange()) return null;
      return steps().length >= maxSteps
        ? h("p", { class: "hint" }, t("arrivalFull"))
        : button(t("arrivalAdd"), () => openStep(branch, null, 0, refresh));
    },
  ];
}

const textOf = ({ text }: Step): string => (english() ? text.en : text.ko);

function picture(step: Step): Child {
  const [smallest] = step.sources;
  return smallest ? h("img", { src: smallest.url, width: smallest.width, height: smallest.height, alt: "" }) : null;
}

/** Edits the text of a step at a position, or adds one with a photo. */
function openStep(branch: Branch, step: Step | null, position: number, refresh: () => Promise<void>): void {
  dialog(step ? t("arrivalStep", { n: position }) : t("arrivalAdd"), (close) => {
    const [ko, en] = [signal(step?.text.ko ?? ""), signal(step?.text.en ?? "")];
    const file = signal<File | null>(null);
    const { run, view } = keptAttempt(`arrival-${branch.branch}-${step?.id ?? "new"}`, editedAll({ ko, en }));
    const save = () =>
      run(async () => {
        const text = { ko: ko.peek().trim(), en: en.peek().trim() };
        const photo = file.peek();
        if (step) await api.put(`${address(branch)}/${step.id}`, { text, position });
        else await api.post(address(branch), { text, data: photo ? await uploadOf(photo) : null });
        await refresh();
        toast(t("saved"));
        close();
      });
    return [
      h(
        "div",
        { class: "form" },
        field(t("arrivalKo"), area(ko, 200)),
        field(t("arrivalEn"), area(en, 200, "en")),
        step ? null : field(t("photoFile"), photoInput(file), t("arrivalPhotoHint")),
      ),
      view(),
      h(
        "div",
        { class: "footer" },
        button(t("back"), close, { kind: "plain" }),
        button(t("save"), save, { kind: "primary", disabled: () => !ko().trim() || !en().trim() }),
      ),
    ];
  });
}
