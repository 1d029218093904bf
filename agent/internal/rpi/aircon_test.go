package rpi

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/yeolda/yeolda/agent/internal/config"
)

func TestAirConditioners(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "1.json")
	codes := `{"commandsEncoding": "Raw", "commands": {"off": "[500,-500,500]"}}`
	if err := os.WriteFile(file, []byte(codes), 0o600); err != nil {
		t.Fatal(err)
	}
	units, err := AirConditioners([]config.AirConditioner{{Name: "a", Codes: "lg2"}, {Name: "b", Codes: file}, {Name: "c", Codes: "samsung", Transmitter: "gpio-ir-tx"}}, fstest.MapFS{})
	if err != nil || len(units) != 3 {
		t.Fatalf("%+v, %v", units, err)
	}
	if units[0].Transmitter != units[1].Transmitter || units[0].Transmitter == units[2].Transmitter {
		t.Error("units do not share transmitters by name")
	}
	for _, bad := range []string{"", "lg3", filepath.Join(t.TempDir(), "none.json")} {
		if units, err := AirConditioners([]config.AirConditioner{{Name: "a", Codes: bad}, {Name: "b", Codes: "lg"}}, fstest.MapFS{}); err == nil || len(units) != 1 {
			t.Errorf("codes %q: got %+v, %v, want an error and one unit", bad, units, err)
		}
	}
}
