// The page of a refund link: the guest enters the account of a refund, once.

import { refusedWith } from "../core/api";
import { type Child, match } from "../core/dom";
import { resource } from "../core/resource";
import { signal } from "../core/signal";
import { refundFields } from "./cancel";
import { checkAll } from "./field";
import { check, question, sign } from "./icons";
import { actions, attempt, button, fetched, heading, notice, trouble } from "./screen";
import { enterRefundAccount, refundLink } from "./service";
import { t, won } from "./text";

export function refundPage({ token = "" }: Record<string, string>): Child {
  const found = resource(async () => {
    try {
      return await refundLink(token);
    } catch (error) {
      if (refusedWith(error, 404)) return null;
      throw error;
    }
  });
  return fetched(found, (data) => {
    const link = data.peek();
    return link ? screen(token, link.amount) : gone();
  });
}

const gone = (): Child => notice(sign(question(), "wait"), t("refundLinkGone"), t("refundLinkGoneText"));

function screen(token: string, amount: number): Child {
  const sent = signal(false);
  return match(sent, (is) =>
    is
      ? notice(sign(check(), "good"), t("refundLinkDone"), t("refundLinkDoneText"))
      : form(token, amount, () => sent.set(true)),
  );
}

function form(token: string, amount: number, done: () => void): Child {
  const account = refundFields();
  const { busy, problem, run } = attempt();
  const submit = async () => {
    problem.set("");
    if (!checkAll(account.fields)) return;
    const a = account.read();
    await run(async () => {
      await enterRefundAccount(token, {
        refundBankCode: a.refundReceiveAccountBank,
        refundAccount: a.refundReceiveAccountNumber,
        refundHolder: a.refundReceiveAccountHolderName,
      });
      done();
    });
  };
  return [
    heading(t("refundLinkTitle"), t("refundLinkText", { amount: won(amount) })),
    account.view,
    trouble(problem),
    actions(button(t("refundLinkSend"), () => void submit(), { busy })),
  ];
}
