package booking

import (
	"errors"
	"time"
)

// Errors about administrators.
var (
	ErrNoAdministrator     = errors.New("booking: no such administrator")
	ErrAdministratorExists = errors.New("booking: an administrator with this login id exists")
)

// Administrator is a member of staff who logs in with a login id and a password.
type Administrator struct {
	LoginID      string
	PasswordHash string // PHC string
	Role         string
	SecondFactor bool
	Demo         bool      // still has the password of the demo data
	DisabledAt   time.Time // zero if enabled
	CreatedAt    time.Time
	Branches     []string // codes of the branches in scope, oldest branch first; none for role hq, which reaches every branch
}
