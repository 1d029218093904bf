package booking_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func TestParseSlot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		room int
		want string
	}{
		{"2-202611211500", 2, "2026-11-21 15:00"},
		{"1-202611210000", 1, "2026-11-21 00:00"},
		{"1-202611212350", 1, "2026-11-21 23:50"},
		{"12-202612312350", 12, "2026-12-31 23:50"},
		{"9999-202802290010", 9999, "2028-02-29 00:10"},
	} {
		t.Run(test.text, func(t *testing.T) {
			inZones(t, func(t *testing.T, zone *time.Location) {
				got, err := booking.ParseSlot(test.text, zone)
				if err != nil {
					t.Fatal(err)
				}
				want := booking.Slot{Room: test.room, Start: at(test.want, zone)}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

func TestParseSlotRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want error
	}{
		{"", booking.ErrMalformedSlot},
		{"2", booking.ErrMalformedSlot},
		{"2-", booking.ErrMalformedSlot},
		{"-202611211500", booking.ErrMalformedSlot},
		{"202611211500", booking.ErrMalformedSlot},
		{"0-202611211500", booking.ErrMalformedSlot},
		{"-2-202611211500", booking.ErrMalformedSlot},
		{"+2-202611211500", booking.ErrMalformedSlot},
		{"02-202611211500", booking.ErrMalformedSlot},
		{" 2-202611211500", booking.ErrMalformedSlot},
		{"2-202611211500 ", booking.ErrMalformedSlot},
		{"2--202611211500", booking.ErrMalformedSlot},
		{"2-20261121150", booking.ErrMalformedSlot},
		{"2-2026112115000", booking.ErrMalformedSlot},
		{"2-20261121150000", booking.ErrMalformedSlot},
		{"2-202611212400", booking.ErrMalformedSlot},
		{"2-202611211560", booking.ErrMalformedSlot},
		{"2-202611311500", booking.ErrMalformedSlot},
		{"2-202702290000", booking.ErrMalformedSlot},
		{"2-202613011500", booking.ErrMalformedSlot},
		{"2-202600011500", booking.ErrMalformedSlot},
		{"2-20261121150٠", booking.ErrMalformedSlot},
		{"99999999999999999999-202611211500", booking.ErrMalformedSlot},
		{"2-202611211501", booking.ErrOffGrid},
		{"2-202611211509", booking.ErrOffGrid},
	} {
		if got, err := booking.ParseSlot(test.text, seoul); !errors.Is(err, test.want) {
			t.Errorf("ParseSlot(%q) = %v, %v; want %v", test.text, got, err, test.want)
		}
	}
}

// The clocks of New York jump from 02:00 to 03:00 on 2026-03-08.
func TestParseSlotInSkippedHour(t *testing.T) {
	t.Parallel()
	const text = "1-202603080230"
	if _, err := booking.ParseSlot(text, newYork); !errors.Is(err, booking.ErrMalformedSlot) {
		t.Errorf("New York: %v", err)
	}
	if _, err := booking.ParseSlot(text, seoul); err != nil {
		t.Errorf("Seoul: %v", err)
	}
}

func TestSlotRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		zone := anyZone.Draw(t, "zone")
		want := booking.Slot{
			Room:  rapid.IntRange(1, 9999).Draw(t, "room"),
			Start: anyDate.Draw(t, "date").At(10*rapid.IntRange(0, 143).Draw(t, "slot"), zone),
		}
		got, err := booking.ParseSlot(want.String(zone), zone)
		if err != nil {
			t.Fatal(err)
		}
		// An hour that occurs twice has only one name.
		if got.Room != want.Room || got.String(zone) != want.String(zone) {
			t.Fatalf("%v became %v", want, got)
		}
		if zone == seoul && !got.Start.Equal(want.Start) {
			t.Fatalf("%v became %v", want, got)
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

func FuzzParseSlot(f *testing.F) {
	for _, text := range []string{"2-202611211500", "1-202603080230", "1-202611010130", "1-000001010000", "0-202611211500", "2-202611211505", "-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, zone := range zones {
			s, err := booking.ParseSlot(text, zone)
			if err != nil {
				if !errors.Is(err, booking.ErrMalformedSlot) && !errors.Is(err, booking.ErrOffGrid) {
					t.Errorf("ParseSlot(%q): %v", text, err)
				}
				continue
			}
			if got := s.String(zone); got != text {
				t.Errorf("ParseSlot(%q) reads %q", text, got)
			}
			if _, err := booking.NewInterval(s.Start, s.Start.Add(booking.SlotLength), zone); err != nil {
				t.Errorf("ParseSlot(%q) is no slot: %v", text, err)
			}
		}
	})
}
