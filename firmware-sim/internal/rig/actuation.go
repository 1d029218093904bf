package rig

import (
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// keepActuations is how many actuations a branch remembers.
const keepActuations = 10_000

// grant is a request that the agent may drive a door for.
type grant struct {
	requestID string
	until     time.Time
}

// grantLife is how long after it was delivered a grant can still move a relay:
// the age the agent allows it, and time to get to the pin.
const grantLife = protocol.GrantAge + 500*time.Millisecond

// Granted tells the rig that a valid grant is about to be handed to the agent.
// The relays move for the grants of a door in the order of their arrival; that
// is how an actuation gets its request. The caller leaves out grants that the
// agent will refuse and those it has seen before.
func (r *Rig) Granted(requestID string, devices []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, device := range devices {
		if d, err := r.door(device); err == nil {
			d.granted = append(d.granted, grant{requestID, time.Now().Add(grantLife)})
		}
	}
}

// record keeps the book of the relay: on or off, whether that changes it or not.
func (d *door) record(on bool) {
	now := time.Now()
	requestID, granted := "", false
	if on {
		requestID, granted = d.nextGrant(now)
	}
	// A relay that is driven once more while it is energised stays energised
	// longer; that is an actuation of its own if another request asked for it.
	if a := d.driving; a != nil && (!on || granted) {
		a.EnergizedMs, a.Energized = now.Sub(a.At).Milliseconds(), false
		d.driving = nil
		d.rig.report(a)
	}
	if !on || d.driving != nil {
		return
	}
	a := &Actuation{At: now, Device: d.row.Device, RequestID: requestID, Energized: true}
	d.driving = a
	d.row.Actuations++
	if len(d.rig.actuations) == keepActuations {
		d.rig.actuations = append(d.rig.actuations[:0:0], d.rig.actuations[1:]...)
	}
	d.rig.actuations = append(d.rig.actuations, a)
	d.rig.report(a)
}

func (d *door) nextGrant(now time.Time) (requestID string, ok bool) {
	for len(d.granted) > 0 {
		g := d.granted[0]
		d.granted = d.granted[1:]
		if now.Before(g.until) {
			return g.requestID, true
		}
	}
	return "", false
}

func (r *Rig) report(a *Actuation) {
	row := *a
	r.changed(Change{Actuation: &row})
}

// Actuations lists every time a relay was energised, oldest first.
func (r *Rig) Actuations() []Actuation {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]Actuation, 0, len(r.actuations))
	for _, a := range r.actuations {
		row := *a
		if row.Energized {
			row.EnergizedMs = time.Since(row.At).Milliseconds()
		}
		list = append(list, row)
	}
	return list
}
