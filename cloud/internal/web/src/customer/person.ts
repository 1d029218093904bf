// The fields of a person, which several forms have.

import { type Field, field, looksLikeEmail, looksLikeMobile, tidyMobile } from "./field";
import { t } from "./text";

export const nameField = (value = ""): Field =>
  field({
    id: "name",
    label: t("fieldName"),
    value,
    problem: (v) => (v ? "" : t("needName")),
    attributes: { autocomplete: "name", maxlength: 50, required: true },
  });

export const mobileField = (value = ""): Field =>
  field({
    id: "mobile",
    label: t("fieldMobile"),
    value,
    tidy: tidyMobile,
    problem: (v) => (looksLikeMobile(v) ? "" : t("needMobile")),
    attributes: { type: "tel", inputmode: "tel", autocomplete: "tel-national", maxlength: 30, required: true },
  });

/** An e-mail address. missing says what is wrong without one. */
export const emailField = (label = t("fieldEmailOnly"), value = "", missing = () => t("needEmail")): Field =>
  field({
    id: "email",
    label,
    value,
    problem: (v) => (v ? (looksLikeEmail(v) ? "" : t("needEmail")) : missing()),
    attributes: { type: "email", inputmode: "email", autocomplete: "email", maxlength: 100 },
  });
