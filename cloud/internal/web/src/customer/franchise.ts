// The inquiry of a person who wants to run a branch.

import { type Child, h, match } from "../core/dom";
import { submits } from "../core/form";
import { signal } from "../core/signal";
import { checkAll, field, tick } from "./field";
import { check, sign } from "./icons";
import { emailField, mobileField, nameField } from "./person";
import { actions, attempt, heading, link, notice, submitButton, trouble } from "./screen";
import { inquire } from "./service";
import { t } from "./text";

export function franchisePage(): Child {
  const sent = signal(false);
  return match(sent, (is) =>
    is
      ? notice(sign(check(), "good"), t("inquiryDone"), t("inquiryDoneText"), link(t("home"), "/", "primary"))
      : form(() => sent.set(true)),
  );
}

function form(done: () => void): Child {
  const required = (text: string) => (v: string) => (v ? "" : text);
  const [name, mobile, email] = [nameField(), mobileField(), emailField()];
  const region = field({
    id: "region",
    label: t("fieldRegion"),
    problem: required(t("needRegion")),
    attributes: { maxlength: 100, required: true },
  });
  const message = field({
    id: "message",
    label: t("fieldMessage"),
    problem: required(t("needMessage")),
    attributes: { maxlength: 2000, required: true },
  });
  const consent = signal(false);
  const { busy, problem, run } = attempt();
  const submit = async () => {
    problem.set("");
    if (!checkAll([name, mobile, email, region, message])) return;
    if (!consent()) return problem.set(t("needInquiryConsent"));
    await run(async () => {
      await inquire({
        name: name.value().trim(),
        mobileNum: mobile.value().trim(),
        email: email.value().trim(),
        region: region.value().trim(),
        message: message.value().trim(),
        privacyConsent: true,
      });
      done();
    });
  };
  return h(
    "form",
    {
      novalidate: true,
      onsubmit: submits(submit, busy),
    },
    heading(t("franchiseTitle"), t("franchiseText")),
    name.view,
    mobile.view,
    email.view,
    region.view,
    message.view,
    tick("inquiry-consent", t("inquiryConsent"), consent),
    h("p", { class: "fine" }, t("inquiryConsentText")),
    trouble(problem),
    actions(submitButton(t("sendInquiry"), busy)),
  );
}
