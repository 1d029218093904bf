package booking

import (
	"regexp"
	"sync"
	"time"
)

// DefaultHorizon is how far ahead customers may reserve at a branch without a setting of its own (docs/specification.md,
// Time 6).
const DefaultHorizon = 60 * 24 * time.Hour

// BranchID identifies a branch in storage. The interface uses the branch code.
type BranchID int32

// A Branch is one location with its rooms, doors and opening hours.
type Branch struct {
	ID      BranchID
	Code    string // English name; identifies the branch in the interface and in topics
	NameKo  string
	NameEn  string
	Address string
	Phone   string

	Zone     *time.Location // time zone of all local times
	Horizon  time.Duration  // how far ahead customers may reserve
	Schedule Schedule

	Location *Location // nil: unknown

	RefundPolicy RefundPolicy // empty: the default
	Compensation Compensation // zero: none

	LegalEntity string // code of the legal entity that sells; empty: that of the settings

	Rooms      []Room   // sorted by number
	FrontDoors []string // devices, such as front_1
	// Keypads holds the doors whose keypad is not standalone, by device; see Branch.Keypad.
	Keypads  map[string]Keypad
	Revision int64 // grows with every change of the branch
}

// Room returns the room with that number.
func (b Branch) Room(no int) (Room, bool) {
	for _, r := range b.Rooms {
		if r.No == no {
			return r, true
		}
	}
	return Room{}, false
}

// ValidBranchCode reports whether a code may identify a branch: 1 to 40 of a-z, 0-9 and '-', beginning with a letter or digit.
func ValidBranchCode(code string) bool { return branchCode.MatchString(code) }

var branchCode = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,39}$`)

// DefaultBranch returns the settings of a branch for which nothing is set: in Seoul, open day and night, with one front door and
// no rooms.
func DefaultBranch() Branch {
	return Branch{Zone: seoul(), Horizon: DefaultHorizon, FrontDoors: []string{"front_1"}}
}

var seoul = sync.OnceValue(func() *time.Location {
	zone, err := time.LoadLocation("Asia/Seoul")
	if err != nil {
		panic(err) // the program embeds the time zone database
	}
	return zone
})
