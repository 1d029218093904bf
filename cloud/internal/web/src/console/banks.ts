// The banks; they are asked for once.

import { api } from "../core/api";
import type { Schemas } from "../core/interface";

export type Bank = Schemas["Bank"];

let kept: Promise<Bank[]> | undefined;

export function getBanks(): Promise<Bank[]> {
  kept ??= api
    .get<{ banks: Bank[] }>("/v2/banks")
    .then((answer) => answer.banks)
    .catch((error: unknown) => {
      kept = undefined;
      throw error;
    });
  return kept;
}
