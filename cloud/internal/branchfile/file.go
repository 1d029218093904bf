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

// Branch is the intended state of a branch. IDs and revision are assigned by the database and zero here.
type Branch struct {
	booking.Branch
	Rooms  []Room            // by number; the embedded branch has none
	PINs   map[string]string // device ("front", "room_<n>") to PIN; a missing one is generated
	Agents []Agent           // of demo files only

	SetsLocation     bool // the file names one; otherwise the branch keeps its own
	SetsRefundPolicy bool // the file sets RefundPolicy; otherwise the database's is kept
	SetsCompensation bool // likewise

	line int // line of the file in which it begins
}

// Room is the intended state of a room.
type Room struct {
	booking.Room
	SetsEnabled bool // the file sets Enabled; otherwise the database's value is kept
	SetsPrices  bool // the file sets PriceRules; otherwise the database's value is kept
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
