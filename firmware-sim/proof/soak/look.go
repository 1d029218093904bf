package soak

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

// slots holds the lists of both availability pages.
type slots struct {
	Booking, Paid, BookingMargin, PaidMargin []string
	Unavailable                              *slots `json:"unavailableSlots"` // V2
}

// look reads from one of the two pages the availability around a slot.
func (c *client) look(ctx context.Context, slot record.Slot) {
	at := int(slot.Start.Unix()/600+int64(slot.Room)) % len(c.world.Replicas)
	v1 := slot.Start.Unix()/600%2 == 0
	c.lookAt(ctx, at, slot.Branch, hourOf(slot.Start), 4, v1)
}

// hourOf returns the start of the hour by the clock of t's zone.
func hourOf(t time.Time) time.Time {
	return t.Add(-time.Duration(t.Minute()) * time.Minute).Truncate(time.Minute)
}

// lookAt reads the given number of hours of a branch from a replica; V1 always shows four.
func (c *client) lookAt(ctx context.Context, at int, branch string, from time.Time, hours int, v1 bool) {
	path := fmt.Sprintf("/v2/branches/%s/reservations?date=%s&baseHour=%d&hours=%d", branch, from.Format(time.DateOnly), from.Hour(), hours)
	if v1 {
		path = fmt.Sprintf("/reservations?branch=%s&base_date=%s&base_hour=%d", branch, from.Format("20060102"), from.Hour())
		hours = 4
	}
	r := c.ask(ctx, at, http.MethodGet, path, nil)
	var shown slots
	if !r.into(&shown) {
		return
	}
	if shown.Unavailable != nil {
		shown = *shown.Unavailable
	}
	l := record.Lookup{Branch: branch, From: from, Until: from.Add(time.Duration(hours) * time.Hour), Call: r.call, Return: r.ret, Replica: at, V1: v1,
		Busy: byRoom(from.Location(), shown.Booking, shown.Paid), Margins: byRoom(from.Location(), shown.BookingMargin, shown.PaidMargin)}
	c.note(func(rec *record.Record) { rec.Lookups = append(rec.Lookups, l) })
}

// byRoom parses slots of the form {room}-{YYYYMMDDHHmm}.
func byRoom(zone *time.Location, lists ...[]string) map[int][]time.Time {
	rooms := map[int][]time.Time{}
	for _, list := range lists {
		for _, slot := range list {
			no, text, _ := strings.Cut(slot, "-")
			room, err := strconv.Atoi(no)
			if err != nil {
				continue
			}
			if at, err := time.ParseInLocation(wireTime, text, zone); err == nil {
				rooms[room] = append(rooms[room], at)
			}
		}
	}
	return rooms
}
