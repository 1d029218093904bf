package account

import (
	"slices"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// LoginAdmin is the login type of administrators (interface.md, Session).
const LoginAdmin booking.LoginType = "admin"

// Role is what an administrator is there for.
type Role string

// The roles.
const (
	HQ      Role = "hq"      // every branch, also those yet to come
	Manager Role = "manager" // the branches given to it
	Viewer  Role = "viewer"  // looks, and changes nothing
)

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return r == HQ || r == Manager || r == Viewer }

// A Principal is who makes a request. The zero value is nobody.
type Principal struct {
	LoginType booking.LoginType

	LoginID string // of customers: phone number or e-mail address

	AdminLoginID string // of administrators
	Role         Role
	Branches     []string // codes; of role hq all there are
}

// Authenticated reports whether the request has a valid session.
func (p Principal) Authenticated() bool { return p.LoginType != "" }

// Administrator reports whether p is an administrator.
func (p Principal) Administrator() bool { return p.LoginType == LoginAdmin }

// Reaches reports whether p is an administrator who may use a branch.
func (p Principal) Reaches(branch string) bool {
	return p.Administrator() && (p.Role == HQ || slices.Contains(p.Branches, branch))
}

// MayChange reports whether p is an administrator who may do more than look.
func (p Principal) MayChange() bool {
	return p.Administrator() && (p.Role == HQ || p.Role == Manager)
}

// Actor is how the audit log names p.
func (p Principal) Actor() string {
	if p.Administrator() {
		return "admin:" + p.AdminLoginID
	}
	return "customer"
}
