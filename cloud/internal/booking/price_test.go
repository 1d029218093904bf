package booking_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

func TestPriceFor(t *testing.T) {
	t.Parallel()
	full := booking.Price{Min10: new(3000), Min30: new(8000), Min60: new(15000)}
	no10 := booking.Price{Min30: new(8000), Min60: new(15000)}
	no30 := booking.Price{Min10: new(3000), Min60: new(15000)}
	only60 := booking.Price{Min60: new(15000)}
	only10 := booking.Price{Min10: new(3000)}
	free := booking.Price{Min10: new(0)}

	const refused = -1
	for _, test := range []struct {
		name    string
		price   booking.Price
		minutes int
		want    int
	}{
		{"one slot", full, 10, 3000},
		{"two slots", full, 20, 6000},
		{"half an hour", full, 30, 8000},
		{"40", full, 40, 8000 + 3000},
		{"50, more than an hour costs", full, 50, 8000 + 2*3000},
		{"hour", full, 60, 15000},
		{"100", full, 100, 15000 + 8000 + 3000},
		{"150", full, 150, 2*15000 + 8000},
		{"five hours", full, 300, 5 * 15000},
		{"no min10, one slot", no10, 10, refused},
		{"no min10, 30", no10, 30, 8000},
		{"no min10, 40", no10, 40, refused},
		{"no min10, 90", no10, 90, 15000 + 8000},
		{"no min30, 30", no30, 30, 3 * 3000},
		{"no min30, 90", no30, 90, 15000 + 3*3000},
		{"only min60, 60", only60, 60, 15000},
		{"only min60, 50", only60, 50, refused},
		{"only min60, 70", only60, 70, refused},
		{"only min10, 300", only10, 300, 30 * 3000},
		{"free", free, 60, 0},
		{"no price", booking.Price{}, 60, refused},
		{"nothing", full, 0, refused},
		{"less than nothing", full, -60, refused},
		{"between the marks", full, 15, refused},
	} {
		got, ok := test.price.For(time.Duration(test.minutes) * time.Minute)
		if !ok {
			if got != 0 {
				t.Errorf("%s: refused with %d won", test.name, got)
			}
			got = refused
		}
		if got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}
}

func TestPriceForRefusesASecondTooMuch(t *testing.T) {
	t.Parallel()
	if won, ok := (booking.Price{Min10: new(3000)}).For(10*time.Minute + time.Second); ok {
		t.Errorf("costs %d", won)
	}
}

var anyPrice = rapid.Custom(func(t *rapid.T) booking.Price {
	tier := rapid.Ptr(rapid.IntRange(0, 100_000), true)
	return booking.Price{Min10: tier.Draw(t, "min10"), Min30: tier.Draw(t, "min30"), Min60: tier.Draw(t, "min60")}
})

// The price is that of the combination with the most hours, then the most half hours, among all that make up the length; and
// there is a price whenever there is a combination.
func TestPriceAgainstAllWays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := anyPrice.Draw(t, "price")
		minutes := 10 * rapid.IntRange(1, 30).Draw(t, "slots")

		most := func(won *int, of int) int {
			if won == nil {
				return 0
			}
			return minutes / of
		}
		cost := func(n int, won *int) int {
			if n == 0 {
				return 0
			}
			return n * *won
		}
		wantWon, wantOK := 0, false
		for n60 := range most(p.Min60, 60) + 1 {
			for n30 := range most(p.Min30, 30) + 1 {
				for n10 := range most(p.Min10, 10) + 1 {
					if 60*n60+30*n30+10*n10 == minutes { // later combinations have more hours, then more half hours
						wantWon, wantOK = cost(n60, p.Min60)+cost(n30, p.Min30)+cost(n10, p.Min10), true
					}
				}
			}
		}
		won, ok := p.For(time.Duration(minutes) * time.Minute)
		if won != wantWon || ok != wantOK {
			t.Fatalf("%d minutes: %d, %t; want %d, %t", minutes, won, ok, wantWon, wantOK)
		}
	})
}

func TestHourly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		price booking.Price
		want  int
		ok    bool
	}{
		{"min60 first", booking.Price{Min10: new(3000), Min30: new(8000), Min60: new(15000)}, 15000, true},
		{"then min30", booking.Price{Min10: new(3000), Min30: new(8000)}, 16000, true},
		{"then min10", booking.Price{Min10: new(3000)}, 18000, true},
		{"free is a price", booking.Price{Min60: new(0), Min10: new(3000)}, 0, true},
		{"none", booking.Price{}, 0, false},
	} {
		if got, ok := test.price.Hourly(); got != test.want || ok != test.ok {
			t.Errorf("%s: %d, %t", test.name, got, ok)
		}
	}
}

func TestSortRooms(t *testing.T) {
	t.Parallel()
	rooms := []booking.Room{
		{No: 1},
		{No: 11, Price: booking.Price{Min60: new(15000)}},
		{No: 2, Price: booking.Price{Min60: new(15000)}},
		{No: 3, Price: booking.Price{Min30: new(8000)}},
		{No: 4, Price: booking.Price{Min10: new(3000)}},
		{No: 5, Price: booking.Price{Min60: new(0)}},
		{No: 10},
		{No: 9},
		{No: 6, Price: booking.Price{Min60: new(20000)}, Enabled: true},
	}
	booking.SortRooms(rooms)
	var got []int
	for _, r := range rooms {
		got = append(got, r.No)
	}
	if diff := cmp.Diff([]int{6, 4, 3, 2, 11, 5, 1, 9, 10}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBranchRoom(t *testing.T) {
	t.Parallel()
	b := booking.Branch{Rooms: []booking.Room{{ID: 7, No: 1}, {ID: 8, No: 3}}}
	if r, ok := b.Room(3); !ok || r.ID != 8 {
		t.Errorf("room 3: %v, %t", r, ok)
	}
	if r, ok := b.Room(2); ok {
		t.Errorf("room 2: %v", r)
	}
}

func TestGradeValid(t *testing.T) {
	t.Parallel()
	for _, g := range []booking.Grade{"", "Stella", "Crystal", "Superb", "Premium", "Gold", "Standard", "Normal"} {
		if !g.Valid() {
			t.Errorf("%q is not valid", g)
		}
	}
	for _, g := range []booking.Grade{"stella", "Silver", " "} {
		if g.Valid() {
			t.Errorf("%q is valid", g)
		}
	}
}
