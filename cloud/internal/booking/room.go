package booking

import (
	"cmp"
	"slices"
)

// RoomID identifies a room in storage. Outside, branch code and number do.
type RoomID int32

// A Room is what is reserved. It has one machine (a bed).
type Room struct {
	ID      RoomID
	No      int // unique in its branch, from 1
	Machine string
	Grade   Grade
	Enabled bool // a disabled room takes no new reservations
	Price   Price
}

// Grade is the class of a room; empty is none (interface.md, Room).
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

// SortRooms puts rooms in the order customers see: hourly price descending,
// rooms without any price last, then room number (decisions.md 3).
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
