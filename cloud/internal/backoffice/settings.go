package backoffice

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Listing is a room of a branch that a partner offers.
type Listing struct {
	postgres.ListingState
	FeedURL string // of the partner's calendar; empty: there is none
}

// Listings returns the rooms of a branch that partners offer.
func (s *Service) Listings(ctx context.Context, branch booking.BranchID) ([]Listing, error) {
	states, err := postgres.ListingsOf(ctx, s.DB.Pool, branch)
	if err != nil {
		return nil, err
	}
	listings := make([]Listing, len(states))
	for i, state := range states {
		listings[i].ListingState = state
		if listings[i].FeedURL, err = state.URL(s.Keys.Open); err != nil {
			return nil, fmt.Errorf("listing %d: %w", state.ID, err)
		}
	}
	return listings, nil
}

// ScheduleConflict is returned for hours or closures that would close the branch during live reservations.
type ScheduleConflict struct {
	Zone      *time.Location
	Conflicts []booking.Reservation
}

func (e *ScheduleConflict) Error() string {
	return fmt.Sprintf("backoffice: %d reservations lie outside the new hours", len(e.Conflicts))
}

// SettingsChange is what an administrator sets of a branch, its rooms aside.
type SettingsChange struct {
	booking.Branch
	Contacts *[]alert.Contact // of alerts; nil: unchanged
	Despite  bool             // reservations outside the new hours
}

// ChangeSettings stores the settings of a branch if its revision is still the one given. It returns a
// [booking.InvalidError], ErrChanged, or a *ScheduleConflict unless Despite is set.
func (s *Service) ChangeSettings(ctx context.Context, change SettingsChange, by string) error {
	b := change.Branch
	if err := b.Validate(); err != nil {
		return err
	}
	if err := b.ValidateDoors(); err != nil {
		return err
	}
	if change.Contacts != nil {
		if err := s.Alerts.ValidateContacts(*change.Contacts); err != nil {
			return err
		}
	}
	entry := audit.Entry{Actor: by, Branch: b.Code, Action: "settings.change", Target: b.Code}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		old, err := postgres.BranchOf(ctx, tx, b.ID)
		if err != nil {
			return err
		}
		if old.Revision != b.Revision {
			return ErrChanged
		}
		// Holds in progress finish first, so that they are among the conflicts; later ones see the new revision.
		if err := postgres.LockRooms(ctx, tx, roomIDs([]booking.Branch{old})...); err != nil {
			return err
		}
		upcoming, err := postgres.Upcoming(ctx, tx, now, old.ID)
		if err != nil {
			return err
		}
		conflicts := closedOut(old, b.Schedule, upcoming)
		if len(conflicts) > 0 && !change.Despite {
			return &ScheduleConflict{old.Zone, conflicts}
		}
		detail := settingsDetail{booking.Differences(old.Facts(), b.Facts()), len(conflicts)}
		if change.Contacts != nil {
			detail.Changes = append(detail.Changes, fmt.Sprintf("alert contacts: %d", len(*change.Contacts)))
			if err := s.Alerts.PutContacts(ctx, tx, b.Code, *change.Contacts); err != nil {
				return err
			}
		}
		entry.Detail = detail
		return postgres.EditBranch(ctx, tx, b)
	})
}

// settingsDetail is what the audit log keeps of a change of settings.
type settingsDetail struct {
	Changes   []string `json:"changes"`
	Conflicts int      `json:"conflicts,omitempty"` // reservations that the change left outside the opening hours
}

func roomIDs(branches []booking.Branch) (ids []booking.RoomID) {
	for _, b := range branches {
		for _, room := range b.Rooms {
			ids = append(ids, room.ID)
		}
	}
	return ids
}

