// The account to which a refund of a deposit is transferred, as staff enter it in a dialog.

import type { Child } from "../core/dom";
import { type Signal, signal } from "../core/signal";
import { bankChoices } from "./banks";
import { field, input, select } from "./parts";
import { type TextKey, t } from "./text";

export interface RefundAccount {
  bank: Signal<string>;
  number: Signal<string>;
  holder: Signal<string>;
  fields(): Child[];
  /** The account as most requests name its parts. */
  body(): { refundBankCode: string; refundAccount: string; refundHolder: string };
  /** The account as the cancellation and the repetition of a refund name its parts. */
  receiveBody(): {
    refundReceiveAccountBank: string;
    refundReceiveAccountNumber: string;
    refundReceiveAccountHolderName: string;
  };
}

/** Creates an empty account. none is the text of the choice without a bank. */
export function refundAccount(none: TextKey): RefundAccount {
  const [bank, number, holder] = [signal(""), signal(""), signal("")];
  const banks = bankChoices();
  const digits = () => number.peek().replace(/\D/g, "");
  const name = () => holder.peek().trim();
  return {
    bank,
    number,
    holder,
    fields: () => [
      field(
        t("refundBank"),
        select(bank, () => [{ value: "", text: t(none) }, ...banks()]),
      ),
      field(t("refundNumber"), input(number, { inputmode: "numeric", maxlength: 20 })),
      field(t("refundHolder"), input(holder, { maxlength: 60 })),
    ],
    body: () => ({ refundBankCode: bank.peek(), refundAccount: digits(), refundHolder: name() }),
    receiveBody: () => ({
      refundReceiveAccountBank: bank.peek(),
      refundReceiveAccountNumber: digits(),
      refundReceiveAccountHolderName: name(),
    }),
  };
}
