package channel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// CalendarType is the media type of an exported calendar.
const CalendarType = "text/calendar; charset=utf-8"

// maxOctets is the maximum length of a calendar line (RFC 5545, 3.1), without the line break.
const maxOctets = 75

// Busy is a time that a channel must not sell. It contains no personal data.
type Busy struct {
	ID         string // unique and stable: a reservation's id or a closed period
	Start, End time.Time
	Modified   time.Time
	Sequence   int64 // number of changes
}

// Calendar is the calendar of a room, as published to a channel.
type Calendar struct {
	Name   string // shown to subscribers
	Domain string // ours; identifies our own entries when a channel sends them back
	Busy   []Busy // margins included
}

// Encode returns the calendar and an entity tag that changes with its content.
func (c Calendar) Encode() (body []byte, etag string) {
	var b bytes.Buffer
	line := func(format string, args ...any) { writeLine(&b, fmt.Sprintf(format, args...)) }
	line("BEGIN:VCALENDAR")
	line("VERSION:2.0")
	line("PRODID:-//%s//rooms//KO", text(c.Domain))
	line("CALSCALE:GREGORIAN")
	line("X-WR-CALNAME:%s", text(c.Name))
	line("REFRESH-INTERVAL;VALUE=DURATION:PT5M")
	line("X-PUBLISHED-TTL:PT5M")
	for _, e := range slices.SortedFunc(slices.Values(c.Busy), func(a, b Busy) int { return a.Start.Compare(b.Start) }) {
		line("BEGIN:VEVENT")
		line("UID:%s@%s", text(e.ID), text(c.Domain))
		// In a published calendar, DTSTAMP is the time of the last revision (3.8.7.2).
		line("DTSTAMP:%s", utc(e.Modified))
		line("LAST-MODIFIED:%s", utc(e.Modified))
		line("SEQUENCE:%d", e.Sequence)
		line("DTSTART:%s", utc(e.Start))
		line("DTEND:%s", utc(e.End))
		line("SUMMARY:예약됨")
		line("STATUS:CONFIRMED")
		line("TRANSP:OPAQUE")
		line("END:VEVENT")
	}
	line("END:VCALENDAR")
	sum := sha256.Sum256(b.Bytes())
	return b.Bytes(), `"` + hex.EncodeToString(sum[:16]) + `"`
}

func utc(t time.Time) string { return t.UTC().Format("20060102T150405Z") }

// text escapes a TEXT value (RFC 5545, 3.3.11). Control characters are not representable and are removed.
func text(s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && (r < ' ' || r == 0x7f) {
			return -1
		}
		return r
	}, strings.ReplaceAll(s, "\r\n", "\n"))
	return strings.NewReplacer(`\`, `\\`, `;`, `\;`, `,`, `\,`, "\n", `\n`).Replace(s)
}

// writeLine writes a content line with CRLF and folds it at character boundaries.
func writeLine(b *bytes.Buffer, s string) {
	room := maxOctets
	for len(s) > room {
		cut := room
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		b.WriteString(s[:cut])
		b.WriteString("\r\n ")
		s, room = s[cut:], maxOctets-1
	}
	b.WriteString(s)
	b.WriteString("\r\n")
}