// closedOut returns the reservations of a branch that the present schedule allows and the next one does not, and those outside the
// present hours, such as a partner's, whose whole day closes.
func closedOut(b booking.Branch, next booking.Schedule, upcoming []booking.Reservation) []booking.Reservation {
	return slices.DeleteFunc(upcoming, func(r booking.Reservation) bool {
		before, after := b.Schedule.Check(r.Interval, b.Zone), next.Check(r.Interval, b.Zone)
		return after == nil || before != nil && (errors.Is(before, booking.ErrClosed) || !errors.Is(after, booking.ErrClosed))
	})
}

// RoomChange is what an administrator sets of a room. A turnover of 0 is unchanged.
type RoomChange struct {
	booking.Room
	NoLock bool // the room has no lock
}

// TurnoverConflict is returned for a turnover that is longer than the time between reservations of the room. It lists the
// later ones.
type TurnoverConflict struct {
	Zone      *time.Location
	Conflicts []booking.Reservation
}

func (e *TurnoverConflict) Error() string {
	return fmt.Sprintf("backoffice: %d reservations lie closer together than the turnover", len(e.Conflicts))
}

// ChangeRoom stores machine, grade, prices, turnover and the lock of a room of a branch. A number that does not exist adds a
// room, disabled. It returns a [booking.InvalidError], a *TurnoverConflict, or ErrChanged if the room has changed since the branch was read.
func (s *Service) ChangeRoom(ctx context.Context, branch booking.Branch, c RoomChange, by string) error {
	if err := c.Room.Validate(); err != nil {
		return err
	}
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "room.change", Target: roomTarget(branch, c.No)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		read, exists := branch.Room(c.No)
		if exists {
			if err := postgres.LockRooms(ctx, tx, read.ID); err != nil {
				return err
			}
		}
		before, err := postgres.BranchOf(ctx, tx, branch.ID)
		if err != nil {
			return err
		}
		old, found := before.Room(c.No)
		if found != exists || exists && len(roomChanges(old, true, read)) > 0 {
			return ErrChanged
		}
		c.TurnoverMinutes = cmp.Or(c.TurnoverMinutes, old.TurnoverMinutes, int(booking.Margin/time.Minute))
		c.Enabled, c.Lock = exists && old.Enabled, nextLock(old, exists, c.NoLock)
		if exists && old.Lock == booking.LockNone && c.Lock != booking.LockNone && old.Enabled {
			return &booking.InvalidError{Field: "noLock", Problem: "the room is on sale; disable it first"}
		}
		entry.Detail = map[string]any{"changes": roomChanges(old, exists, c.Room)}
		if err := postgres.EditRoom(ctx, tx, branch.ID, c.Room); err != nil || !exists || c.Margin() == old.Margin() {
			return err
		}
		return setTurnover(ctx, tx, before, old.ID, c.TurnoverMinutes, now)
	})
}

func setTurnover(ctx context.Context, tx pgx.Tx, branch booking.Branch, room booking.RoomID, minutes int, now time.Time) error {
	conflicts, err := postgres.SetTurnover(ctx, tx, room, minutes, now)
	switch {
	case postgres.IsExclusionViolation(err, "reservation_no_overlap"):
		return ErrChanged
	case err == nil && len(conflicts) > 0:
		return &TurnoverConflict{branch.Zone, conflicts}
	}
	return err
}

// nextLock returns the lock of a room after a change. A lock that is declared again must be proven.
func nextLock(old booking.Room, exists, noLock bool) booking.Lock {
	switch {
	case noLock:
		return booking.LockNone
	case !exists || old.Lock == booking.LockNone:
		return booking.LockUnproven
	}
	return old.Lock
}

func roomTarget(branch booking.Branch, no int) string { return branch.Code + "/" + strconv.Itoa(no) }

// roomChanges describes how a room differs from the stored one, or the whole room if it is new.
func roomChanges(old booking.Room, exists bool, room booking.Room) []string {
	facts := func(r booking.Room) []booking.Fact {
		return append(r.Facts(), booking.Fact{Name: "lock", Text: string(r.Lock)}, booking.Fact{Name: "turnover", Text: r.Margin().String()})
	}
	if !exists {
		return []string{"new room: " + booking.Sentence(facts(room))}
	}
	return booking.Differences(facts(old), facts(room))
}

