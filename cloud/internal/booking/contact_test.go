package booking_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func TestNormalizePhone(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]string{
		"010-1234-5678":        "01012345678",
		"01012345678":          "01012345678",
		" 010 1234 5678 ":      "01012345678",
		"010.1234.5678":        "01012345678",
		"+82 10-1234-5678":     "01012345678",
		"+821012345678":        "01012345678",
		" +82 10 1234 5678":    "01012345678",
		"+82 (0)10-1234-5678":  "01012345678",
		"+82-2-123-4567":       "021234567",
		"02-123-4567":          "021234567",
		"0505-678-9999":        "05056789999",
		"82-10-1234-5678":      "01012345678",
		"821012345678":         "01012345678",
		"8201012345678":        "01012345678",
		"0082 10 1234 5678":    "01012345678",
		"00 82 (0)10 12345678": "01012345678",
		"(+82) 10-1234-5678":   "01012345678",
		"10-1234-5678":         "01012345678",
		"０１０－１２３４－５６７８":                       "01012345678",
		"＋８２　１０　１２３４　５６７８":                    "01012345678",
		"\u202a010\u20111234\u20135678\u202c": "01012345678",
		"82-2-123-4567":                       "021234567",
		"82-504-1234-5678":                    "050412345678",
		"82-5041-1234-56789":                  "825041123456789", // longer than any number in Korea
		"+82 10 12":                           "01012",           // typed so far, in a search
		"8210":                                "8210",
		"8282-1234":                           "82821234",
		"+1 212 555 0100":                     "12125550100",
		"010-1234-567":                        "0101234567",
		"":                                    "",
		"전화 없음":                               "",
		"٠١٠":                                 "",
	} {
		if got := booking.NormalizePhone(number); got != want {
			t.Errorf("%q is %q, want %q", number, got, want)
		}
	}
}

func TestFoldPhone(t *testing.T) {
	t.Parallel()
	if got, want := booking.FoldPhone("！０９～（）\u2212\u2013\u3000\u200e가"), "!09~()-- 가"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNormalizeEmail(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"kim@example.com":      "kim@example.com",
		" Kim@Example.COM\n":   "kim@example.com",
		"AZ@[`{}]":             "az@[`{}]",
		"\u212Aim@example.com": "\u212Aim@example.com", // the Kelvin sign is not a k
		"김@example.com":        "김@example.com",
		"":                     "",
	} {
		if got := booking.NormalizeEmail(address); got != want {
			t.Errorf("%q is %q, want %q", address, got, want)
		}
	}
}

func TestNormalizingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		phone := booking.NormalizePhone(rapid.StringMatching(`[(＋+]?(00|82|0082)?[0-9０-９ ()+-]{0,20}`).Draw(t, "phone"))
		if again := booking.NormalizePhone(phone); again != phone {
			t.Fatalf("%q became %q", phone, again)
		}
		if strings.Trim(phone, "0123456789") != "" {
			t.Fatalf("%q is not all digits", phone)
		}
		email := booking.NormalizeEmail(rapid.String().Draw(t, "email"))
		if again := booking.NormalizeEmail(email); again != email {
			t.Fatalf("%q became %q", email, again)
		}
	})
}

func TestBelongsTo(t *testing.T) {
	t.Parallel()
	r := booking.Reservation{Mobile: "010-1234-5678", Email: "Kim@Example.com"}
	for _, test := range []struct {
		name      string
		r         booking.Reservation
		loginType booking.LoginType
		loginID   string
		want      bool
	}{
		{"phone", r, "mobile", "01012345678", true},
		{"phone, abroad", r, "mobile", "+82 10 1234 5678", true},
		{"another phone", r, "mobile", "01012345679", false},
		{"e-mail", r, "email", "kim@example.com", true},
		{"another e-mail", r, "email", "lee@example.com", false},
		{"phone as e-mail", r, "email", "01012345678", false},
		{"e-mail as phone", r, "mobile", "kim@example.com", false},
		{"unknown type", r, "admin", "01012345678", false},
		{"no type", r, "", "", false},
		{"empty phone", r, "mobile", "", false},
		{"no contact, empty phone", booking.Reservation{}, "mobile", "", false},
		{"no contact, no digits", booking.Reservation{Mobile: "-"}, "mobile", "--", false},
		{"no contact, empty e-mail", booking.Reservation{}, "email", " ", false},
		{"no phone", booking.Reservation{Email: "kim@example.com"}, "mobile", "01012345678", false},
	} {
		if got := test.r.BelongsTo(test.loginType, test.loginID); got != test.want {
			t.Errorf("%s: %t", test.name, got)
		}
	}
}
