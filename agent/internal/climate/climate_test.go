package climate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/agent/ir"
	"github.com/yeolda/yeolda/agent/sensor"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// led is a transmitter that takes a second for each signal and records the times.
type led struct {
	mu      sync.Mutex
	sending bool
	overlap bool
	sent    []time.Time
	err     error
	panics  bool
}

func (l *led) Send(ctx context.Context, _ int, _ []uint32) error {
	l.mu.Lock()
	l.overlap = l.overlap || l.sending
	l.sending = true
	l.sent = append(l.sent, time.Now())
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sending = false
	}()
	if l.panics {
		panic("lirc: the device disappeared")
	}
	select {
	case <-time.After(time.Second):
		return l.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

var codes = &ir.CodeSet{Roots: []ir.Node{
	{Name: "off", Code: ir.Code{{CarrierHz: 38000, Durations: []uint32{1}}}},
	{Name: "swing", Code: ir.Code{{CarrierHz: 38000, Durations: []uint32{1}}, {CarrierHz: 38000, Durations: []uint32{2}}}},
}}

func newClimate(ctx context.Context, transmitters []ir.Transmitter, sensors ...Sensor) *Climate {
	var units []Unit
	for i, t := range transmitters {
		units = append(units, Unit{Name: fmt.Sprint(i), Codes: codes, Transmitter: t})
	}
	return New(ctx, "gangnam", units, sensors, slog.New(slog.DiscardHandler))
}

func request(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012x", n) }

func command(n, unit int, leaf string) protocol.ClimateCommand {
	return protocol.ClimateCommand{RequestID: request(n), AirConditionerID: protocol.LeafID("gangnam", fmt.Sprint(unit), leaf)}
}

// TestTransmittersTakeTurns checks that two units with one LED take turns, and that a third one with its own does not wait.
func TestTransmittersTakeTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared, own := new(led), new(led)
		c := newClimate(t.Context(), []ir.Transmitter{shared, shared, own})
		began := time.Now()
		results := make(chan protocol.ClimateResult, 3)
		for unit := range 3 {
			c.Command(command(unit, unit, "off"), func(r protocol.ClimateResult) { results <- r })
		}
		for range 3 {
			if r := <-results; r.Outcome != protocol.ClimateSent {
				t.Errorf("got result %+v", r)
			}
		}
		if shared.overlap || len(shared.sent) != 2 || len(own.sent) != 1 {
			t.Errorf("shared %+v, own %+v", shared.sent, own.sent)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("took %v, want 2s", took)
		}
		c.Close()
	})
}

// TestCommandsKeepTheirOrder receives commands for one air conditioner at once, as after a connection that stalled: the last one decides
// how it runs. A repetition in between changes nothing.
func TestCommandsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for round := range 200 {
			l := new(led)
			c := newClimate(t.Context(), []ir.Transmitter{l})
			var mu sync.Mutex
			var ended []string
			for n := range 4 {
				for range 2 {
					c.Command(command(n, 0, "off"), func(r protocol.ClimateResult) {
						mu.Lock()
						defer mu.Unlock()
						ended = append(ended, r.RequestID)
					})
				}
			}
			c.Close()
			if want := []string{request(0), request(1), request(2), request(3)}; !slices.Equal(ended, want) || len(l.sent) != 4 || l.overlap {
				t.Fatalf("round %d: %d signals, ended %v, want %v", round, len(l.sent), ended, want)
			}
		}
	})
}

func TestPauseBetweenSignals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := new(led)
		c := newClimate(t.Context(), []ir.Transmitter{l})
		c.Command(command(1, 0, "swing"), func(protocol.ClimateResult) {})
		c.Close()
		if len(l.sent) != 2 || l.sent[1].Sub(l.sent[0]) != time.Second+ir.SignalPause {
			t.Errorf("sent at %v, want a pause of %v", l.sent, ir.SignalPause)
		}
	})
}

func TestCommandIsExecutedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := new(led)
		c := newClimate(t.Context(), []ir.Transmitter{l})
		answers := make(chan protocol.ClimateResult, 10)
		ask := func() {
			c.Command(command(1, 0, "off"), func(r protocol.ClimateResult) { answers <- r })
			synctest.Wait()
		}
		ask()
		ask() // while it is in progress
		time.Sleep(1100 * time.Millisecond)
		ask()
		ask()
		if len(l.sent) != 1 || len(answers) != 3 {
			t.Errorf("sent %d times, answered %d times, want 1 and 3", len(l.sent), len(answers))
		}
		time.Sleep(protocol.ResultTTL)
		ask() // long after
		c.Close()
		if len(l.sent) != 2 {
			t.Errorf("sent %d times, want 2", len(l.sent))
		}
	})
}

