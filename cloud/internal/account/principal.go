package account

import (
	"context"
	"slices"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// LoginAdmin is the login type of administrators (docs/specification.md, Login 1).
const LoginAdmin booking.LoginType = "admin"

// Role defines what an administrator may do.
type Role string

// The roles.
const (
	HQ      Role = "hq"      // all branches, including future ones
	Manager Role = "manager" // the assigned branches
	Viewer  Role = "viewer"  // read-only

	// The limited roles may use some endpoints only; see package httpapi.
	FrontDesk  Role = "front-desk" // reservations, messages and doors of the assigned branches; no refunds, no settings
	Accountant Role = "accountant" // money and reports of the assigned branches; no doors, no contacts of guests
	Cleaner    Role = "cleaner"    // the rooms to clean of the assigned branches
)

// Roles are all roles.
var Roles = []Role{HQ, Manager, Viewer, FrontDesk, Accountant, Cleaner}

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains(Roles, r) }

// Limited reports whether endpoints are open to r one by one.
func (r Role) Limited() bool { return r == FrontDesk || r == Accountant || r == Cleaner }

// A Principal is the authenticated user of a request. The zero value is an anonymous client.
type Principal struct {
	LoginType booking.LoginType

	LoginID string // of a customer: phone number or e-mail address

	AdminLoginID string // of an administrator
	Role         Role
	// NeedsSecondFactor means that the policy requires a second factor that the administrator has not set up: only the
	// endpoints of the own account are available until then.
	NeedsSecondFactor bool
	// passwordHash is the one that the password of this login matched; otherwise empty.
	passwordHash string
	// Passkey means that the administrator has just logged in with a passkey.
	Passkey bool

	Branches []string // branch codes; none for role hq, which reaches every branch

	Scopes []Scope // of a token; nil: the principal has a session and needs no scope
}

// Authenticated reports whether the request has a valid session.
func (p Principal) Authenticated() bool { return p.LoginType != "" }

// Administrator reports whether p is an administrator.
func (p Principal) Administrator() bool { return p.LoginType == LoginAdmin }

// Reaches reports whether p is an administrator with access to a branch.
func (p Principal) Reaches(branch string) bool {
	return p.Administrator() && (p.Role == HQ || slices.Contains(p.Branches, branch))
}

// Reach returns the codes of the branches that p reaches, in the form that queries take: nil stands for every branch and for
// events and alerts of none.
func (p Principal) Reach() []string {
	if p.Administrator() && p.Role == HQ {
		return nil
	}
	return append([]string{}, p.Branches...)
}

// MayChange reports whether p is an administrator who may change what the branch has and see its secrets.
func (p Principal) MayChange() bool {
	return p.Administrator() && (p.Role == HQ || p.Role == Manager)
}

// MayOpen reports whether p may see what opens doors: keys, PINs and links to keys. A token needs the scope of doors.
func (p Principal) MayOpen() bool { return p.MayChange() && p.Has(ScopeDoors) }

// SeesContacts reports whether p may see phone numbers and e-mail addresses of guests.
func (p Principal) SeesContacts() bool {
	return p.Administrator() && p.Role != Accountant && p.Role != Cleaner
}

// MayWatch reports whether p may follow the live events of the console.
func (p Principal) MayWatch() bool {
	return p.Administrator() && !p.NeedsSecondFactor && p.Role != Cleaner
}

// Token reports whether p is the bearer of a token.
func (p Principal) Token() bool { return p.Scopes != nil }

// Has reports whether p may use an endpoint with a scope. Sessions are not limited by scopes.
func (p Principal) Has(scope Scope) bool { return !p.Token() || slices.Contains(p.Scopes, scope) }

// Actor returns the name of p in the audit log.
func (p Principal) Actor() string {
	if p.Token() {
		return p.AdminLoginID
	}
	if p.Administrator() {
		return "admin:" + p.AdminLoginID
	}
	return "customer"
}

// WithNewSession returns a context in which the store of the sessions creates one. In any other context it changes only sessions that
// exist, so one that has ended stays ended.
func WithNewSession(ctx context.Context) context.Context { return postgres.WithNewSession(ctx) }
