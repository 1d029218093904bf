package branchfile_test

import (
	"strings"
	"testing"
)

// TestPriceRules: the rules of a file replace those of the database; a file without them keeps them.
func TestPriceRules(t *testing.T) {
	t.Parallel()
	a := newApplier(t)
	const head = "branches:\n  - code: a\n    name: {ko: 가, en: A}\n    rooms:\n      - {no: 1, price: {min10: 3000}"
	rules := ", prices: [{from: 2026-12-01, days: [fri, sat], hours: 18:00-02:00, min10: 4000}, {from: 2027-01-01, holidays: true, min10: 5000, min60: 24000}]}\n"
	if got := a.apply(parse(t, head+rules)); !strings.Contains(got, "price 3000/-/-; from 2026-12-01 fri sat 18:00-02:00 4000/-/-; from 2027-01-01 holidays 5000/-/24000") {
		t.Errorf("plan: %s", got)
	}
	for _, same := range []string{rules, "}\n"} {
		if got := a.apply(parse(t, head+same)); got != "no changes\n" {
			t.Errorf("%s: %s", same, got)
		}
	}
	branch, err := a.db.Branch(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	if room, _ := branch.Room(1); len(room.PriceRules) != 2 || room.PriceRules[0].Hours.To != 26*60 || !room.PriceRules[1].Holidays {
		t.Errorf("stored: %+v", room.PriceRules)
	}
	if got := a.apply(parse(t, head+", prices: []}\n")); !strings.Contains(got, "→ 3000/-/-\n") {
		t.Errorf("plan: %s", got)
	}
}
