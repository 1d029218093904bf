package rpi

import (
	"testing"

	"github.com/yeolda/yeolda/agent/internal/config"
)

func TestChooseLine(t *testing.T) {
	t.Parallel()
	header := place{"gpiochip4", "pinctrl-rp1", 17}
	expander := place{"gpiochip5", "mcp23017", 3}
	other := place{"gpiochip6", "pcf8574", 3}
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
