//go:build hw

package hwtest

import (
	"testing"

	"github.com/warthog618/go-gpiocdev"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
)

// TestOpenDrain has a relay that is named by its offset and drives an input of 5 V, which the line may pull down only: the kernel
// holds it as open drain, idle against the pull-up of the board. gpio-sim does not raise a line that is released.
func TestOpenDrain(t *testing.T) {
	const line = 10
	if err := chip.Pullup(line); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = chip.Pulldown(line) })
	b := brokertest.Start(t, "127.0.0.1:0")
	startWith(t, b, "\n[[door]]\ndevice = \"room_4\"\nrelay = { chip = \"pinctrl-sim\", offset = 10, open_drain = true }\n")
	opened, err := gpiocdev.NewChip(chip.DevPath())
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	info, err := opened.LineInfo(line)
	if err != nil {
		t.Fatal(err)
	}
	if info.Config.Drive != gpiocdev.LineDriveOpenDrain || level(t, line) != 0 {
		t.Errorf("at rest: got %+v and level %d, want open drain and 0", info.Config, level(t, line))
	}
}
