// Package account is about who somebody is: customers by a code sent to their phone or mailbox,
// administrators by a password; and what an administrator may reach.
//
// A login code is six digits and therefore only as good as the counting around it:
//
//	            asked for again: replaced
//	            ┌─────┐
//	            ▼     │          right code: used up
//	(none) ──▶ live ──┴─────────────────────────────▶ (none)
//	            │ 3 minutes, or 5 wrong tries
//	            ▼
//	          dead
//
// The tries are counted by the statement that reads the code, and using it up is a delete that only one
// caller can win, so parallel guesses gain nothing.
//
// An administrator's rights are read from the database at every request. Taking away a branch, a role or
// the account itself works at the next request, without ending the session.
package account

import (
	"errors"
	"log/slog"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Why somebody is not let in.
var (
	ErrNoHistory     = errors.New("account: no reservation under this phone number or address")
	ErrWrongCode     = errors.New("account: login code is wrong or has expired")
	ErrWrongPassword = errors.New("account: wrong login id or password")
)

// Service answers who somebody is. Every field is required.
type Service struct {
	DB     *postgres.DB
	Limits *limit.Limiter
	Queue  *queue.Queue
	Log    *slog.Logger

	Keys         *seal.Keyring // for the secrets of authenticators
	CodeKey      []byte        // under which login codes are hashed
	CodeTTL      time.Duration // life of a login code, 3 minutes in the interface
	HideAccounts bool          // asking for a code never tells whether there is a reservation
}
