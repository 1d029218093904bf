// The screen for unknown addresses.

import type { Child } from "../core/dom";
import { question, sign } from "./icons";
import { link, notice } from "./screen";
import { t } from "./text";

export const missing = (): Child =>
  notice(
    sign(question(), "wait"),
    t("missingTitle"),
    t("missingText"),
    link(t("home"), "/", "primary"),
    link(t("my"), "/my"),
  );
