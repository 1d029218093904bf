package channel

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/channel/channeltest"
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
		list, problems, _, err := ParseCalendar(t.Context(), body, seoul, ourDomain, now)
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
			if _, _, _, err := ParseCalendar(t.Context(), []byte(whole[:cut]), seoul, ourDomain, now); err == nil {
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
		if _, _, _, err := ParseCalendar(t.Context(), []byte(body), seoul, ourDomain, now); err == nil {
			t.Errorf("%.60q was taken", body)
		}
	}
}

var bombs = flag.Int("bombs", 30, "number of generated calendars in TestCalendarBombs")

// Any calendar costs at most 100 MB of memory and stays within the budget of bookings, whose cost is bounded by
// parseTimeout. The time is measured by BenchmarkCalendarBombs.
func TestCalendarBombs(t *testing.T) {
	const limit = 100 << 20
	var slowest time.Duration
	var largest uint64
	for seed := range uint64(*bombs) {
		body := channeltest.Bomb(seed, now)
		runtime.GC()
		base, peak := heap(), watchHeap()
		began := time.Now()
		list, problems, _, err := ParseCalendar(t.Context(), body, seoul, ourDomain, now)
		slowest = max(slowest, time.Since(began))
		used := peak() - base
		largest = max(largest, used)
		if used > limit {
			t.Errorf("seed %d: %d bytes of calendar used %d MB (%d bookings, %v)", seed, len(body), used>>20, len(list), err)
		}
		if len(list) > maxBookings || len(problems) > maxProblems {
			t.Errorf("seed %d: %d bookings, %d problems", seed, len(list), len(problems))
		}
	}
	t.Logf("%d calendars: at most %d MB and %v", *bombs, largest>>20, slowest)
}

func heap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// watchHeap samples the heap until the returned function is called, which returns the largest sample.
func watchHeap() func() uint64 {
	stop, peak := make(chan struct{}), make(chan uint64)
	go func() {
		largest := heap()
		for {
			select {
			case <-stop:
				peak <- max(largest, heap())
				return
			case <-time.After(time.Millisecond):
				largest = max(largest, heap())
			}
		}
	}()
	return func() uint64 { close(stop); return <-peak }
}

func BenchmarkCalendarBombs(b *testing.B) {
	for i := 0; b.Loop(); i++ {
		body := channeltest.Bomb(uint64(i), now)
		_, _, _, _ = ParseCalendar(b.Context(), body, seoul, ourDomain, now)
	}
}

// Each of these calendars is rejected as a whole: it is not a room's calendar.
func TestBudgetOfACalendar(t *testing.T) {
	t.Parallel()
	event := func(i int, lines ...string) string {
		return fmt.Sprintf("BEGIN:VEVENT\r\nUID:%d\r\n%s\r\nEND:VEVENT\r\n", i, strings.Join(lines, "\r\n"))
	}
	repeat := func(n int, lines ...string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(event(i, lines...))
		}
		return b.String()
	}
	const hour = "DTSTART:20261123T000000Z\r\nDTEND:20261123T010000Z"
	for name, body := range map[string]string{
		"too many entries":       repeat(maxEvents+1, hour),
		"too many bookings":      repeat(maxBookings+1, hour),
		"too many occurrences":   repeat(maxBookings/150, hour, "RRULE:FREQ=DAILY"),
		"too many rules":         repeat(maxRecurring+1, hour, "RRULE:FREQ=DAILY;COUNT=1"),
		"too many steps":         repeat(10, "DTSTART:19700101T000000Z", "RRULE:FREQ=DAILY"),
		"too many excluded days": repeat(1, hour, "RRULE:FREQ=DAILY", strings.Repeat("EXDATE:"+strings.Repeat("20261123T000000Z,", 200)+"20261123T000000Z\r\n", 50)+"SEQUENCE:1"),
	} {
		if _, _, _, err := ParseCalendar(t.Context(), []byte("BEGIN:VCALENDAR\r\n"+body+"END:VCALENDAR\r\n"), seoul, ourDomain, now); !errors.Is(err, ErrOverBudget) {
			t.Errorf("%s: %v, want %v", name, err, ErrOverBudget)
		}
	}
	// These entries are problems; the rest of the calendar is read.
	for name, body := range map[string]string{
		"long parameter":       event(1, "DTSTART;X="+strings.Repeat("a", maxParameters)+":20261123T000000Z"),
		"long value":           event(1, "RDATE:"+strings.Repeat("2", maxEventLine)),
		"long entry":           event(1, "DTSTART:20261123T000000Z", "DURATION:P400D"),
		"long recurring entry": event(1, "DTSTART:20261123T000000Z", "DURATION:P8D", "RRULE:FREQ=DAILY"),
	} {
		list, problems, _, err := ParseCalendar(t.Context(), []byte("BEGIN:VCALENDAR\r\n"+event(2, hour)+body+"END:VCALENDAR\r\n"), seoul, ourDomain, now)
		if err != nil || len(problems) != 1 || len(list) != 1 {
			t.Errorf("%s: %d bookings, problems %v, %v; want one of each", name, len(list), problems, err)
		}
	}
}

// Parsing ends with its context.
func TestParsingIsCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := ParseCalendar(ctx, anHour, seoul, ourDomain, now); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
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
		list, _, _, err := ParseCalendar(t.Context(), body, seoul, ourDomain, now)
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

// A calendar that keeps its past entries, as that of a busy room does for years, is within the budget and complete: only what may be in
// the imported period counts. A rule that has ended may be of any kind.
func TestHistoryOfACalendarCostsNoBudget(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("BEGIN:VCALENDAR\r\n")
	event := func(uid string, start time.Time) {
		fmt.Fprintf(&text, "BEGIN:VEVENT\r\nUID:%s\r\nDTSTART:%s\r\nDTEND:%s\r\nEND:VEVENT\r\n", uid, utc(start), utc(start.Add(time.Hour)))
	}
	for n := range maxBookings + 500 {
		event(fmt.Sprint("past-", n), now.Add(-time.Duration(n+30)*4*time.Hour))
	}
	for n := range maxRecurring + 50 {
		fmt.Fprintf(&text, "BEGIN:VEVENT\r\nUID:weekly-%d\r\nDTSTART:20240101T000000Z\r\nDURATION:PT1H\r\nRRULE:FREQ=WEEKLY;UNTIL=20250101T000000Z\r\nEND:VEVENT\r\n", n)
	}
	text.WriteString("BEGIN:VEVENT\r\nUID:hourly\r\nDTSTART:20240101T000000Z\r\nDURATION:PT1H\r\nRRULE:FREQ=HOURLY;UNTIL=20240102\r\nEND:VEVENT\r\n")
	event("tomorrow", now.Add(24*time.Hour))
	text.WriteString("END:VCALENDAR\r\n")
	list, problems, _, err := ParseCalendar(t.Context(), []byte(text.String()), seoul, ourDomain, now)
	if err != nil || len(problems) > 0 || len(list) != 1 || list[0].ExternalID != "tomorrow" {
		t.Errorf("got %d bookings, problems %v, error %v; want tomorrow's", len(list), problems, err)
	}
}
