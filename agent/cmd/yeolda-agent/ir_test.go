package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/yeolda/yeolda/agent/internal/config"
	"github.com/yeolda/yeolda/agent/internal/lirc"
	"github.com/yeolda/yeolda/agent/internal/rpi"
	"github.com/yeolda/yeolda/agent/ir"
)

// TestRecord records a remote control with noise, a skipped option and an interruption, and uses the file as the code set of a
// unit.
func TestRecord(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "carrier.json")
	plan := ir.Plan{Modes: []string{"cool"}, FanModes: []string{"low"}, Temperatures: []int{24, 25}}
	signal := slices.Repeat([]uint32{560, 1690}, 30)[:59]
	record := func(steps ...any) (out string, err error) {
		recording := ir.NewRecording("Carrier", "CS-1", plan)
		if text, err := os.ReadFile(file); err == nil {
			if err := recording.Resume(text); err != nil {
				t.Fatal(err)
			}
		}
		answers := make(chan string)
		var printed bytes.Buffer
		s := session{recording: recording, file: file, out: &printed, answers: answers, record: func(ctx context.Context) ([]uint32, error) {
			step := steps[0]
			steps = steps[1:]
			switch step := step.(type) {
			case []uint32:
				return step, nil
			case error:
				return nil, step
			default:
				answers <- step.(string)
				<-ctx.Done()
				return nil, ctx.Err()
			}
		}}
		err = s.run(t.Context())
		return printed.String(), err
	}
	if out, err := record(lirc.ErrNoise, signal, "q"); err != nil || !strings.Contains(out, "noise, again") {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, err := record("", signal); err != nil || !strings.Contains(out, "skipped") || strings.Contains(out, "[1/3]") {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := record(errors.New("no such device")); err == nil {
		t.Error("got no error from a receiver that fails")
	}
	units, err := rpi.AirConditioners([]config.AirConditioner{{Name: "lobby", Codes: file}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var leaves []string
	for path, code := range units[0].Codes.Leaves() {
		leaves = append(leaves, strings.Join(path, "/"))
		if !slices.Equal(code[0].Durations, signal) {
			t.Errorf("%v: got %v", path, code[0].Durations)
		}
	}
	if want := []string{"전원 끄기", "냉방/25/약"}; !slices.Equal(leaves, want) {
		t.Errorf("got %q, want %q", leaves, want)
	}
}

func TestTemperatureRange(t *testing.T) {
	t.Parallel()
	if got, err := temperatureRange("18-20"); err != nil || !slices.Equal(got, []int{18, 19, 20}) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, text := range []string{"", "18", "20-18", "x-y", "0-99"} {
		if got, err := temperatureRange(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
