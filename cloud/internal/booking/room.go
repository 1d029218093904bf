package booking

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// RoomID identifies a room in storage. The interface uses branch code and number.
type RoomID int32

// A Room is the unit that is reserved. It has one machine (a bed).
type Room struct {
	ID      RoomID
	No      int // unique in its branch, from 1
	Machine string
	Grade   Grade
	Enabled bool // a disabled room accepts no new reservations
	Price   Price
	Lock    Lock

	PriceRules []PriceRule // in their order; the last one that applies counts

	TurnoverMinutes int // how long the room stays empty after a reservation; 0: as long as Margin
}

// Margin is the time for which the room stays empty after a reservation (docs/specification.md, Slots 3).
func (r Room) Margin() time.Duration {
	return max(Margin, time.Duration(r.TurnoverMinutes)*time.Minute)
}

// Device is the name of the room's door in topics, the inventory and the PINs.
func (r Room) Device() string { return "room_" + strconv.Itoa(r.No) }

// Lock states whether guests can open a room.
type Lock string

// The states of a room's lock. A room with an unproven lock cannot be enabled.
const (
	LockFitted   Lock = "fitted"   // a branch file, or a reported door with a PIN, vouches for it
	LockUnproven Lock = "unproven" // added in the console; no door was seen yet
	LockNone     Lock = "none"     // the room has no lock
)

// Grade is the class of a room; empty for none (docs/specification.md, Slots 9).
type Grade string

// The grades, best first.
const (
	Stella   Grade = "Stella"
	Crystal  Grade = "Crystal"
	Superb   Grade = "Superb"
	Premium  Grade = "Premium"
	Gold     Grade = "Gold"
	Standard Grade = "Standard"
	Normal   Grade = "Normal"
)

// Valid reports whether g is a known grade or none.
func (g Grade) Valid() bool {
	switch g {
	case "", Stella, Crystal, Superb, Premium, Gold, Standard, Normal:
		return true
	}
	return false
}

// SortRooms sorts rooms as customers see them: by hourly price in descending order, rooms without a price last, then by
// number (docs/specification.md, Slots 7).
func SortRooms(rooms []Room) {
	slices.SortFunc(rooms, func(a, b Room) int {
		aWon, aOK := a.Price.Hourly()
		bWon, bOK := b.Price.Hourly()
		switch {
		case aOK && !bOK:
			return -1
		case !aOK && bOK:
			return 1
		}
		return cmp.Or(cmp.Compare(bWon, aWon), cmp.Compare(a.No, b.No))
	})
}
