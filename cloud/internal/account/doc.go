// Package account authenticates customers by a code sent to their phone or mailbox and administrators by a
// password, and defines what an administrator may access.
//
// A login code has only six digits, so its security rests on counting the attempts:
//
//	            requested again: replaced
//	            ┌─────┐
//	            ▼     │          right code: consumed
//	(none) ──▶ live ──┴─────────────────────────────▶ (none)
//	            │ 3 minutes, or 5 wrong attempts
//	            ▼
//	          dead
//
// The statement that reads the code also counts the attempt, and the delete that consumes it succeeds for one
// caller only, so concurrent guesses gain nothing.
//
// An administrator's rights are read from the database on every request. Removing a branch, a role or the
// account takes effect at the next request, without ending the session.
package account

import (
	"errors"
	"log/slog"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"

	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Errors of the login.
var (
	// ErrBranchForbidden is returned when an administrator has no access to a branch.
	ErrBranchForbidden = errors.New("account: no access to the branch")

	// ErrRoleForbidden is returned when the role of an administrator does not allow what the request would do.
	ErrRoleForbidden = errors.New("account: the role does not allow it")
	// ErrScopeForbidden is returned when a token lacks the scope of what the request would do.
	ErrScopeForbidden = errors.New("account: the token lacks the scope")

	ErrNoHistory     = errors.New("account: no reservation under this phone number or address")
	ErrWrongCode     = errors.New("account: login code is wrong or expired")
	ErrWrongPassword = errors.New("account: wrong login id or password")
)

// Service authenticates customers and administrators. All fields are required.
type Service struct {
	DB     *postgres.DB
	Limits *limit.Limiter
	Queue  *queue.Queue
	Log    *slog.Logger

	Keys    *seal.Keyring // seals the secrets of authenticators
	CodeKey []byte        // HMAC key for login codes
	CodeTTL time.Duration // lifetime of a login code; 3 minutes in the specification
	// SecondFactorRoles are the roles that must set up a second factor; optional.
	SecondFactorRoles []string
	// RelyingParty registers and verifies passkeys; nil if the public address permits none.
	RelyingParty *webauthn.WebAuthn
	HideAccounts bool // requesting a code does not reveal whether a reservation exists
}
