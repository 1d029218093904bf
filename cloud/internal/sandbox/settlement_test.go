package sandbox

import (
	"testing"
	"time"
)

// The provider pays out on business days.
func TestPayOutDay(t *testing.T) {
	t.Parallel()
	for sold, want := range map[string]string{
		"2026-11-23T03:00:00Z": "2026-11-25", // Monday
		"2026-11-26T03:00:00Z": "2026-11-30", // Thursday
		"2026-11-27T15:30:00Z": "2026-12-01", // Saturday in Seoul
		"2026-12-23T03:00:00Z": "2026-12-28", // Christmas and a weekend follow
		"2026-09-22T03:00:00Z": "2026-09-28", // 추석 and a weekend follow
	} {
		at, err := time.Parse(time.RFC3339, sold)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Transaction{TransactionAt: at}).settle(0).PaidOutDate; got != want {
			t.Errorf("sold at %s: paid out on %s, want %s", sold, got, want)
		}
	}
}

// TestSettlementOfParts: the refunds of a payment in parts return the fee and the VAT of the whole.
func TestSettlementOfParts(t *testing.T) {
	for _, method := range []string{MethodCard, MethodEasyPay, MethodMobilePhone} {
		paid := Transaction{Method: method, Status: StatusDone, Amount: 20_003}.settle(0)
		held, fee, vat := paid.Amount, paid.Fees[0].Fee, paid.VAT
		for _, part := range []int{1_000, 777, 18_226} {
			returned := Transaction{Method: method, Status: StatusPartialCanceled, Amount: part}.settle(held)
			held += returned.Amount
			fee += returned.Fees[0].Fee
			vat += returned.VAT
		}
		if held != 0 || fee != 0 || vat != 0 {
			t.Errorf("%s: %d won, a fee of %d and VAT of %d remain", method, held, fee, vat)
		}
	}
}
