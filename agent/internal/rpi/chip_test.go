package rpi

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/config"
)

func TestChooseLine(t *testing.T) {
	t.Parallel()
	header := place{"gpiochip4", "pinctrl-rp1", "1f000d0000.gpio", 17}
	expander := place{"gpiochip5", "mcp23017", "1-0020", 3}
	other := place{"gpiochip6", "pcf8574", "1-0038", 3}
	for _, tt := range []struct {
		name  string
		found []place
		want  place
		bad   bool
	}{
		{"only one", []place{expander}, expander, false},
		{"header before expander", []place{expander, header}, header, false},
		{"two expanders", []place{expander, other}, place{}, true},
		{"none", nil, place{}, true},
	} {
		if got, err := choose(tt.found, config.Line{Name: "GPIO17"}); got != tt.want || (err != nil) != tt.bad {
			t.Errorf("%s: got %+v, %v, want %+v", tt.name, got, err, tt.want)
		}
	}
}

// TestExpandersWithOneLabel: the error of the label names the devices, which tell them apart.
func TestExpandersWithOneLabel(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	var found []place
	for chip, path := range map[string]string{"gpiochip2": "i2c-1/1-0020", "gpiochip3": "i2c-1/1-0021"} {
		target := filepath.Join(folder, path, chip)
		if err := errors.Join(os.MkdirAll(target, 0o700), os.Symlink(target, filepath.Join(folder, chip))); err != nil {
			t.Fatal(err)
		}
		found = append(found, place{chip: chip, label: "mcp23017", device: device(folder, chip), offset: 3})
	}
	_, err := choose(found, config.Line{Chip: "mcp23017", Offset: new(3)})
	for _, want := range []string{"offset 3", "mcp23017", "1-0020", "1-0021"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s in it", err, want)
		}
	}
	if got := device(folder, "gpiochip9"); got != "" {
		t.Errorf("a chip without a device: got %q", got)
	}
}
