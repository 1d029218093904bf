// The banks; they are asked for once.

import { api } from "../core/api";
import type { Schemas } from "../core/interface";
import { type Readable, signal } from "../core/signal";
import { type Choice, explain, toast } from "./parts";

type Bank = Schemas["Bank"];

/** The banks to choose from; empty until they are here. If the request fails, the user is notified. */
export function bankChoices(wanted: (bank: Bank) => boolean = () => true): Readable<Choice[]> {
  const choices = signal<Choice[]>([]);
  getBanks().then(
    (list) => choices.set(list.filter(wanted).map((b) => ({ value: b.code, text: b.name }))),
    (error: unknown) => toast(explain(error), "bad"),
  );
  return choices;
}

let kept: Promise<Bank[]> | undefined;

function getBanks(): Promise<Bank[]> {
  kept ??= api
    .get<{ banks: Bank[] }>("/v2/banks")
    .then((answer) => answer.banks)
    .catch((error: unknown) => {
      kept = undefined;
      throw error;
    });
  return kept;
}
