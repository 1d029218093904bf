package hardware

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/yeolda/yeolda/agent/sensor"
	"github.com/yeolda/yeolda/firmware-sim/internal/chip"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
)

// The dynamics of the air of a small room.
const (
	treatTime = 3 * time.Minute  // time constant while a unit treats it
	idleTime  = 10 * time.Minute // time constant without treatment

	swingPeriod  = 7 * time.Minute // drift around the ambient values
	swingCelsius = 0.3             // °C
	swingPercent = 1.5             // relative humidity

	treatedPercent = 42.0 // humidity reached by cooling and drying

	// An open window lets the air of the room take on the outside faster, and keeps a unit from its set point.
	windowTime  = 3 * time.Minute // time constant without treatment
	windowShare = 0.4             // of the way from the set point to the outside

	// A row is sent to the panel after a change of this size.
	showCelsius, showPercent = 0.05, 0.25
)

// The range of settings from the panel; all chips can measure it.
const (
	minCelsius, maxCelsius = -20.0, 60.0
	minPercent, maxPercent = 0.0, 100.0
)

// probe is a thermo-hygrometer and the air around it. Installation.mu guards its fields.
type probe struct {
	SensorPlan
	installation *Installation
	bus          *chip.Bus
	phase        float64
	air          chip.Air
	shown        chip.Air
	held         bool
}

func newProbe(r *Installation, i int, plan SensorPlan) (*probe, error) {
	p := &probe{SensorPlan: plan, installation: r, phase: float64(i)}
	p.air = chip.Air{Celsius: plan.Celsius, Humidity: plan.Humidity}
	p.shown = p.air
	bus, err := chip.NewBus("i2c "+plan.Location, plan.Kind, p.read, p.dead)
	if err != nil {
		return nil, fmt.Errorf("hardware: sensor %q: %w", plan.Location, err)
	}
	p.bus = bus
	return p, nil
}

// open returns the agent's own driver on the simulated bus.
func (p *probe) open() (sensor.Reader, error) {
	return sensor.Open(p.Kind, p.bus, p.bus.Address())
}

func (p *probe) read() chip.Air {
	p.installation.mu.Lock()
	defer p.installation.mu.Unlock()
	return p.air
}

func (p *probe) dead() bool {
	p.installation.mu.Lock()
	defer p.installation.mu.Unlock()
	_, dead := p.installation.faults.At(fault.SensorDead, p.Location)
	return dead || p.installation.power == nil
}

func (p *probe) row() Sensor {
	return Sensor{
		Location: p.Location, Kind: p.Kind, Held: p.held,
		Thermometer: hundredths(p.air.Celsius), Hygrometer: hundredths(p.air.Humidity),
	}
}

func hundredths(v float64) float64 { return math.Round(v*100) / 100 }

// drift moves the air by one step. mu is held.
func (p *probe) drift(since, step time.Duration) {
	if p.held {
		return
	}
	swing := math.Sin(2*math.Pi*since.Seconds()/swingPeriod.Seconds() + p.phase)
	goal := chip.Air{Celsius: p.Celsius + swingCelsius*swing, Humidity: p.Humidity - swingPercent*swing}
	pace, outside := idleTime, goal
	for _, u := range p.installation.units {
		if u.treats(p.Location) {
			goal, pace = u.treat(goal, p.air), treatTime
		}
	}
	if _, open := p.installation.faults.At(fault.WindowOpen, p.Location); open {
		goal.Celsius += windowShare * (outside.Celsius - goal.Celsius)
		goal.Humidity += windowShare * (outside.Humidity - goal.Humidity)
		pace = min(pace, windowTime)
	}
	share := 1 - math.Exp(-step.Seconds()/pace.Seconds())
	p.air.Celsius += share * (goal.Celsius - p.air.Celsius)
	p.air.Humidity += share * (goal.Humidity - p.air.Humidity)
	p.show(false)
}

// treats reports whether the unit treats the air of a location now.
func (u *unit) treats(location string) bool {
	return u.setting.Power && u.setting.Mode != "fan" && slices.Contains(u.plan.Cools, location)
}

// treat returns the state that the air approaches while the unit runs; goal is that without the unit.
func (u *unit) treat(goal, air chip.Air) chip.Air {
	target := float64(u.setting.Celsius)
	dry := min(goal.Humidity, treatedPercent)
	switch {
	case u.setting.Mode == "dry":
		return chip.Air{Celsius: goal.Celsius - 1, Humidity: dry}
	case u.setting.Mode != "heat" && target < max(goal.Celsius, air.Celsius):
		return chip.Air{Celsius: target, Humidity: dry}
	case u.setting.Mode != "cool" && target > min(goal.Celsius, air.Celsius):
		return chip.Air{Celsius: target, Humidity: goal.Humidity}
	}
	return goal
}

// show notifies the panel if the air has changed enough, or if forced. mu is held.
func (p *probe) show(must bool) {
	if !must && math.Abs(p.air.Celsius-p.shown.Celsius) < showCelsius && math.Abs(p.air.Humidity-p.shown.Humidity) < showPercent {
		return
	}
	p.shown = p.air
	row := p.row()
	p.installation.changed(Change{Sensor: &row})
}

// ValidAir reports whether SetAir accepts the values, in °C and percent.
func ValidAir(celsius, percent float64) bool { // written so that a NaN fails
	return celsius >= minCelsius && celsius <= maxCelsius && percent >= minPercent && percent <= maxPercent
}

// SetAir sets and holds the readings of the sensor at a location; nil keeps a value. With hold false the air drifts on
// from there.
func (r *Installation) SetAir(location string, celsius, percent *float64, hold bool) (Sensor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p, err := find(r.sensors, func(p *probe) bool { return p.Location == location })
	if err != nil {
		return Sensor{}, err
	}
	next := p.air
	if celsius != nil {
		next.Celsius = *celsius
	}
	if percent != nil {
		next.Humidity = *percent
	}
	if !ValidAir(next.Celsius, next.Humidity) {
		return Sensor{}, fmt.Errorf("%w: %g to %g °C, %g to %g %%", ErrValue, minCelsius, maxCelsius, minPercent, maxPercent)
	}
	p.air, p.held = next, hold
	p.show(true)
	return p.row(), nil
}
