package wire

import (
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/money"
)

func TestCashReceiptWish(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		kind, number string
		want         string // digits; empty: refused
	}{
		{"personal", "010-1234-5678", "01012345678"},
		{"personal", "+82 10 1234 5678", "01012345678"},
		{"personal", "0212345678", ""},
		{"personal", "010-1234", ""},
		{"business", "123-45-67891", "1234567891"},
		{"business", "1234567890", ""}, // wrong check digit
		{"business", "123456789", ""},
		{"business", "12345678a1", ""},
		{"other", "01012345678", ""},
		{"personal", "", ""},
		{"", "01012345678", ""},
	} {
		wish := &CashReceipt{Type: &test.kind, Number: &test.number}
		kind, number, err := wish.Wish()
		if (err == nil) != (test.want != "") || number != test.want || err == nil && kind != money.ReceiptType(test.kind) {
			t.Errorf("%s %q: %s %q %v", test.kind, test.number, kind, number, err)
		}
	}
	if kind, number, err := (*CashReceipt)(nil).Wish(); kind != "" || number != "" || err != nil {
		t.Errorf("no wish: %s %s %v", kind, number, err)
	}
}
