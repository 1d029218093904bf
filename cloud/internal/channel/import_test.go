package channel

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var (
	update = flag.Bool("update", false, "rewrite golden files")

	seoul = func() *time.Location {
		zone, err := time.LoadLocation("Asia/Seoul")
		if err != nil {
			panic(err)
		}
		return zone
	}()
	now = time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
)

const ourDomain = "yeolda.example"

func golden(t *testing.T, path string, got any) {
	t.Helper()
	b, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	b = append(b, '\n')
	if *update {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != string(want) {
		t.Errorf("%s:\ngot  %s\nwant %s", path, b, want)
	}
}

func inputs(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no inputs %s: %v", pattern, err)
	}
	all := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(p, filepath.Ext(p))] = b
	}
	return all
}

// line formats a booking for the golden files.
type line struct {
	ID, Start, End string
	Cancelled      bool  `json:",omitempty"`
	Seq            int64 `json:",omitempty"`
}

func TestParseCalendar(t *testing.T) {
	t.Parallel()
	for name, body := range inputs(t, "import/*.ics") {
		list, problems, err := ParseCalendar(body, seoul, ourDomain, now)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := struct {
			Bookings []line
			Problems []string
		}{Problems: problems}
		for _, b := range list {
			at := func(t time.Time) string { return t.In(seoul).Format("2006-01-02 Mon 15:04:05") }
			got.Bookings = append(got.Bookings, line{b.ExternalID, at(b.Start), at(b.End), b.Cancelled, b.Seq})
		}
		golden(t, name+".golden", got)
	}
}

// A calendar truncated at any position is an error, never a shorter calendar.
func TestTruncatedCalendarsAreRefused(t *testing.T) {
	t.Parallel()
	for name, body := range inputs(t, "import/*.ics") {
		whole := strings.TrimRight(string(body), "\r\n")
		for cut := range len(whole) {
			if _, _, err := ParseCalendar([]byte(whole[:cut]), seoul, ourDomain, now); err == nil {
				t.Fatalf("%s cut at %d of %d was taken", name, cut, len(whole))
			}
		}
	}
	for _, body := range []string{
		"", "\r\n", "<html>", "BEGIN:VEVENT\r\nEND:VEVENT\r\n", "UID:x\r\nBEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n",
		"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\nUID:x\r\n", "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nEND:VCALENDAR\r\n",
		"BEGIN:VCALENDAR\r\nEND:VEVENT\r\n", "END:VCALENDAR\r\n",
		strings.Repeat("BEGIN:VCALENDAR\r\n", 100_000),
		"BEGIN:VCALENDAR\r\n" + strings.Repeat("BEGIN:VEVENT\r\nEND:VEVENT\r\n", maxEvents+1) + "END:VCALENDAR\r\n",
	} {
		if _, _, err := ParseCalendar([]byte(body), seoul, ourDomain, now); err == nil {
			t.Errorf("%.60q was taken", body)
		}
	}
}

// What is made to be slow must not be. The limit is far above what a loaded machine
// needs and far below what the attacks cost without their countermeasures.
func TestHostileCalendarsAreCheap(t *testing.T) {
	t.Parallel()
	event := func(lines ...string) string {
		return "BEGIN:VEVENT\r\nUID:%\r\nDTSTART:20261123T000000Z\r\nDTEND:20261123T010000Z\r\n" + strings.Join(lines, "\r\n") + "\r\nEND:VEVENT\r\n"
	}
	for name, body := range map[string]string{
		"endless parameter":   event(`RDATE;X="` + strings.Repeat("a", 4<<20) + `":20261123T000000Z`),
		"endless value":       event("DESCRIPTION:" + strings.Repeat("a", 4<<20)),
		"folded all the way":  event("RDATE:" + strings.Repeat("\r\n 2", 1<<20)),
		"endless entry":       event(strings.Repeat("RDATE:20261123T000000Z\r\n", 150_000)),
		"never a Monday":      event("RRULE:FREQ=DAILY;INTERVAL=7;BYDAY=TU"),
		"no such day":         event("RRULE:FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=31"),
		"no such day of year": event("RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30"),
	} {
		start := time.Now()
		_, problems, err := ParseCalendar([]byte("BEGIN:VCALENDAR\r\n"+body+"END:VCALENDAR\r\n"), seoul, ourDomain, now)
		took := time.Since(start)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if took > time.Minute {
			t.Errorf("%s took %v (problems %v)", name, took, problems)
		}
	}
	many := strings.Repeat(event("RRULE:FREQ=DAILY;COUNT=2"), maxRecurring+1)
	if _, problems, err := ParseCalendar([]byte("BEGIN:VCALENDAR\r\n"+many+"END:VCALENDAR\r\n"), seoul, ourDomain, now); err != nil || len(problems) != 1 {
		t.Errorf("%d recurring entries: %v, %v", maxRecurring+1, problems, err)
	}
}

func TestRoundingFollowsTheBranchsClock(t *testing.T) {
	t.Parallel()
	kathmandu := time.FixedZone("+0545", 5*60*60+45*60)
	at := time.Date(2026, 11, 21, 15, 1, 0, 0, kathmandu)
	start, end := outwards(at, at.Add(time.Minute), kathmandu)
	if got := start.In(kathmandu).Format("15:04") + "-" + end.In(kathmandu).Format("15:04"); got != "15:00-15:10" {
		t.Errorf("rounded to %s", got)
	}
	exact := time.Date(2026, 11, 21, 15, 0, 0, 0, seoul)
	if start, end := outwards(exact, exact.Add(time.Hour), seoul); !start.Equal(exact) || !end.Equal(exact.Add(time.Hour)) {
		t.Errorf("moved %v %v", start, end)
	}
}

func FuzzParseCalendar(f *testing.F) {
	for _, body := range inputs(f, "import/*.ics") {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		list, _, err := ParseCalendar(body, seoul, ourDomain, now)
		if err != nil && list != nil {
			t.Error("bookings beside an error")
		}
		for _, b := range list {
			if b.ExternalID == "" || !b.Cancelled && !b.End.After(b.Start) {
				t.Errorf("%+v", b)
			}
		}
	})
}
