package discord

import (
	"context"
	"time"
)

// Backend executes the commands of staff. Users and branches are checked against the settings
// before it is called. The text of a [Refusal] is shown to the user; other errors are shown
// without details.
type Backend interface {
	// Branches lists all branches.
	Branches(ctx context.Context) ([]Branch, error)
	// Reservations lists the branch's reservations of today.
	Reservations(ctx context.Context, branch string) ([]Reservation, error)
	// Rooms returns the current state of each room.
	Rooms(ctx context.Context, branch string) ([]Room, error)
	// Unlock opens a door and waits for the result, at most 7 seconds.
	Unlock(ctx context.Context, r UnlockRequest) (opened bool, err error)
	// Why returns why the doors do not open with the current reservation of a room, or the one closest to now.
	Why(ctx context.Context, branch string, room int) (sentence string, err error)
	// Readings returns the current sensor readings.
	Readings(ctx context.Context, branch string) ([]Reading, error)
}

// Refusal is an error whose text is shown to the user, in Korean.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Branch is a branch by code and Korean name.
type Branch struct{ Code, Name string }

// Reservation is an entry of today's list.
type Reservation struct {
	Room       int
	Start, End time.Time // in the branch's time zone; End is the real end
	Name       string
	Status     string // Korean
}

// Room is a room's state.
type Room struct {
	No      int
	Enabled bool
	InUse   bool
	Until   time.Time // when in use, or the next start when free; zero if there is none
}

// UnlockRequest names a door.
type UnlockRequest struct {
	InteractionID string // identifies the Discord interaction, for idempotency
	By            string // "discord:" and the user's id, for the audit log
	Branch        string
	Room          int // 0: the front doors
}

// Reading is one sensor.
type Reading struct {
	Location    string
	Temperature float64 // degrees Celsius
	Humidity    float64 // percent
}