func TestTransmitterFaults(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]*led{"error": {err: errors.New("input/output error")}, "panic": {panics: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClimate(t.Context(), []ir.Transmitter{l})
				c.Command(command(1, 0, "off"), func(r protocol.ClimateResult) {
					if r.Outcome != protocol.ClimateFailed || r.Validate() != nil || r.Detail == "" {
						t.Errorf("got result %+v", r)
					}
				})
				c.Close()
			})
		})
	}
}

func TestStopCancelsCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		c := newClimate(ctx, []ir.Transmitter{new(led)})
		began := time.Now()
		for n := range 5 {
			c.Command(command(n, 0, "swing"), func(protocol.ClimateResult) {})
		}
		synctest.Wait()
		cancel()
		c.Close()
		if took := time.Since(began); took != 0 {
			t.Errorf("took %v to stop", took)
		}
	})
}

// reader is a sensor whose reading is a function.
type reader func(ctx context.Context) (sensor.Reading, error)

func (r reader) Read(ctx context.Context) (sensor.Reading, error) { return r(ctx) }

func TestFailingSensorsAreOmitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var begun atomic.Int32
		sensors := map[string]reader{
			"lobby": func(context.Context) (sensor.Reading, error) {
				return sensor.Reading{Celsius: 23.5, RelativeHumidity: 46}, nil
			},
			"disconnected": func(context.Context) (sensor.Reading, error) { return sensor.Reading{}, errors.New("remote I/O error") },
			"loose wire": func(context.Context) (sensor.Reading, error) {
				return sensor.Reading{Celsius: 1300, RelativeHumidity: 50}, nil
			},
			"not a number": func(context.Context) (sensor.Reading, error) { return sensor.Reading{Celsius: math.NaN()}, nil },
			"panics":       func(context.Context) (sensor.Reading, error) { panic("i2c") },
			"hangs": func(context.Context) (sensor.Reading, error) {
				begun.Add(1)
				<-hang
				return sensor.Reading{Celsius: 20}, nil
			},
			"slow": func(ctx context.Context) (sensor.Reading, error) {
				time.Sleep(time.Second)
				return sensor.Reading{Celsius: 21}, nil
			},
		}
		var list []Sensor
		for _, location := range []string{"lobby", "disconnected", "loose wire", "not a number", "panics", "hangs", "slow"} {
			list = append(list, Sensor{location, sensors[location]})
		}
		c := newClimate(t.Context(), nil, list...)
		for range 3 {
			began := time.Now()
			got := c.Readings()
			if took := time.Since(began); took != readTimeout {
				t.Errorf("took %v, want %v", took, readTimeout)
			}
			want := []protocol.Reading{{Location: "lobby", Celsius: 23.5, RelativeHumidity: 46}, {Location: "slow", Celsius: 21}}
			if !slices.Equal(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		if n := begun.Load(); n != 1 {
			t.Errorf("the hanging sensor was read %d times, want once", n)
		}
		close(hang)
		synctest.Wait()
		if got := c.Readings(); len(got) != 3 {
			t.Errorf("got %+v after the sensor recovered, want 3 readings", got)
		}
	})
}

// TestLogVolume reads failing sensors for a day. The log of 16 sensors must stay below 1 MB a day.
func TestLogVolume(t *testing.T) {
	t.Parallel()
	const sensors, limit = 16, 1 << 20
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		failing := reader(func(context.Context) (sensor.Reading, error) {
			return sensor.Reading{}, errors.New("sht4x at 0x44: sysfs-i2c: remote I/O error")
		})
		c := New(t.Context(), "gangnam", nil, []Sensor{{"lobby", failing}}, slog.New(slog.NewTextHandler(&out, nil)))
		for range 24 * 60 {
			c.Readings()
			time.Sleep(protocol.TelemetryInterval)
		}
		t.Logf("%d bytes a day for %d sensors", sensors*out.Len(), sensors)
		if n := out.Len(); sensors*n > limit || n == 0 {
			t.Errorf("got %d bytes a day for %d sensors, want some, but less than %d", sensors*n, sensors, limit)
		}
	})
}

func TestReadIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClimate(t.Context(), nil)
		var answers []protocol.SensorsReadings
		c.Read(protocol.SensorsRead{RequestID: request(1)}, func(r protocol.SensorsReadings) { answers = append(answers, r) })
		c.Close()
		if len(answers) != 1 || answers[0].RequestID != request(1) || answers[0].Readings == nil {
			t.Errorf("got answers %+v, want one", answers)
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a answers[int]
		answered := 0
		ask := func(n int) {
			count := func(int) { answered++ }
			if e := a.begin(request(n), count); e != nil {
				a.end(e, n, count)
			}
		}
		for n := range 2 * maxAnswers {
			ask(n)
		}
		if answered != maxAnswers || len(a.entries) != maxAnswers {
			t.Errorf("got %d answers and %d entries, want %d of both", answered, len(a.entries), maxAnswers)
		}
		time.Sleep(protocol.ResultTTL)
		ask(0)
		if len(a.entries) != 1 {
			t.Errorf("got %d entries, want 1", len(a.entries))
		}
	})
}
