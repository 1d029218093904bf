package booking

import "strings"

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

// NormalizePhone reduces a phone number to its digits and replaces the Korean country code +82 with the leading zero of the
// national form: 010-1234-5678, +82 10 1234 5678 and +82 (0)10-1234-5678 all become 01012345678.
func NormalizePhone(number string) string {
	digits := strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, number)
	if strings.HasPrefix(strings.TrimSpace(number), "+") {
		if national, ok := strings.CutPrefix(digits, "82"); ok {
			return "0" + strings.TrimPrefix(national, "0")
		}
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