// DeleteRoom deletes a disabled room that was never reserved. It returns ErrRoomUsed for any other room.
func (s *Service) DeleteRoom(ctx context.Context, branch booking.Branch, no int, by string) error {
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "room.delete", Target: roomTarget(branch, no)}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.DeleteRoom(ctx, tx, branch.ID, no)
	})
}

// DoorProofs returns, by device, which doors the agent has reported and which have a PIN.
func (s *Service) DoorProofs(ctx context.Context, branch booking.BranchID) (map[string]postgres.DoorProof, error) {
	return postgres.DoorProofs(ctx, s.DB.Pool, branch)
}

// SetPIN stores the PIN of a door's keypad: device front or room_<n>. It returns a [booking.InvalidError].
func (s *Service) SetPIN(ctx context.Context, branch booking.Branch, device, pin, by string) error {
	if !pinForm.MatchString(pin) {
		return &booking.InvalidError{Field: "pin", Problem: "expected 4 to 12 digits"}
	}
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "pin.change", Target: branch.Code + "/" + device}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.PutPIN(ctx, tx, branch.ID, device, s.Keys.Seal(access.PINPurpose, []byte(pin)))
	})
}

var pinForm = regexp.MustCompile(`^[0-9]{4,12}$`)

// NewListing is a room to be offered on a partner's calendar.
type NewListing struct {
	Partner string
	Room    booking.Room
	FeedURL string // of the partner's calendar; empty: there is none
}

// AddListing offers a room on a partner's calendar. It returns a [booking.InvalidError] or ErrListingExists.
func (s *Service) AddListing(ctx context.Context, branch string, l NewListing, by string) error {
	var feed []byte
	if l.FeedURL != "" {
		if err := channel.CheckFeedURL(l.FeedURL); err != nil {
			return &booking.InvalidError{Field: "feedUrl", Problem: err.Error()}
		}
		feed = s.Keys.Seal(postgres.FeedPurpose, []byte(l.FeedURL))
	}
	entry := audit.Entry{Actor: by, Branch: branch, Action: "channel.add", Target: l.Partner, Detail: map[string]any{"room": l.Room.No}}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.AddListing(ctx, tx, l.Room.ID, l.Partner, branch+"-"+strconv.Itoa(l.Room.No), feed)
	})
}

// SwitchListing switches a listing of a branch on or off. It returns ErrNoListing.
func (s *Service) SwitchListing(ctx context.Context, branch booking.Branch, id int, enabled bool, by string) error {
	entry := audit.Entry{
		Actor: by, Branch: branch.Code, Action: "channel.switch", Target: strconv.Itoa(id), Detail: map[string]any{"enabled": enabled},
	}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.SwitchListing(ctx, tx, branch.ID, id, enabled)
	})
}

// NewExport gives a listing a new link at which the partner reads our reservations, and returns its room and the token
// of the link. Links made before stop working. It returns ErrNoListing.
func (s *Service) NewExport(ctx context.Context, branch booking.Branch, id int, by string) (room int, token string, err error) {
	token = rand.Text()
	hash := sha256.Sum256([]byte(token))
	entry := audit.Entry{Actor: by, Branch: branch.Code, Action: "channel.export", Target: strconv.Itoa(id)}
	err = s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) (err error) {
		room, err = postgres.SetExportToken(ctx, tx, branch.ID, id, hash[:])
		return err
	})
	return room, token, err
}

// ChangeAlertContacts stores the contacts of the headquarters. It returns a [booking.InvalidError].
func (s *Service) ChangeAlertContacts(ctx context.Context, contacts []alert.Contact, by string) error {
	if err := s.Alerts.ValidateContacts(contacts); err != nil {
		return err
	}
	entry := audit.Entry{Actor: by, Action: "alert.contacts", Detail: map[string]any{"contacts": len(contacts)}}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return s.Alerts.PutContacts(ctx, tx, "", contacts)
	})
}
