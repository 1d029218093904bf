package hardware

import (
	"cmp"
	"slices"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// keepActuations is the minimum number of actuations that a branch keeps. At twice as many, the older half is
// discarded.
const keepActuations = 10_000

// record notes that a relay is driven. If it is driven High while energised, it stays energised, and that is another
// actuation, for another request. mu is held.
func (d *door) record(on bool) {
	now := time.Now()
	if a := d.driving; a != nil {
		a.EnergizedMs, a.Energized = now.Sub(a.At).Milliseconds(), false
		d.driving = nil
		d.installation.report(a)
	}
	if !on {
		return
	}
	r := d.installation
	d.driving = &Actuation{At: now, Device: d.row.Device, Energized: true}
	d.latest = d.driving
	d.row.Actuations++
	if len(r.actuations) == 2*keepActuations {
		r.actuations = slices.Clone(r.actuations[keepActuations:])
	}
	r.actuations = append(r.actuations, d.driving)
}

// Energized receives from the agent the request, or the source at the keypad, for which it has just energised the relay of a
// device, before the agent touches the relay again.
func (r *Installation) Energized(device, requestID string, source protocol.Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d, err := r.door(device); err == nil && d.latest != nil && d.latest.Source == "" {
		d.latest.RequestID, d.latest.Source = requestID, cmp.Or(Source(source), Remote)
		r.report(d.latest)
	}
}

// report publishes the actuation to the panel. mu is held.
func (r *Installation) report(a *Actuation) {
	row := *a
	r.changed(Change{Actuation: &row})
}

// Actuations returns every time a relay was energised, oldest first, at least the latest keepActuations.
func (r *Installation) Actuations() []Actuation {
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
