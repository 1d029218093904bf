package climate

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/yeolda/yeolda/agent/internal/condition"
	"github.com/yeolda/yeolda/agent/sensor"
	"github.com/yeolda/yeolda/protocol"
)

// readTimeout limits the concurrent reading of all sensors. The slowest common sensor needs one second.
const readTimeout = 3 * time.Second

// probe reads one sensor. If its driver hangs, no second reading is started.
type probe struct {
	sensor Sensor
	fault  condition.Condition
	idle   chan struct{} // holds a token while a reading is in progress
}

// Readings reads all sensors now, in the order of the board. Sensors that fail or exceed readTimeout are omitted.
func (c *Climate) Readings() []protocol.Reading {
	ctx, cancel := context.WithTimeout(c.ctx, readTimeout)
	defer cancel()
	all := make([]*protocol.Reading, len(c.sensors))
	var reading sync.WaitGroup
	for i, s := range c.sensors {
		reading.Go(func() {
			r, err := s.read(ctx)
			if err == nil {
				err = r.Validate()
			}
			s.fault.Set(err)
			if err == nil {
				all[i] = &r
			}
		})
	}
	reading.Wait()
	readings := []protocol.Reading{} // [] on the wire, not null
	for _, r := range all {
		if r != nil {
			readings = append(readings, *r)
		}
	}
	return readings
}

func (p *probe) read(ctx context.Context) (protocol.Reading, error) {
	select {
	case p.idle <- struct{}{}:
	case <-ctx.Done():
		return protocol.Reading{}, fmt.Errorf("the previous reading still hangs: %w", ctx.Err())
	}
	type outcome struct {
		reading sensor.Reading
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { <-p.idle }()
		defer func() {
			if r := recover(); r != nil {
				done <- outcome{err: fmt.Errorf("driver panicked: %v", r)}
			}
		}()
		r, err := p.sensor.Reader.Read(ctx)
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		return protocol.Reading{Location: p.sensor.Location, Celsius: o.reading.Celsius, RelativeHumidity: o.reading.RelativeHumidity}, o.err
	case <-ctx.Done():
		return protocol.Reading{}, ctx.Err()
	}
}
