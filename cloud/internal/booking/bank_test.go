package booking_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func TestBanks(t *testing.T) {
	t.Parallel()
	all := booking.Banks()
	codes := make(map[string]bool)
	names := make(map[string]bool)
	var issuing []string
	banks := 0
	for _, b := range all {
		if codes[b.Code] || names[b.Name] {
			t.Errorf("%v is listed twice", b)
		}
		codes[b.Code], names[b.Name] = true, true
		if len(b.Code) != 2 || b.Name == "" {
			t.Errorf("%q %q", b.Code, b.Name)
		}
		if !strings.HasPrefix(b.Code, "S") {
			banks++
		}
		if b.Issues {
			issuing = append(issuing, b.Code)
		}
		if got, ok := booking.BankByCode(b.Code); !ok || got != b {
			t.Errorf("%s is %v, %t", b.Code, got, ok)
		}
	}
	if banks != 26 || len(all) != 26+25 {
		t.Errorf("%d banks of %d institutes, want 26 of 51", banks, len(all))
	}
	slices.Sort(issuing)
	if diff := cmp.Diff([]string{"03", "06", "07", "11", "20", "31", "32", "34", "39", "45", "71", "81", "88"}, issuing); diff != "" {
		t.Error(diff)
	}
}

func TestBankByCode(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"06": "KB국민은행", // its clearing code is 004
		"88": "신한은행",
		"92": "토스뱅크",
		"S5": "미래에셋증권",
	} {
		if b, ok := booking.BankByCode(code); !ok || b.Name != want {
			t.Errorf("%s is %v, %t", code, b, ok)
		}
	}
	for _, code := range []string{"", "00", "04", "004", "6", "s5", "신한"} {
		if b, ok := booking.BankByCode(code); ok {
			t.Errorf("%q is %v", code, b)
		}
	}
}

func TestBanksIsACopy(t *testing.T) {
	t.Parallel()
	booking.Banks()[0].Code = "??"
	if _, ok := booking.BankByCode("??"); ok {
		t.Error("a caller changed the table")
	}
}
