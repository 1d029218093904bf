package booking

import "strings"

// Contact is how a guest is reached. Language is that of messages, ko or en.
type Contact struct {
	Name, Mobile, Email string
	Language            string
}

// LoginType is how a customer identifies himself (interface.md, Session).
type LoginType string

// The login types of customers.
const (
	LoginMobile LoginType = "mobile"
	LoginEmail  LoginType = "email"
)

// BelongsTo reports whether the payer's phone number or e-mail address is the
// one a customer has logged in with. Nobody owns a reservation without contact.
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

// NormalizePhone reduces a phone number to its digits, with the Korean country
// code +82 written as the leading zero of the national form: 010-1234-5678,
// +82 10 1234 5678 and +82 (0)10-1234-5678 are all 01012345678
// (decisions.md 7).
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

// NormalizeEmail trims an address and lowers its ASCII letters (decisions.md 7).
// Other letters stay: Unicode lowers the Kelvin sign to k and would make two
// mailboxes one.
func NormalizeEmail(address string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, strings.TrimSpace(address))
}
