package rpi

import (
	"errors"
	"syscall"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"

	"github.com/yeolda/yeolda/agent/internal/config"
)

func TestMissingBusFailsTheReading(t *testing.T) {
	t.Parallel()
	sensors, err := Sensors([]config.Sensor{
		{Location: "lobby", Kind: "sht4x", Bus: "no such bus"}, {Location: "room", Kind: "aht20", Bus: "no such bus", Mux: 0x70, MuxPort: 2}}, fstest.MapFS{})
	if err != nil || len(sensors) != 2 || sensors[1].Location != "room" {
		t.Fatalf("got %+v, %v", sensors, err)
	}
	if got, err := sensors[0].Reader.Read(t.Context()); err == nil {
		t.Errorf("got %+v, want an error", got)
	}
}

func TestHwmonSensor(t *testing.T) {
	t.Parallel()
	sys := fstest.MapFS{
		"class/hwmon/hwmon0/name": {Data: []byte("sht3x")}, "class/hwmon/hwmon0/temp1_input": {Data: []byte("21000")},
		"class/hwmon/hwmon0/humidity1_input": {Data: []byte("40000")},
	}
	sensors, err := Sensors([]config.Sensor{{Location: "lobby", Kind: KindHwmon, Hwmon: "sht3x"}}, sys)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sensors[0].Reader.Read(t.Context()); err != nil || got.Celsius != 21 {
		t.Errorf("got %+v, %v, want 21 °C", got, err)
	}
}

func TestUnknownSensorKind(t *testing.T) {
	t.Parallel()
	if _, err := Sensors([]config.Sensor{{Location: "lobby", Kind: "barometer", Bus: "1"}}, fstest.MapFS{}); err == nil {
		t.Error("got no error for an unknown kind")
	}
}

// fakeBus is an opened bus whose transfers fail or hang.
type fakeBus struct {
	err  error
	hang chan struct{}
}

func (*fakeBus) String() string                  { return "fake" }
func (*fakeBus) SetSpeed(physic.Frequency) error { return nil }
func (*fakeBus) Close() error                    { return nil }
func (f *fakeBus) Tx(uint16, []byte, []byte) error {
	if f.hang != nil {
		<-f.hang
	}
	return f.err
}

// TestHungTransfer checks that a transfer that hangs does not block the other sensors of the bus for longer than the timeout.
func TestHungTransfer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		buses := []*fakeBus{{hang: hang}, {}}
		opened := 0
		b := &bus{name: "1", open: func() (i2c.BusCloser, error) { opened++; return buses[opened-1], nil }}
		began := time.Now()
		if err := b.Tx(0x44, nil, make([]byte, 6)); err == nil || time.Since(began) != transferTimeout {
			t.Errorf("got %v after %v, want an error after %v", err, time.Since(began), transferTimeout)
		}
		if err := b.Tx(0x45, nil, make([]byte, 6)); err != nil {
			t.Errorf("another sensor: %v", err)
		}
		close(hang)
	})
}

// TestBusIsOpenedAgain checks that the bus is reopened after an error of the bus, but not because a chip does not answer.
func TestBusIsOpenedAgain(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{syscall.EREMOTEIO: 1, syscall.ENXIO: 1, syscall.ETIMEDOUT: 3, syscall.ENODEV: 3} {
		opened := 0
		b := &bus{name: "1", open: func() (i2c.BusCloser, error) { opened++; return &fakeBus{err: err}, nil }}
		for range 3 {
			if got := b.Tx(0x44, nil, nil); !errors.Is(got, err) {
				t.Errorf("got %v, want %v", got, err)
			}
		}
		if opened != want {
			t.Errorf("%v: the bus was opened %d times, want %d", err, opened, want)
		}
	}
	missing := true
	b := &bus{name: "1", open: func() (i2c.BusCloser, error) {
		if missing {
			return nil, syscall.ENOENT
		}
		return &fakeBus{}, nil
	}}
	if err := b.Tx(0x44, nil, nil); err == nil {
		t.Error("got no error from a missing bus")
	}
	missing = false
	if err := b.Tx(0x44, nil, nil); err != nil {
		t.Errorf("after the module was loaded: %v", err)
	}
}
