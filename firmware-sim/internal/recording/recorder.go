package recording

import (
	"slices"
	"sync"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
)

// Recorder records the changes that it receives. It is safe for concurrent use and ignores changes while it does not
// record.
type Recorder struct {
	mu        sync.Mutex
	running   bool
	began     time.Time
	recording Recording
	doors     map[string]hardware.Door // last known state
}

// Start starts a new recording with the current state and discards an earlier one.
func (r *Recorder) Start(s hardware.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running, r.began, r.recording, r.doors = true, time.Now(), Recording{}, make(map[string]hardware.Door, len(s.Doors))
	for _, p := range s.Sensors {
		r.add(Step{Sensor: &Air{p.Location, p.Thermometer, p.Hygrometer}})
	}
	for _, d := range s.Doors {
		r.doors[d.Device] = d
		r.add(Step{Door: &Leaf{d.Device, d.Open}})
	}
	faults := slices.Clone(s.Faults)
	r.add(Step{Faults: &faults})
}

// Stop ends and returns the recording. ok is false if none was in progress.
func (r *Recorder) Stop() (t Recording, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t, ok = r.copy(), r.running
	r.recording, r.running = t, false
	return t, ok
}

// Recording returns the recording so far, or the last one. ok is false if there is none.
func (r *Recorder) Recording() (t Recording, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.copy(), len(r.recording.Steps) > 0
}

// copy returns the recording with its length. mu is held.
func (r *Recorder) copy() Recording {
	t := r.recording
	t.Steps = slices.Clone(t.Steps)
	if r.running {
		t.LengthMs = min(time.Since(r.began), MaxLength).Milliseconds()
	}
	return t
}

// Running returns the start of the recording in progress, or zero.
func (r *Recorder) Running() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running {
		return time.Time{}
	}
	return r.began
}

// Changed receives a change of the hardware.
func (r *Recorder) Changed(c hardware.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.running {
		return
	}
	switch {
	case c.Sensor != nil:
		r.add(Step{Sensor: &Air{c.Sensor.Location, c.Sensor.Thermometer, c.Sensor.Hygrometer}})
	case c.Keypad != nil:
		r.add(Step{Keypad: &Entry{c.Keypad.Device, c.Keypad.Right}})
	case c.AirConditioner != nil && c.AirConditioner.Signal != nil:
		s := c.AirConditioner.Signal
		r.add(Step{Signal: &Signal{c.AirConditioner.Name, s.CarrierHz, s.Durations}})
	case c.Door != nil:
		before := r.doors[c.Door.Device]
		r.doors[c.Door.Device] = *c.Door
		if c.Door.Open != before.Open {
			r.add(Step{Door: &Leaf{c.Door.Device, c.Door.Open}})
		}
		if c.Door.Exit && !before.Exit {
			r.add(Step{Exit: &Button{c.Door.Device}})
		}
	}
}

// Faults receives the current faults.
func (r *Recorder) Faults(l fault.List) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running {
		faults := append(fault.List{}, l...)
		r.add(Step{Faults: &faults})
	}
}

// add appends a step, unless the recording is full. mu is held.
func (r *Recorder) add(s Step) {
	passed := time.Since(r.began)
	if len(r.recording.Steps) < MaxSteps && passed <= MaxLength {
		s.AtMs = passed.Milliseconds()
		r.recording.Steps = append(r.recording.Steps, s)
	}
}
