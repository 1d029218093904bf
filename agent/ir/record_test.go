package ir

import (
	"slices"
	"strings"
	"testing"
)

// TestRecordingCanBeLoaded records a remote control, in two sessions, and loads the file as the agent does.
func TestRecordingCanBeLoaded(t *testing.T) {
	t.Parallel()
	plan := Plan{Modes: []string{"cool", "fan_only"}, FanModes: []string{"low", "auto"}, SwingModes: []string{"off", "on"}, Temperatures: []int{24, 25}}
	first := NewRecording("Carrier", "CS-1", plan)
	paths := first.Paths()
	if len(paths) != 1+2*2*2+2*2 {
		t.Fatalf("got %d options: %v", len(paths), paths)
	}
	signal := func(i int) []uint32 {
		code, err := lg2.encode(Setting{Power: true, Mode: "cool", Celsius: 18 + i, Fan: "auto"})
		if err != nil {
			t.Fatal(err)
		}
		return append(slices.Clone(code[0].Durations), 90_000) // with the silence that a receiver measures
	}
	for i, path := range paths[:6] {
		if err := first.Add(path, signal(i)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := first.Encode()
	if err != nil {
		t.Fatal(err)
	}
	second := NewRecording("Carrier", "CS-1", plan)
	if err := second.Resume(text); err != nil {
		t.Fatal(err)
	}
	for i, path := range paths {
		if second.Has(path) != (i < 6) {
			t.Errorf("%v: recorded %v, want %v", path, second.Has(path), i < 6)
		}
		if i >= 6 {
			if err := second.Add(path, signal(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if text, err = second.Encode(); err != nil {
		t.Fatal(err)
	}
	s, err := ParseSmartIR(text)
	if err != nil || len(s.Skipped) > 0 {
		t.Fatalf("%v, skipped %v", err, s.Skipped)
	}
	var leaves []string
	for path, code := range s.Codes.Leaves() {
		leaves = append(leaves, strings.Join(path, "/"))
		if path[0] == "전원 끄기" && !slices.Equal(code[0].Durations, signal(0)[:59]) {
			t.Errorf("got durations %v", code[0].Durations)
		}
	}
	want := []string{"전원 끄기", "냉방/24/약/고정", "냉방/24/약/회전", "냉방/24/자동/고정", "냉방/24/자동/회전", "냉방/25/약/고정", "냉방/25/약/회전",
		"냉방/25/자동/고정", "냉방/25/자동/회전", "송풍/약/고정", "송풍/약/회전", "송풍/자동/고정", "송풍/자동/회전"}
	if !slices.Equal(leaves, want) {
		t.Errorf("got %q, want %q", leaves, want)
	}
	if err := second.Add([]string{"off"}, []uint32{500}); err == nil {
		t.Error("got no error for a signal of one mark")
	}
	if err := second.Resume([]byte(`{"commands":{"off":5}}`)); err == nil {
		t.Error("got no error for a file that is not a recording")
	}
}
