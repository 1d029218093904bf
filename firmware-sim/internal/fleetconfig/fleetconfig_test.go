package fleetconfig_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
)

// TestDemoIsTheDeployedFile compares the embedded copy with the file that operators edit.
func TestDemoIsTheDeployedFile(t *testing.T) {
	t.Parallel()
	deployed, err := os.ReadFile("../../../deploy/demo/sim.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if string(deployed) != string(fleetconfig.Demo) {
		t.Error("firmware-sim/internal/fleetconfig/demo.yaml is not deploy/demo/sim.yaml; copy it over")
	}
}

func TestDemoBranches(t *testing.T) {
	t.Parallel()
	branches, err := fleetconfig.Parse(fleetconfig.Demo)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, b := range branches {
		line := b.Branch + " " + b.Password
		for _, d := range b.Plan.Doors {
			line += " " + d.Device
		}
		for _, s := range b.Plan.Sensors {
			line += " " + s.Location
		}
		got = append(got, line)
	}
	want := []string{
		"gangnam agent-gangnam-demo front_1 front_2 room_1 room_2 room_3 room_4 room_5 room_6 로비 1번 룸 2번 룸 3번 룸 4번 룸",
		"hongdae agent-hongdae-demo front_1 room_1 room_2 room_3 로비",
	}
	if !slices.Equal(got, want) {
		t.Errorf("demo branches:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":        ``,
		"no branches":    `branches: []`,
		"bad code":       `branches: [{branch: "Gang/nam"}]`,
		"twice":          `branches: [{branch: a}, {branch: a}]`,
		"unknown field":  `branches: [{branch: a, dores: [front_1]}]`,
		"unknown remote": `branches: [{branch: a, airConditioners: [{name: x, remote: winia}]}]`,
		"PIN of no door": `branches: [{branch: a, doors: [front_1], pins: {front_2: "1234"}}]`,
	} {
		if _, err := fleetconfig.Parse([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestRemote checks that each press is one signal that a kernel transmitter accepts in one write.
func TestRemote(t *testing.T) {
	t.Parallel()
	set, err := fleetconfig.Remote("lg2")
	if err != nil {
		t.Fatal(err)
	}
	leaves := 0
	for path, code := range set.Leaves() {
		leaves++
		var total uint32
		for _, d := range code[0].Durations {
			total += d
		}
		if len(code) != 1 || len(code[0].Durations)%2 == 0 || total > 500_000 {
			t.Errorf("%v: %d signals, the first of %d durations and %d µs", path, len(code), len(code[0].Durations), total)
		}
	}
	if want := 1 + (3*13+2)*4*2; leaves != want {
		t.Errorf("%d leaves, want %d", leaves, want)
	}
	if _, err := fleetconfig.Remote("winia"); err == nil {
		t.Error("a remote that is not known was found")
	}
}

func TestFleet(t *testing.T) {
	t.Parallel()
	fleet, err := fleetconfig.Fleet(12)
	if err != nil {
		t.Fatal(err)
	}
	if first, last := fleet[0].Branch, fleet[11].Branch; first != "load-0001" || last != "load-0012" {
		t.Errorf("fleet from %s to %s", first, last)
	}
	for _, n := range []int{0, fleetconfig.MaxFleet + 1} {
		if _, err := fleetconfig.Fleet(n); err == nil {
			t.Errorf("a fleet of %d was made", n)
		}
	}
}

// TestBranchFilePart checks that the branches of a large fleet can be applied in several files.
func TestBranchFilePart(t *testing.T) {
	t.Parallel()
	text, err := fleetconfig.BranchFilePart(99_999, 1)
	if err != nil {
		t.Fatal(err)
	}
	if file := string(text); strings.Count(file, "code:") != 1 || !strings.Contains(file, "code: load-100000\n") || !strings.Contains(file, "username: agent-load-100000\n") {
		t.Errorf("got\n%s\nwant the branch load-100000 alone", file)
	}
	if _, err := fleetconfig.BranchFilePart(0, 0); err == nil {
		t.Error("a file without branches was made")
	}
}
