package booking

import (
	"strings"
	"unicode"
)

// Contact is how a guest is reached. Language is the language of messages, ko or en.
type Contact struct {
	Name, Mobile, Email string
	Language            string
	ConsentVersion      string // of the terms and the privacy policy that the guest agreed to; empty: not asked
}

// LoginType is the kind of identifier with which a customer logs in (docs/specification.md, Login 1).
type LoginType string

// The login types of customers.
const (
	LoginMobile LoginType = "mobile"
	LoginEmail  LoginType = "email"
)

// BelongsTo reports whether the payer's phone number or e-mail address is the one with which a customer logged in. A
// reservation without a contact belongs to no customer.
func (r Reservation) BelongsTo(loginType LoginType, loginID string) bool {
	var theirs, ours string
	switch loginType {
	case LoginMobile:
		theirs, ours = NormalizePhone(loginID), NormalizePhone(r.Mobile)
	case LoginEmail:
		theirs, ours = NormalizeEmail(loginID), NormalizeEmail(r.Email)
	}
	return theirs != "" && theirs == ours
}

// FoldPhone rewrites a phone number in ASCII. Keyboards for Korean and Japanese type full-width digits and signs, and address books
// copy numbers with dashes, no-break spaces and invisible marks of direction.
func FoldPhone(number string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case '！' <= r && r <= '～':
			return r - '！' + '!'
		case unicode.Is(unicode.Pd, r), r == '−': // dashes, and the sign of subtraction
			return '-'
		case unicode.Is(unicode.Zs, r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, number)
}

// The length of a Korean number without country code and leading zero: 2-123-4567 to 504-1234-5678.
const minNational, maxNational = 8, 11

// mobileWithoutZero is the length of a Korean mobile number whose zero a spreadsheet or a foreign address book left out: 10-1234-5678.
const mobileWithoutZero = 10

// NormalizePhone reduces a phone number to its digits in the national form: 010-1234-5678, +82 10 1234 5678, +82 (0)10-1234-5678,
// 0082 10 1234 5678, 82 10 1234 5678 and 10 1234 5678 all become 01012345678. Digits of a number that is typed are no country code
// before the number is complete, unless + or 00 stands before them. The package postgres has the same rules for columns.
func NormalizePhone(number string) string {
	number = FoldPhone(number)
	digits := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, number)
	before, _, _ := strings.Cut(number, digits[:min(1, len(digits))])
	if national, ok := strings.CutPrefix(strings.TrimPrefix(digits, "00"), "82"); ok {
		national = strings.TrimLeft(national, "0")
		if strings.Contains(before, "+") || strings.HasPrefix(digits, "00") || minNational <= len(national) && len(national) <= maxNational {
			return "0" + national
		}
	}
	if len(digits) == mobileWithoutZero && strings.HasPrefix(digits, "10") {
		return "0" + digits
	}
	return digits
}

// NormalizeEmail trims an address and lowers its ASCII letters. Other letters are kept: Unicode lowers the Kelvin sign to k,
// which would merge two mailboxes.
func NormalizeEmail(address string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(address))
}
