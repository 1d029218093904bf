package branchfile

import (
	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// File is the content of a branch file.
type File struct {
	Demo           bool
	Branches       []Branch
	Administrators []Administrator // of demo files only
}

// Branch is a branch as it shall be. Its ids and its revision are the database's and zero here.
type Branch struct {
	booking.Branch
	Rooms  []Room            // by number; the field of booking.Branch is empty
	PINs   map[string]string // device ("front", "room_<n>") to PIN; one that is missing is made up
	Agents []Agent           // of demo files only

	line int // where it begins in the file
}

// Room is a room as it shall be.
type Room struct {
	booking.Room
	SaysEnabled bool // Enabled stands in the file; otherwise the database's value stays
}

// Administrator is a demo administrator.
type Administrator struct {
	LoginID  string
	Password string
	Role     account.Role
	Branches []string
}

// Agent is a demo agent with its MQTT credential.
type Agent struct {
	Username string
	Secret   string
}
