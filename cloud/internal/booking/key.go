package booking

import "time"

// KeyKind is the kind of an access key.
type KeyKind string

// The kinds.
const (
	OwnerKey     KeyKind = "owner"     // the doorlockKey; one live key per reservation
	CompanionKey KeyKind = "companion" // shared by the owner: opens the same doors, administers nothing
	StaffKey     KeyKind = "staff"     // of a member of staff, between stays
)

// MaxCompanions is the maximum number of live companions' keys of a reservation (docs/specification.md, Keys 3).
const MaxCompanions = 8

// AccessKey is a key of a reservation. Its text is sealed.
type AccessKey struct {
	ID          int64
	Reservation ReservationID
	Kind        KeyKind
	Label       string // of a companion
	Sealed      []byte
	CreatedBy   string
	CreatedAt   time.Time
	RevokedAt   time.Time // zero: live
	RevokedAs   string    // the reason: rotated, corrected, revoked, replaced
	LastUsedAt  time.Time // of the last press; zero: never
}

// Live reports whether the key is not revoked. Doors open only while its reservation is valid, too.
func (k AccessKey) Live() bool { return k.RevokedAt.IsZero() }
