package linear_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/linear"
	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

const hold = 20 * time.Second

// began is noon in Korea: all slots of the tests are on one day.
var began = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

func slot(room, start, length int) record.Slot {
	from := began.Add(time.Duration(start) * time.Minute)
	return record.Slot{Branch: "b", Room: room, Start: from, End: from.Add(time.Duration(length) * time.Minute)}
}

// op is a request from second a to second z; status 0 means no answer.
func op(kind string, owner int64, s record.Slot, a, z float64, status int) record.Op {
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	o := record.Op{Kind: kind, Owner: owner, Slot: s, Call: at(a), Return: at(z), Status: status, ID: owner}
	if status == 409 {
		o.Type = "ResourceAlreadyExistException"
	}
	return o
}

func to(o record.Op, s record.Slot) record.Op { o.To = s; return o }

func byAccount(o record.Op) record.Op { o.State = "가상계좌"; return o }

func TestHistories(t *testing.T) {
	t.Parallel()
	x, y := slot(1, 0, 30), slot(1, 20, 30) // they overlap
	z, beside := slot(1, 40, 30), slot(1, 30, 30)
	for name, test := range map[string]struct {
		legal bool
		ops   []record.Op
	}{
		"nothing":                               {true, nil},
		"one after the other":                   {true, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Release, 1, x, 2, 3, 200), op(record.Take, 2, y, 4, 5, 200)}},
		"both at once":                          {false, []record.Op{op(record.Take, 1, x, 0, 5, 200), op(record.Take, 2, y, 0, 5, 200)}},
		"the margin counts":                     {false, []record.Op{op(record.Take, 1, x, 0, 5, 200), op(record.Take, 2, beside, 0, 5, 200)}},
		"after the margin":                      {true, []record.Op{op(record.Take, 1, x, 0, 5, 200), op(record.Take, 2, z, 0, 5, 200)}},
		"another room":                          {true, []record.Op{op(record.Take, 1, x, 0, 5, 200), op(record.Take, 2, slot(2, 0, 30), 0, 5, 200)}},
		"one wins":                              {true, []record.Op{op(record.Take, 1, x, 0, 5, 200), op(record.Take, 2, x, 0, 5, 409)}},
		"no request wins":                       {false, []record.Op{op(record.Take, 1, x, 0, 5, 409), op(record.Take, 2, x, 0, 5, 409)}},
		"the hold ends by itself":               {true, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Take, 2, x, 24, 25, 200)}},
		"too early for that":                    {false, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Take, 2, x, 10, 11, 200)}},
		"it keeps others out for too long":      {false, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Take, 2, x, 30, 31, 409)}},
		"it is unknown which one has it":        {true, []record.Op{op(record.Take, 1, x, 0, 1, 0), op(record.Take, 2, x, 2, 3, 409)}},
		"and perhaps none has":                  {true, []record.Op{op(record.Take, 1, x, 0, 1, 0), op(record.Take, 2, x, 2, 3, 200)}},
		"what is sold does not end":             {false, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 200), op(record.Take, 2, x, 60, 61, 200)}},
		"sold twice":                            {false, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Take, 2, x, 24, 25, 200), op(record.Confirm, 1, x, 26, 27, 200)}},
		"taken again after its end":             {true, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 60, 61, 200), op(record.Take, 2, x, 62, 63, 409)}},
		"an account may close":                  {true, []record.Op{op(record.Take, 1, x, 0, 1, 200), byAccount(op(record.Confirm, 1, x, 2, 3, 200)), op(record.Take, 2, x, 60, 61, 200)}},
		"cancelled and sold again":              {true, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 200), op(record.Cancel, 1, x, 4, 5, 200), op(record.Take, 2, x, 6, 7, 200)}},
		"cancelled, and still kept":             {false, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 200), op(record.Cancel, 1, x, 4, 5, 200), op(record.Take, 2, x, 6, 7, 409)}},
		"the same answer after a cancellation":  {true, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 0), op(record.AdminEnd, 1, x, 4, 5, 200), op(record.Confirm, 1, x, 6, 7, 200), op(record.Take, 2, x, 8, 9, 200)}},
		"moved":                                 {true, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 200), to(op(record.Relocate, 1, x, 4, 5, 200), z), op(record.Take, 2, slot(1, -10, 40), 6, 7, 200), op(record.Take, 3, z, 6, 7, 409)}},
		"moved onto another":                    {false, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 200), op(record.Take, 2, z, 0, 1, 200), to(op(record.Relocate, 1, x, 4, 5, 200), z)}},
		"moved, and the old time is lost":       {false, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 200), to(op(record.Relocate, 1, x, 4, 5, 200), slot(2, 0, 30)), op(record.Take, 2, x, 6, 7, 409)}},
		"moved, and the new time is not kept":   {false, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 200), to(op(record.Relocate, 1, x, 4, 5, 200), slot(2, 0, 30)), op(record.Take, 2, slot(2, 0, 30), 6, 7, 200)}},
		"not moved, for no reason":              {false, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 200), to(op(record.Relocate, 1, x, 4, 5, 409), slot(2, 0, 30))}},
		"moved, or not":                         {true, []record.Op{op(record.Take, 1, x, 0, 1, 200), op(record.Confirm, 1, x, 2, 3, 200), to(op(record.Relocate, 1, x, 4, 5, 0), slot(2, 0, 30)), op(record.Take, 2, x, 6, 7, 200), op(record.Take, 3, slot(2, 0, 30), 6, 7, 409)}},
		"a partner's room is not judged":        {true, []record.Op{op(record.Take, 1, record.Slot{Branch: "shared", Room: 1, Start: began, End: began.Add(time.Hour)}, 0, 1, 409)}},
		"registered by staff and then not kept": {false, []record.Op{op(record.AdminTake, 1, x, 0, 1, 200), op(record.Keep, 1, x, 2, 3, 200), op(record.Take, 2, y, 60, 61, 200)}},
	} {
		r := record.Record{Began: began, Ops: test.ops, Shared: []string{"shared"}}
		for _, o := range test.ops { // the rows by which administrators find them
			if (o.Kind == record.Take || o.Kind == record.AdminTake) && o.OK() {
				r.History = append(r.History, record.Version{ID: o.Owner, Slot: o.Slot, At: o.Call.Add(o.Return.Sub(o.Call) / 2)})
			}
		}
		got := linear.Check(&r, hold, time.Minute)
		if legal := len(got.Illegal) == 0; legal != test.legal || len(got.Undecided) > 0 {
			t.Errorf("%s: legal %t, want %t (%+v)", name, legal, test.legal, got)
		}
	}
}
