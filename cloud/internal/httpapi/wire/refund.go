package wire

import (
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
	if Blank(b.Bank) && Blank(b.Number) && Blank(b.Holder) {
		return nil, nil
	}
	bank, err := Text("refundReceiveAccountBank", b.Bank, 10)
	if err != nil {
		return nil, err
	}
	if _, ok := booking.BankByCode(bank); !ok {
		return nil, UnknownValue("refundReceiveAccountBank")
	}
	number, err := Text("refundReceiveAccountNumber", b.Number, 20)
	if err != nil {
		return nil, err
	}
	for _, r := range number {
		if (r < '0' || r > '9') && r != '-' && r != ' ' {
			return nil, Malformed("refundReceiveAccountNumber")
		}
	}
	holder, err := Text("refundReceiveAccountHolderName", b.Holder, 60)
	if err != nil {
		return nil, err
	}
	return &toss.RefundAccount{Bank: bank, Number: number, Holder: holder}, nil
}
