package branchfile_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/branchfile"
)

var update = flag.Bool("update", false, "write golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func demoFile(t testing.TB) branchfile.File {
	t.Helper()
	content, err := os.ReadFile("../../../deploy/demo/branches.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file, err := branchfile.Parse("branches.yaml", content)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMistakesAreAllReportedWithTheirPlaces(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"mistakes", "syntax", "alias", "demo-mistakes", "empty", "unrelated"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			_, err = branchfile.Parse(name+".yaml", content)
			if err == nil {
				t.Fatal("accepted")
			}
			golden(t, filepath.Join("testdata", name+".golden"), err.Error()+"\n")
		})
	}
}

// The demo file is part of the contract (docs/specification.md, Demo data).
func TestDemoFile(t *testing.T) {
	t.Parallel()
	file := demoFile(t)
	branches := map[string]branchfile.Branch{}
	for _, b := range file.Branches {
		branches[b.Code] = b
	}
	for code, rooms := range map[string]int{"gangnam": 6, "hongdae": 3, "jamsil": 2} {
		if n := len(branches[code].Rooms); n != rooms {
			t.Errorf("%s has %d rooms, not %d", code, n, rooms)
		}
	}
	gangnam, hongdae := branches["gangnam"], branches["hongdae"]
	grades, prices := map[booking.Grade]bool{}, map[int]bool{}
	for _, room := range gangnam.Rooms {
		hourly, _ := room.Price.Hourly()
		grades[room.Grade], prices[hourly] = true, true
		if (room.Price.Min10 == nil) != (room.No == 6) {
			t.Errorf("room %d: min10 = %v", room.No, room.Price.Min10)
		}
	}
	if len(grades) != 6 || len(prices) != 6 {
		t.Errorf("gangnam has %d grades and %d prices; they differ", len(grades), len(prices))
	}
	if diff := cmp.Diff([]string{"front_1", "front_2"}, gangnam.FrontDoors); diff != "" {
		t.Error(diff)
	}
	seoul := gangnam.Zone
	at := func(text string) time.Time {
		when, err := time.ParseInLocation("2006-01-02 15:04", text, seoul)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	for _, c := range []struct {
		branch, start string
		want          error
	}{
		{"gangnam", "2026-12-25 03:00", nil},
		{"hongdae", "2026-11-24 10:00", nil}, // a Tuesday
		{"hongdae", "2026-11-24 21:50", nil},
		{"hongdae", "2026-11-24 09:50", booking.ErrAfterHours},
		{"hongdae", "2026-11-24 22:00", booking.ErrAfterHours},
		{"hongdae", "2026-11-24 15:00", booking.ErrBreak},
		{"hongdae", "2026-11-24 15:50", booking.ErrBreak},
		{"hongdae", "2026-11-23 12:00", booking.ErrClosed}, // a Monday
		{"hongdae", "2026-12-25 12:00", booking.ErrClosed}, // Christmas, a Friday
		{"jamsil", "2026-11-23 23:50", nil},
	} {
		slot := booking.Interval{Start: at(c.start), End: at(c.start).Add(booking.SlotLength)}
		if err := branches[c.branch].Schedule.Check(slot, seoul); !errors.Is(err, c.want) {
			t.Errorf("%s %s: %v, want %v", c.branch, c.start, err, c.want)
		}
	}
	if day := hongdae.Schedule.Day(booking.Date{Year: 2026, Month: 12, Day: 25}); day.Status != booking.Holiday {
		t.Errorf("Christmas in hongdae is %+v", day)
	}
	want := []branchfile.Administrator{
		{LoginID: "hq", Password: "hq-demo", Role: "hq"},
		{LoginID: "gangnam-manager", Password: "gangnam-demo", Role: "manager", Branches: []string{"gangnam"}},
	}
	if diff := cmp.Diff(want, file.Administrators); diff != "" {
		t.Error(diff)
	}
	for code, b := range branches {
		if diff := cmp.Diff([]branchfile.Agent{{Username: "agent-" + code, Secret: "agent-" + code + "-demo"}}, b.Agents); diff != "" {
			t.Error(diff)
		}
	}
}

func TestWeek(t *testing.T) {
	t.Parallel()
	file, err := branchfile.Parse("week.yaml", []byte(`
branches:
  - code: night
    name: {ko: 밤, en: Night}
    hours: {everyday: [06:00-12:00, 18:00-02:00], mon: closed, sun: 10:00-24:00}
    breaks: {sat: 23:30-00:30}
    rooms: [{no: 2, enabled: false}, {no: 1}]
`))
	if err != nil {
		t.Fatal(err)
	}
	b := file.Branches[0]
	week := b.Schedule.Week
	if !week[time.Monday].Closed || week[time.Tuesday].Closed {
		t.Errorf("Monday %+v, Tuesday %+v", week[time.Monday], week[time.Tuesday])
	}
	if diff := cmp.Diff([]booking.ClockSpan{{From: 360, To: 720}, {From: 1080, To: 1560}}, week[time.Friday].Open); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]booking.ClockSpan{{From: 1410, To: 1470}}, week[time.Saturday].Breaks); diff != "" {
		t.Error(diff)
	}
	if err := b.Schedule.Validate(); err != nil {
		t.Error(err)
	}
	if b.Rooms[0].No != 1 || !b.Rooms[0].Enabled || b.Rooms[0].SetsEnabled || b.Rooms[1].Enabled || !b.Rooms[1].SetsEnabled {
		t.Errorf("rooms %+v", b.Rooms)
	}
}

// Any input either parses into branches that pass the rules, or returns problems that all have a position.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.yaml", "../../../deploy/demo/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			content, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(content)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		file, err := branchfile.Parse("f", content)
		if problems := (branchfile.Problems)(nil); errors.As(err, &problems) {
			lines := strings.Count(string(content), "\n") + strings.Count(string(content), "\r") + 2
			for _, p := range problems {
				if p.Line < 1 || p.Line > lines || p.Column < 1 || p.Text == "" {
					t.Errorf("problem without a place: %+v", p)
				}
			}
			return
		}
		if err != nil {
			t.Fatalf("an error without a place: %v", err)
		}
		for _, b := range file.Branches {
			if err := b.Schedule.Validate(); err != nil {
				t.Errorf("branch %s: %v", b.Code, err)
			}
			if b.Code == "" || b.Zone == nil || len(b.Rooms) == 0 || len(b.FrontDoors) == 0 {
				t.Errorf("branch %+v is incomplete", b)
			}
		}
	})
}
