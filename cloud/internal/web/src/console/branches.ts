// The choice between one's branches.

import type { Signal } from "../core/signal";
import { select } from "./parts";
import { branches, branchName } from "./session";
import { t } from "./text";

/** A list of one's branches. The empty value is all of them. */
export const branchSelect = (value: Signal<string>): HTMLSelectElement =>
  select(value, () => [
    { value: "", text: t("allBranches") },
    ...branches().map((b) => ({ value: b.branch, text: branchName(b) })),
  ]);
