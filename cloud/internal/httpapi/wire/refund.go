package wire

import (
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// RefundAccount is the bank account in a request to which the money of a virtual account is refunded.
type RefundAccount struct {
	Bank   *string `json:"refundReceiveAccountBank"`
	Number *string `json:"refundReceiveAccountNumber"`
	Holder *string `json:"refundReceiveAccountHolderName"`
}

// Account reads the refund account; nil if none is given. Whether one is needed depends on the payment.
func (b RefundAccount) Account() (*toss.RefundAccount, error) {
	return b.AccountOf("refundReceiveAccountBank", "refundReceiveAccountNumber", "refundReceiveAccountHolderName")
}

// AccountOf is Account for a request with other names of the fields, which its errors use.
func (b RefundAccount) AccountOf(bankField, numberField, holderField string) (*toss.RefundAccount, error) {
	if Blank(b.Bank) && Blank(b.Number) && Blank(b.Holder) {
		return nil, nil
	}
	bank, err := Text(bankField, b.Bank, 10)
	if err != nil {
		return nil, err
	}
	if _, ok := booking.BankByCode(bank); !ok {
		return nil, UnknownValue(bankField)
	}
	number, err := Text(numberField, b.Number, 20)
	if err != nil {
		return nil, err
	}
	if strings.Trim(number, "0123456789- ") != "" || strings.Trim(number, "- ") == "" {
		return nil, Malformed(numberField)
	}
	holder, err := Text(holderField, b.Holder, 60)
	if err != nil {
		return nil, err
	}
	return &toss.RefundAccount{Bank: bank, Number: number, Holder: holder}, nil
}
