// Package channeltest generates calendars for tests.
package channeltest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Bomb generates a calendar of at most 5 MB that is made to cost memory or time: many or long entries, recurrence rules
// that multiply, long lists of dates, parameters and folded lines, rules that never match. Entries begin after now.
func Bomb(seed uint64, now time.Time) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	var b bytes.Buffer
	b.WriteString("BEGIN:VCALENDAR\r\n")
	size := 1 << (10 + r.IntN(13)) // 1 KiB to 4 MiB
	kinds := 1 + r.IntN(3)
	pick := r.Perm(10)[:kinds]
	dates := func(zone string, n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = now.Add(time.Duration(r.IntN(200*24*60))*time.Minute).Format("20060102T150405") + zone
		}
		return strings.Join(list, ",")
	}
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "BEGIN:VEVENT\r\nUID:%d\r\n", i)
		switch pick[r.IntN(kinds)] {
		case 0: // many long occurrences
			fmt.Fprintf(&b, "DTSTART:1972%02d01T000000Z\r\nDURATION:P21000D\r\nRRULE:FREQ=DAILY;COUNT=20000\r\n", 1+r.IntN(12))
		case 1: // many short occurrences
			fmt.Fprintf(&b, "DTSTART:19720101T%02d0000Z\r\nDURATION:PT10M\r\nRRULE:FREQ=DAILY\r\n", r.IntN(24))
		case 2: // exceptions
			b.WriteString("DTSTART:20261121T000000Z\r\nDURATION:PT10M\r\nRRULE:FREQ=DAILY;COUNT=20000\r\n")
			for range 1 + r.IntN(400) {
				fmt.Fprintf(&b, "EXDATE:%s\r\n", dates("Z", 1+r.IntN(200)))
			}
		case 3: // dates in a zone
			fmt.Fprintf(&b, "DTSTART:20261121T000000Z\r\nDURATION:PT10M\r\n")
			for range 1 + r.IntN(400) {
				fmt.Fprintf(&b, "RDATE;TZID=America/Argentina/ComodRivadavia:%s\r\n", dates("", 1+r.IntN(200)))
			}
		case 4: // single entries
			fmt.Fprintf(&b, "DTSTART:20261123T000000Z\r\nDTEND:20261123T010000Z\r\n")
		case 5: // long parameters
			fmt.Fprintf(&b, "DTSTART;X=%s:20261123T000000Z\r\n", strings.Repeat("a", r.IntN(4000)))
		case 6: // long and folded values
			fmt.Fprintf(&b, "DTSTART:%s\r\n", strings.Repeat("\r\n 2", r.IntN(10_000)))
		case 7: // rules without an occurrence
			fmt.Fprintf(&b, "DTSTART:20261123T000000Z\r\nRRULE:%s\r\n", []string{
				"FREQ=DAILY;INTERVAL=7;BYDAY=TU", "FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=31", "FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30",
				"FREQ=MONTHLY;BYDAY=MO;BYSETPOS=300", "FREQ=DAILY;BYMONTH=2;BYDAY=TU;INTERVAL=14;COUNT=3",
			}[r.IntN(5)])
		case 8: // the past, one step at a time
			fmt.Fprintf(&b, "DTSTART:19700101T000000Z\r\nDURATION:P7D\r\nRRULE:FREQ=DAILY;INTERVAL=%d\r\n", 1+r.IntN(3))
		case 9: // nested components and entries that are dropped
			fmt.Fprintf(&b, "BEGIN:VALARM\r\nDESCRIPTION:%s\r\nEND:VALARM\r\nDTSTART:20261123T000000Z\r\n", strings.Repeat("x", r.IntN(100_000)))
		}
		b.WriteString("END:VEVENT\r\n")
	}
	b.WriteString("END:VCALENDAR\r\n")
	return b.Bytes()
}
