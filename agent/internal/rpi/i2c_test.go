package rpi

import (
	"testing"
	"testing/fstest"

	"github.com/yeolda/yeolda/agent/internal/config"
)

func TestMissingBusIsAnErrorOfTheReading(t *testing.T) {
	t.Parallel()
	sensors, err := Sensors([]config.Sensor{
		{Location: "lobby", Kind: "sht4x", Bus: "no such bus"}, {Location: "room", Kind: "aht20", Bus: "no such bus", Mux: 0x70, MuxPort: 2}}, fstest.MapFS{})
	if err != nil || len(sensors) != 2 || sensors[1].Location != "room" {
		t.Fatalf("sensors %+v, %v", sensors, err)
	}
	if got, err := sensors[0].Reader.Read(t.Context()); err == nil {
		t.Errorf("read %+v", got)
	}
}

func TestKernelsSensor(t *testing.T) {
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
		t.Errorf("read %+v, %v", got, err)
	}
}

func TestUnknownKindIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Sensors([]config.Sensor{{Location: "lobby", Kind: "barometer", Bus: "1"}}, fstest.MapFS{}); err == nil {
		t.Error("accepted")
	}
}
