package booking_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func TestSlotString(t *testing.T) {
	t.Parallel()
	for want, slot := range map[string]struct {
		room  int
		start string
	}{
		"2-202611211500":    {2, "2026-11-21 15:00"},
		"1-202611210000":    {1, "2026-11-21 00:00"},
		"1-202611212350":    {1, "2026-11-21 23:50"},
		"12-202612312350":   {12, "2026-12-31 23:50"},
		"9999-202802290010": {9999, "2028-02-29 00:10"},
	} {
		t.Run(want, func(t *testing.T) {
			inZones(t, func(t *testing.T, zone *time.Location) {
				if got := (booking.Slot{Room: slot.room, Start: at(slot.start, zone)}).String(zone); got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		})
	}
}

// TestSlotStringIsATime compares the digits of random slots with the layout of package time.
func TestSlotStringIsATime(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := anyZone.Draw(t, "zone")
		slot := booking.Slot{
			Room:  rapid.IntRange(1, 9999).Draw(t, "room"),
			Start: anyDate.Draw(t, "date").At(10*rapid.IntRange(0, 143).Draw(t, "slot"), zone),
		}
		want := strconv.Itoa(slot.Room) + "-" + slot.Start.In(zone).Format("200601021504")
		if got := slot.String(zone); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	})
}

func TestSortSlots(t *testing.T) {
	t.Parallel()
	slots := []booking.Slot{
		{Room: 10, Start: at("2026-11-21 15:00", seoul)},
		{Room: 2, Start: at("2026-11-22 00:00", seoul)},
		{Room: 2, Start: at("2026-11-21 23:50", seoul)},
		{Room: 10, Start: at("2026-11-21 06:00", time.UTC)}, // the first again
		{Room: 2, Start: at("2026-11-21 23:50", seoul)},
		{Room: 1, Start: at("2026-11-21 15:00", seoul)},
	}
	var got []string
	for _, s := range booking.SortSlots(slots) {
		got = append(got, s.String(seoul))
	}
	want := []string{"1-202611211500", "2-202611212350", "2-202611220000", "10-202611211500"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSortSlotsLosesNothing(t *testing.T) {
	t.Parallel()
	base := at("2026-11-21 00:00", seoul)
	slot := rapid.Custom(func(t *rapid.T) booking.Slot {
		return booking.Slot{
			Room:  rapid.IntRange(1, 12).Draw(t, "room"),
			Start: base.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "slot")) * booking.SlotLength),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.SliceOf(slot).Draw(t, "slots")
		want := make(map[booking.Slot]bool)
		for _, s := range slots {
			want[s] = true
		}
		sorted := booking.SortSlots(slices.Clone(slots))
		got := make(map[booking.Slot]bool)
		for i, s := range sorted {
			got[s] = true
			if i == 0 {
				continue
			}
			if p := sorted[i-1]; p.Room > s.Room || p.Room == s.Room && !p.Start.Before(s.Start) {
				t.Fatalf("%v stands before %v", p, s)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
	})
}
