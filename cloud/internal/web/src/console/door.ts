// Opens a door and shows the result.

import { ApiError, api } from "../core/api";
import { h, match, when } from "../core/dom";
import type { Schemas } from "../core/interface";
import { onCleanup, signal } from "../core/signal";
import { button, dialog, explain } from "./parts";
import type { Branch } from "./session";
import { t } from "./text";

export type Outcome = Schemas["DoorResult"];

const patience = 9_000; // ms; the service answers within seven seconds

/** Requests a door and waits for its result. A missing answer counts as a time-out. */
export async function unlock(branch: string, kind: "front" | "room", roomNo?: string): Promise<Outcome> {
  const { requestId } = await api.post<{ requestId: string }>(
    `/admin/door/v2/unlock/${branch}/${kind}${kind === "room" ? `/${roomNo}` : ""}`,
  );
  return new Promise((resolve) => {
    const stream = new EventSource(`/api/admin/door/v2/unlock/subscribe?requestId=${encodeURIComponent(requestId)}`);
    const end = (outcome: Outcome) => {
      clearTimeout(timer);
      stream.close();
      resolve(outcome);
    };
    const timer = setTimeout(() => end({ status: "TIMEOUT", device: null, failoverKey: null }), patience);
    stream.addEventListener("door-result", (e) => end(JSON.parse((e as MessageEvent<string>).data) as Outcome));
    stream.addEventListener("error", () => end({ status: "TIMEOUT", device: null, failoverKey: null }));
  });
}

type State = { is: "asked" } | { is: "failed"; why: string } | { is: "ended"; outcome: Outcome };

/** Opens a door in a dialog: a second press confirms, then the result is shown. */
export function openDoor(branch: Branch, kind: "front" | "room", roomNo?: string): void {
  const name = kind === "front" ? t("frontDoor") : t("roomDoor", { n: roomNo! });
  dialog(t("openDoorTitle", { name }), (close) => {
    const state = signal<State | null>(null);
    let gone = false;
    onCleanup(() => (gone = true));
    const press = async () => {
      state.set({ is: "asked" });
      let next: State;
      try {
        next = { is: "ended", outcome: await unlock(branch.branch, kind, roomNo) };
      } catch (error) {
        next = {
          is: "failed",
          why: error instanceof ApiError && error.status === 400 ? t("doorRefused") : explain(error),
        };
      }
      if (gone) return;
      state.set(next);
      if (opened()) closing.focus(); // the pressed button has disappeared
    };
    const opened = () => {
      const s = state();
      return s?.is === "ended" && s.outcome.status === "SUCCESS";
    };
    const closing = button(t("close"), close, { kind: "plain" });
    return h(
      "div",
      { class: "opendoor" },
      h(
        "div",
        { role: "status", "aria-live": "assertive" },
        match(state, (s) => (s ? told(s) : h("p", null, t("openDoorText", { name })))),
      ),
      h(
        "div",
        { class: "footer" },
        closing,
        when(
          () => !opened(),
          () =>
            button(() => t(state() && state()!.is !== "asked" ? "openAgain" : "openDo"), press, { kind: "primary" }),
        ),
      ),
    );
  });
}

function told(s: State): HTMLElement {
  if (s.is === "asked")
    return h("div", { class: "result wait" }, h("span", { class: "spinner" }), h("p", null, t("doorAsked")));
  if (s.is === "failed") return h("div", { class: "result bad" }, h("p", null, s.why));
  const { status, failoverKey, failoverKind } = s.outcome;
  if (status === "SUCCESS") return h("div", { class: "result good" }, h("b", null, t("doorOpened")));
  return h(
    "div",
    { class: "result bad" },
    h("b", null, t(status === "FAILED" ? "doorFailed" : "doorTimeout")),
    failoverKey
      ? [
          h("p", null, t(failoverKind === "code" ? "doorCode" : "doorPin")),
          h("p", { class: "pin" }, failoverKey.split("").join(" ")),
        ]
      : h("p", null, t("doorCall")),
  );
}
