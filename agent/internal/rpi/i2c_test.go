package rpi

import (
	"testing"

	"github.com/yeolda/yeolda/agent/internal/config"
)

func TestMissingBusIsAnErrorOfTheReading(t *testing.T) {
	t.Parallel()
	sensors, err := Sensors([]config.Sensor{
		{Location: "lobby", Kind: "sht4x", Bus: "no such bus"}, {Location: "room", Kind: "aht20", Bus: "no such bus"}})
	if err != nil || len(sensors) != 2 || sensors[1].Location != "room" {
		t.Fatalf("sensors %+v, %v", sensors, err)
	}
	if got, err := sensors[0].Reader.Read(t.Context()); err == nil {
		t.Errorf("read %+v", got)
	}
}

func TestUnknownKindIsRefused(t *testing.T) {
	t.Parallel()
	if _, err := Sensors([]config.Sensor{{Location: "lobby", Kind: "barometer", Bus: "1"}}); err == nil {
		t.Error("accepted")
	}
}
