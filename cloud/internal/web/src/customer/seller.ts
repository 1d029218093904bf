// The legal entity that the footer names.

import type { Schemas } from "../core/interface";
import { signal } from "../core/signal";

/** The seller of the branch that is shown; null: the operator of the site. A new screen begins with the operator. */
export const seller = signal<Schemas["Company"] | null>(null);
