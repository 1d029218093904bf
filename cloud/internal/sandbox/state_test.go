package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Lines are encoded while requests change the state, so taken changes must share no mutable data with it.
func TestTakenChangesAreIndependent(t *testing.T) {
	t.Parallel()
	st := newState()
	r := &record{Payment: Payment{PaymentKey: "k", VirtualAccount: &VirtualAccount{}, Cancels: []Cancel{{}}}, Transfers: []transfer{{}}}
	st.addPayment(r)
	b := &Booking{ID: "b"}
	st.changedBooking(b)
	taken := st.takeChanges()
	before := mustJSON(taken)
	r.Payment.Status, r.Payment.VirtualAccount.RefundStatus, r.Payment.Cancels[0].CancelReason, r.Transfers[0].Amount = "DONE", "PENDING", "x", 1
	b.Canceled = true
	if after := mustJSON(taken); !bytes.Equal(before, after) {
		t.Errorf("after changes: %s\nwant %s", after, before)
	}
	if again := st.takeChanges(); len(again.Payments) != 0 || len(again.Bookings) != 0 {
		t.Errorf("taken again: %s", mustJSON(again))
	}
	st.changed(r)
	if again := st.takeChanges(); len(again.Payments) != 1 || again.Payments[0].Payment.Status != "DONE" {
		t.Errorf("a second change: got %s", mustJSON(again))
	}
}

// A process that is killed while it writes leaves an incomplete last line. The lines before it are kept, and the next start
// continues after them.
func TestJournalSurvivesATornLine(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	write := func(order string) {
		t.Helper()
		j, _, err := openJournal(path)
		if err != nil {
			t.Fatal(err)
		}
		defer j.close()
		c := newChanges()
		c.Payments = []*record{{Payment: Payment{PaymentKey: order, OrderID: order}}}
		if err := j.append(c); err != nil {
			t.Fatal(err)
		}
	}
	write("one")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write("two")
	written, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 0; cut < len(written)-len(whole); cut += 41 {
		if err := os.WriteFile(path, written[:len(written)-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		st, err := readState(path)
		if err != nil || st.byKey["one"] == nil {
			t.Fatalf("without the last %d bytes: %v, %d payments", cut, err, len(st.Payments))
		}
	}
	write("three")
	st, err := readState(path)
	if err != nil || st.byKey["one"] == nil || st.byKey["three"] == nil {
		t.Errorf("after a start on a torn line: %v, %d payments", err, len(st.Payments))
	}
}

// A removed element stays removed, and one that is added again takes its newest place.
func TestReplayRemovesAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	end := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	p := replay{state: newState()}
	c := newChanges()
	c.Blocks = []Block{{ID: "a", End: end}, {ID: "b", End: end}, {ID: "a"}, {ID: "c", End: end}, {ID: "a", End: end}, {ID: "b", Room: 2, End: end}}
	c.Outgoing = []outgoing{{ID: "m", Kind: channelEventKind}, {ID: "n", Kind: channelEventKind}, {ID: "m"}}
	p.apply(c)
	st := p.done()
	order := ""
	for _, b := range st.Blocks {
		order += fmt.Sprint(b.ID, b.Room, " ")
	}
	if order != "b2 c0 a0 " || len(st.Outgoing) != 1 || st.Outgoing[0].ID != "n" {
		t.Errorf("got blocks %s, outgoing %s", order, mustJSON(st.Outgoing))
	}
}

// Compaction keeps the state and continues in the new file.
func TestJournalCompacts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state.json")
	j, _, err := openJournal(path)
	if err != nil {
		t.Fatal(err)
	}
	defer j.close()
	j.compactAt = 4096
	for i := range 100 {
		c := newChanges()
		c.Payments = []*record{{Payment: Payment{PaymentKey: "k", OrderID: "o", TotalAmount: i}}}
		if err := j.append(c); err != nil {
			t.Fatal(err)
		}
	}
	if j.compactAt != compactSize {
		t.Error("the file was not compacted")
	}
	st, err := readState(path)
	if err != nil || len(st.Payments) != 1 || st.Payments[0].Payment.TotalAmount != 99 {
		t.Errorf("after compaction: %v, %s", err, mustJSON(st.whole()))
	}
}

// BenchmarkSave measures how long a save of 40 changed payments holds the lock, and the encoding outside it, with 10,000
// payments in the state.
func BenchmarkSave(b *testing.B) {
	st := newState()
	for i := range 10_000 {
		st.addPayment(&record{Payment: Payment{PaymentKey: fmt.Sprint(i), OrderID: fmt.Sprint(i), VirtualAccount: &VirtualAccount{}, Cancels: []Cancel{{}}}})
	}
	st.takeChanges()
	b.Run("locked", func(b *testing.B) {
		for b.Loop() {
			for _, r := range st.Payments[:40] {
				st.changed(r)
			}
			st.takeChanges()
		}
	})
	for _, r := range st.Payments[:40] {
		st.changed(r)
	}
	taken := st.takeChanges()
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			mustJSON(taken)
		}
	})
}

// Each change of a kind that other tests rarely make is noted: what is taken after each step builds the same state.
func TestEachStepIsNoted(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	s, err := New(Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.journal, s.saving = &journal{}, true // the test takes the changes
	p := replay{state: newState()}
	b, _, err := s.Book(Booking{Branch: "gangnam", Room: 1, Start: now, End: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []func() error{
		func() error { return nil },
		func() error { return s.applyBlock("block.created", "block", "gangnam-1", now, now.Add(time.Hour)) },
		func() error { return s.applyBlock("block.created", "block", "gangnam-2", now, now.Add(time.Hour)) },
		func() error { _, err := s.CancelBooking(b.ID); return err },
		func() error { s.note(widgetKeys, CashReceipt{ReceiptKey: "r"}, now); return nil },
		func() error { return s.applyBlock("block.cancelled", "block", "", now, now) },
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		p.apply(s.state.takeChanges())
		saved := p.done()
		if got, want := mustJSON(saved.whole()), mustJSON(s.state.whole()); !bytes.Equal(got, want) {
			t.Errorf("step %d: saved %s\nwant %s", i, got, want)
		}
	}
}
