package channel

import (
	"strings"
	"testing"
	"time"
)

// Entries of whole days end at midnight on days of 23 and 25 hours, too, and so do their recurrences.
func TestWholeDaysEndAtMidnight(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	for name, entry := range map[string]string{
		"weekly from the day in spring":     "DTSTART;VALUE=DATE:20270314\nRRULE:FREQ=WEEKLY;COUNT=4",
		"daily over the day in autumn":      "DTSTART;VALUE=DATE:20271105\nRRULE:FREQ=DAILY;COUNT=4",
		"weekly with an end, in autumn":     "DTSTART;VALUE=DATE:20271031\nDTEND;VALUE=DATE:20271101\nRRULE:FREQ=WEEKLY;COUNT=3",
		"weekly with a duration, in spring": "DTSTART;VALUE=DATE:20270307\nDURATION:P1D\nRRULE:FREQ=WEEKLY;COUNT=3",
		"three days in autumn":              "DTSTART;VALUE=DATE:20271106\nDTEND;VALUE=DATE:20271109",
		"a week":                            "DTSTART;VALUE=DATE:20271103\nDURATION:P1W",
	} {
		body := strings.ReplaceAll("BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//x//y//EN\nBEGIN:VEVENT\nUID:a@x\nDTSTAMP:20270301T000000Z\n"+entry+"\nSUMMARY:closed\nEND:VEVENT\nEND:VCALENDAR\n", "\n", "\r\n")
		now := time.Date(2027, 3, 1, 0, 0, 0, 0, zone)
		if strings.Contains(name, "autumn") || name == "a week" {
			now = time.Date(2027, 10, 25, 0, 0, 0, 0, zone)
		}
		list, problems, _, err := ParseCalendar(t.Context(), []byte(body), zone, ourDomain, now)
		if err != nil || len(problems) > 0 || len(list) == 0 {
			t.Fatalf("%s: %d bookings, %v %v", name, len(list), problems, err)
		}
		for _, b := range list {
			start, end := b.Start.In(zone).Format("01-02 15:04"), b.End.In(zone).Format("01-02 15:04")
			if !strings.HasSuffix(start, " 00:00") || !strings.HasSuffix(end, " 00:00") {
				t.Errorf("%s: %s to %s", name, start, end)
			}
		}
	}
}
