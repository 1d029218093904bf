package sandbox

import (
	"bytes"
	"fmt"
	"testing"
	"time"
)

// A snapshot is encoded while requests change the state, so it must contain every field and share no mutable data.
func TestSnapshotIsCompleteAndIndependent(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 6, 0, 0, 0, time.UTC)
	s, err := New(Options{Now: func() time.Time { return now }, PartnerURL: "http://127.0.0.1:1", CallbackRetries: []time.Duration{time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, delivery, err := s.Book(Booking{Branch: "gangnam", Room: 1, Start: now, End: now.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = delivery.First(t.Context()) // to no receiver
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &record{Payment: Payment{PaymentKey: "k", OrderID: "o", VirtualAccount: &VirtualAccount{}, Cancels: []Cancel{{}}}, Refund: &transfer{}}
	s.state.addPayment(r)
	s.state.Transactions = []Transaction{{TransactionKey: "t"}}
	s.state.Answers["a"] = &answer{Status: 200, Body: []byte("{}")}
	s.state.Ledger.note(Call{Path: "/v1"})
	s.state.Ledger.noteForeign(Call{Path: "/v1"})
	s.state.Messages = []Message{{To: "01012345678"}}
	s.state.Blocks = []*Block{{ID: "b"}}

	snapshot := s.state.snapshot()
	before := mustJSON(snapshot)
	if want := mustJSON(&s.state); !bytes.Equal(before, want) {
		t.Errorf("snapshot %s\nwant %s", before, want)
	}
	r.Payment.Status, r.Payment.VirtualAccount.RefundStatus, r.Payment.Cancels[0].CancelReason, r.Refund.Amount = "DONE", "PENDING", "x", 1
	s.state.Transactions[0].Amount, s.state.Answers["b"], s.state.Ledger.Calls[0].Status, s.state.Messages[0].To = 1, &answer{}, 500, ""
	s.state.Bookings[0].Canceled, s.state.Blocks[0].Room, s.state.Outgoing[0].Attempt = true, 9, 9
	if after := mustJSON(snapshot); !bytes.Equal(before, after) {
		t.Errorf("after changes: snapshot %s\nwant %s", after, before)
	}
}

// BenchmarkSnapshot measures how long a save holds the lock, and the whole encoding, with 10,000 payments.
func BenchmarkSnapshot(b *testing.B) {
	var st state
	st.byKey, st.byOrder = map[string]*record{}, map[string][]*record{}
	for i := range 10_000 {
		st.addPayment(&record{Payment: Payment{PaymentKey: fmt.Sprint(i), OrderID: fmt.Sprint(i), VirtualAccount: &VirtualAccount{}, Cancels: []Cancel{{}}}})
	}
	b.Run("locked", func(b *testing.B) {
		for b.Loop() {
			st.snapshot()
		}
	})
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			mustJSON(&st)
		}
	})
}
