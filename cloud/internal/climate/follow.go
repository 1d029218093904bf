package climate

import (
	"slices"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Constants of the closed loop (docs/specification.md, Climate).
const (
	maxAttempts = 3 // a command and two retries

	// A command is repeated if the room has not changed by minChange within these times. A lost command to switch off wastes
	// energy, so it is repeated sooner. minChange is well above the noise of the sensors.
	arriveRetry = 3 * time.Minute
	leaveRetry  = 2 * time.Minute
	minChange   = 0.5 // °C

	// A window that opens warms a room as well, so a unit counts as off only after clearShare of the way back to the
	// temperature before the stay, and the command is repeated without it after clearRetry. If that way is shorter than
	// clearChange, nothing can be seen.
	clearShare  = 0.25
	clearRetry  = 8 * time.Minute
	clearChange = 1.5 // °C

	maxReadingAge = 5 * time.Minute
)

// following decides about one room at one moment.
type following struct {
	room  postgres.ClimateRoom
	stays []postgres.ClimateStay // DONE, by start
	open  []postgres.ClimateIntent
	now   time.Time
	// inUse has the units of the branch that are on for a stay.
	inUse map[string]bool

	changes postgres.ClimateChanges
}

func (f *following) from(s postgres.ClimateStay) time.Time {
	return s.Start.Add(-time.Duration(f.room.Lead) * time.Minute)
}

func (f *following) to(s postgres.ClimateStay) time.Time {
	return s.End.Add(time.Duration(f.room.Lag) * time.Minute)
}

// owner returns the stay for which the unit is on now: the one in progress, else the next one within its lead, else the last
// one within its lag.
func (f *following) owner() *postgres.ClimateStay {
	var next, last *postgres.ClimateStay
	for i, s := range f.stays {
		switch {
		case !f.now.Before(s.Start) && f.now.Before(s.End):
			return &f.stays[i]
		case f.now.Before(s.Start) && !f.now.Before(f.from(s)) && next == nil:
			next = &f.stays[i]
		case !f.now.Before(s.End) && f.now.Before(f.to(s)):
			last = &f.stays[i]
		}
	}
	if next != nil {
		return next
	}
	return last
}

// followed reports whether another stay begins before the unit would be switched off after s.
func (f *following) followed(s postgres.ClimateStay) bool {
	return slices.ContainsFunc(f.stays, func(n postgres.ClimateStay) bool {
		return n.ID != s.ID && !n.Start.Before(s.End) && !f.from(n).After(f.to(s))
	})
}

// option is the guest's choice for a stay, if it is still offered, and the policy's option otherwise.
func (f *following) option(s postgres.ClimateStay) string {
	if s.Choice != nil && slices.Contains(f.room.GuestOptions, *s.Choice) {
		return *s.Choice
	}
	return f.room.ArriveOption
}

// follow compares the room with its stays and returns what has to change.
func (f *following) follow() postgres.ClimateChanges {
	owner := f.owner()
	f.change(owner)
	f.plan(owner)
	for _, i := range f.open {
		if i.State == "sent" {
			f.judge(i, owner)
		}
	}
	return f.changes
}

// change switches the unit when the stay changes for which it is on.
func (f *following) change(owner *postgres.ClimateStay) {
	switch {
	case owner == nil && f.room.Owner == nil, owner != nil && f.room.Owner != nil && owner.ID == *f.room.Owner:
		return
	case owner == nil && f.waits(*f.room.Owner):
		return
	case owner == nil:
		if !f.inUse[f.room.Unit] {
			f.put(*f.room.Owner, "leave", f.now, f.room.LeaveOption, true)
		}
		f.changes.Owners = append(f.changes.Owners, postgres.ClimateOwner{Room: f.room.Room})
	default:
		f.put(owner.ID, "arrive", f.now, f.option(*owner), true)
		o := postgres.ClimateOwner{Room: f.room.Room, Owner: &owner.ID, Since: &f.now, Ambient: f.room.Ambient}
		if f.room.Owner == nil {
			o.Ambient = f.reading()
		}
		f.changes.Owners = append(f.changes.Owners, o)
	}
}

// waits reports whether a unit that the room had before is not switched off yet. The present one follows, because a stay has at most one
// planned intent for each edge.
func (f *following) waits(stay int64) bool {
	return slices.ContainsFunc(f.open, func(i postgres.ClimateIntent) bool {
		return i.State == "planned" && i.Due && i.Edge == "leave" && i.Reservation == stay && i.Unit != f.room.Unit
	})
}

// plan keeps the planned intents equal to what the stays need, and cancels the others.
func (f *following) plan(owner *postgres.ClimateStay) {
	wanted := map[int64]map[string]bool{}
	want := func(s postgres.ClimateStay, edge string, at time.Time, option string) {
		if wanted[s.ID] == nil {
			wanted[s.ID] = map[string]bool{}
		}
		wanted[s.ID][edge] = true
		f.put(s.ID, edge, at, option, false)
	}
	for i, s := range f.stays {
		if f.now.Before(f.from(s)) || i > 0 && f.now.Before(f.stays[i-1].End) && f.now.Before(s.Start) {
			at := f.from(s)
			if i > 0 && f.stays[i-1].End.After(at) {
				at = f.stays[i-1].End
			}
			want(s, "arrive", at, f.option(s))
		}
		if f.now.Before(f.to(s)) && !f.followed(s) {
			want(s, "leave", f.to(s), f.room.LeaveOption)
		}
	}
	for _, i := range f.open {
		if i.State != "planned" {
			continue
		}
		// A leave that is due belongs to an earlier end of the stay. The next one is planned without it.
		later := wanted[i.Reservation][i.Edge] && (i.Edge == "arrive" || !i.Due)
		if !f.needed(i, owner) && !later || i.Edge == "arrive" && i.Due && f.room.StaffSince || i.StaffSince {
			f.changes.Cancel = append(f.changes.Cancel, i.ID)
		}
	}
}

// needed reports whether an intent that is due, or has just become due, still has to be sent.
func (f *following) needed(i postgres.ClimateIntent, owner *postgres.ClimateStay) bool {
	if !i.Due && !slices.ContainsFunc(f.changes.Put, func(p postgres.ClimateIntent) bool {
		return p.Reservation == i.Reservation && p.Edge == i.Edge && p.Due
	}) {
		return false
	}
	if i.Edge == "leave" {
		return !f.inUse[i.Unit]
	}
	return owner != nil && owner.ID == i.Reservation
}

// put plans an intent or updates the planned one, unless it is as wanted already.
func (f *following) put(stay int64, edge string, at time.Time, option string, due bool) {
	for _, i := range f.open {
		if i.State == "planned" && i.Reservation == stay && i.Edge == edge && (i.Due || !due && i.At.Equal(at) && i.Option == option) {
			return
		}
	}
	f.changes.Put = append(f.changes.Put, postgres.ClimateIntent{
		Branch: f.room.Branch, Room: f.room.Room, Reservation: stay, Edge: edge, At: at, Option: option, Due: due, NextAt: f.now,
	})
}

// reading returns the temperature of the room, nil if it is not known.
func (f *following) reading() *float64 {
	if f.room.Celsius == nil || f.room.ReadAt == nil || f.now.Sub(*f.room.ReadAt) > maxReadingAge {
		return nil
	}
	return f.room.Celsius
}

// judge compares the room with its temperature at the command. Without a reading after the command nothing is claimed.
func (f *following) judge(i postgres.ClimateIntent, owner *postgres.ClimateStay) {
	current := owner != nil && owner.ID == i.Reservation && i.Unit == f.room.Unit && !slices.ContainsFunc(f.open, func(later postgres.ClimateIntent) bool {
		return later.Reservation == i.Reservation && later.Edge == i.Edge && later.ID > i.ID
	})
	if i.Edge == "arrive" && (!current || f.room.StaffSince) || i.Edge == "leave" && (owner != nil || f.inUse[i.Unit] || i.StaffSince) {
		f.verdict(i, "sent", nil) // another command follows or followed: this one cannot be judged any more
		return
	}
	celsius := f.reading()
	if celsius == nil || i.SentAt == nil || !f.room.ReadAt.After(*i.SentAt) {
		return
	}
	if i.Baseline == nil {
		f.changes.Baselines = append(f.changes.Baselines, postgres.ClimateBaseline{ID: i.ID, Celsius: *celsius})
		return
	}
	if i.Edge == "arrive" {
		f.judgeArrive(i, *celsius)
	} else {
		f.judgeLeave(i, *celsius)
	}
}

func (f *following) judgeArrive(i postgres.ClimateIntent, celsius float64) {
	var moved float64
	switch {
	case *i.Baseline > f.room.High:
		moved = *i.Baseline - celsius
	case *i.Baseline < f.room.Low:
		moved = celsius - *i.Baseline
	case celsius >= f.room.Low && celsius <= f.room.High:
		return // it was right before and is right now: nothing can be seen
	}
	switch late := f.now.Sub(*i.SentAt) >= arriveRetry; {
	case moved >= minChange:
		f.verdict(i, "working", &celsius)
	case late && i.Attempts < maxAttempts:
		f.changes.Again = append(f.changes.Again, i.ID)
	case late:
		f.verdict(i, "no-effect", &celsius)
	}
}

func (f *following) judgeLeave(i postgres.ClimateIntent, celsius float64) {
	way := 0.0 // back to the temperature before the stay
	if f.room.Ambient != nil {
		way = *f.room.Ambient - *i.Baseline
	}
	moved := celsius - *i.Baseline
	if way < 0 {
		way, moved = -way, -moved
	}
	age := f.now.Sub(*i.SentAt)
	late := age >= leaveRetry && moved < minChange || age >= clearRetry
	switch {
	case way >= clearChange && moved >= max(minChange, clearShare*way):
		f.verdict(i, "working", &celsius)
	case late && i.Attempts < maxAttempts:
		f.changes.Again = append(f.changes.Again, i.ID)
	case late && way >= clearChange:
		f.verdict(i, "no-effect", &celsius)
	case late:
		f.verdict(i, "sent", &celsius) // nothing can be seen
	}
}

func (f *following) verdict(i postgres.ClimateIntent, state string, seen *float64) {
	f.changes.Verdicts = append(f.changes.Verdicts, postgres.ClimateVerdict{ID: i.ID, State: state, Seen: seen})
}
