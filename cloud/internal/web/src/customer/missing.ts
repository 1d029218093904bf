// The screens for unknown addresses and for screens that fail.

import type { Child } from "../core/dom";
import { question, sign, warning } from "./icons";
import { button, link, notice } from "./screen";
import { t } from "./text";

export const missing = (): Child =>
  notice(
    sign(question(), "wait"),
    t("missingTitle"),
    t("missingText"),
    link(t("home"), "/", "primary"),
    link(t("my"), "/my"),
  );

export const broken = (): Child =>
  notice(
    sign(warning(), "bad"),
    t("failedTitle"),
    t("serverFailed"),
    button(t("retry"), () => location.reload()),
    location.pathname === "/" ? null : link(t("home"), "/"),
  );
