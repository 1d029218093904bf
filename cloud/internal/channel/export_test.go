package channel

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/emersion/go-ical"
)

func calendar() Calendar {
	modified := time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)
	return Calendar{
		Name:   "강남점 2번 룸; 예약,\n이름이 아주 긴 지점이라 한 줄에 다 들어가지 않고 접혀야 합니다",
		Domain: ourDomain,
		Busy: []Busy{
			{"4712", at(24), at(26), modified, 2},
			{"4711", at(1).In(seoul), at(2).In(seoul), modified, 0},
			{"closed-20261124", at(60), at(70), modified.Add(time.Hour), 0},
		},
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	got, _ := calendar().Encode()
	path := "testdata/export.ics"
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(strings.ReplaceAll(string(got), "\r\n", ""), "\n") || !bytes.HasSuffix(got, []byte("END:VCALENDAR\r\n")) {
		t.Error("lines do not end with CRLF")
	}
	for line := range bytes.SplitSeq(got, []byte("\r\n")) {
		if len(line) > maxOctets || !utf8.Valid(line) {
			t.Errorf("line of %d octets: %q", len(line), line)
		}
	}
	// The iCal library parses the exported calendar.
	parsed, err := ical.NewDecoder(bytes.NewReader(got)).Decode()
	if err != nil {
		t.Fatal(err)
	}
	if name, err := parsed.Props.Text("X-WR-CALNAME"); err != nil || name != calendar().Name {
		t.Errorf("name %q, %v", name, err)
	}
	events := parsed.Events()
	if len(events) != 3 {
		t.Fatalf("%d events", len(events))
	}
	start, err := events[0].DateTimeStart(nil)
	if err != nil || !start.Equal(at(1)) {
		t.Errorf("starts %v, %v", start, err)
	}
}

// Our own entries are skipped when they come back, and parsed completely by any other reader.
func TestOwnCalendarComesBack(t *testing.T) {
	t.Parallel()
	body, _ := calendar().Encode()
	if list, problems, _, err := ParseCalendar(t.Context(), body, seoul, ourDomain, now); err != nil || len(list) != 0 || len(problems) != 0 {
		t.Errorf("%+v %v %v", list, problems, err)
	}
	list, problems, _, err := ParseCalendar(t.Context(), body, seoul, "other.example", now)
	if err != nil || len(list) != 3 || len(problems) != 0 || list[0].ExternalID != "4711@yeolda.example" || !list[0].Start.Equal(at(1)) || !list[0].End.Equal(at(2)) || list[1].Seq != 2 {
		t.Errorf("%+v %v %v", list, problems, err)
	}
}

func TestEntityTagFollowsTheContent(t *testing.T) {
	t.Parallel()
	_, a := calendar().Encode()
	c := calendar()
	c.Busy[0], c.Busy[1] = c.Busy[1], c.Busy[0]
	if _, b := c.Encode(); a != b {
		t.Error("the order of the input changes the tag")
	}
	c.Busy = c.Busy[1:]
	if _, b := c.Encode(); a == b {
		t.Error("the tag did not change when an entry was removed")
	}
}

func FuzzText(f *testing.F) {
	f.Add("강남점; 2번, 룸\\\r\n")
	f.Add(strings.Repeat("열", 100))
	f.Fuzz(func(t *testing.T, name string) {
		if !utf8.ValidString(name) {
			t.Skip()
		}
		body, _ := Calendar{Name: name, Domain: ourDomain}.Encode()
		for line := range bytes.SplitSeq(body, []byte("\r\n")) {
			if len(line) > maxOctets || !utf8.Valid(line) || bytes.ContainsAny(line, "\r\n") {
				t.Errorf("line %q", line)
			}
		}
		parsed, err := ical.NewDecoder(bytes.NewReader(body)).Decode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := parsed.Props.Text("X-WR-CALNAME")
		if err != nil {
			t.Fatal(err)
		}
		clean := strings.Map(func(r rune) rune {
			if r != '\n' && (r < ' ' || r == 0x7f) {
				return -1
			}
			return r
		}, strings.ReplaceAll(name, "\r\n", "\n"))
		if back != clean {
			t.Errorf("%q came back as %q", clean, back)
		}
	})
}
