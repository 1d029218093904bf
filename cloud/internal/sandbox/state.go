package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// state is the part of a sandbox that survives a restart if there is a state file.
type state struct {
	Payments     []*record          `json:"payments"` // oldest first
	Transactions []Transaction      `json:"transactions"`
	Receipts     []receiptRecord    `json:"receipts"` // of POST /v1/cash-receipts, oldest first
	Answers      map[string]*answer `json:"answers"`  // by identity of the request, see answerToss
	Ledger       Ledger             `json:"ledger"`
	Messages     []Message          `json:"messages"`
	Bookings     []*Booking         `json:"bookings"`
	Blocks       []*Block           `json:"blocks"`
	Outgoing     []*outgoing        `json:"outgoing"`

	byKey   map[string]*record
	byOrder map[string][]*record
}

// loadState reads the state file; no path or no file yields an empty state.
func loadState(path string) (state, error) {
	st := state{Answers: map[string]*answer{}, byKey: map[string]*record{}, byOrder: map[string][]*record{}}
	if path == "" {
		return st, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &st)
	}
	if err != nil {
		return state{}, fmt.Errorf("read the state file: %w", err)
	}
	for _, r := range st.Payments {
		st.index(r)
	}
	return st, nil
}

// saveInterval bounds the changes that a crash of the sandbox can lose. A large state is saved less often, so that
// saving takes at most a twentieth of the time.
const saveInterval = 100 * time.Millisecond

// keep schedules a save of the state file, which happens at the latest before Close returns. The caller holds s.mu.
func (s *Sandbox) keep() {
	if s.opts.StateFile == "" || s.ctx.Err() != nil {
		return
	}
	s.unsaved = true
	if !s.saving {
		s.saving = true
		s.wg.Go(s.save)
	}
}

// save writes the state file until no change is unsaved. It holds s.mu only while it copies the state, because
// encoding a large state takes longer than a request may wait. Errors are logged; the sandbox continues in memory.
func (s *Sandbox) save() {
	for pause := saveInterval; ; {
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		if !s.unsaved {
			s.saving = false
			s.mu.Unlock()
			return
		}
		s.unsaved = false
		snapshot := s.state.snapshot()
		s.mu.Unlock()
		began := time.Now()
		if err := writeFile(s.opts.StateFile, mustJSON(snapshot)); err != nil {
			s.log.Error("sandbox: saving the state failed", "error", err)
		}
		pause = max(saveInterval, 20*time.Since(began))
	}
}

// snapshot returns a copy of the state that later changes do not affect.
func (st *state) snapshot() *state {
	return &state{
		Payments: copies(st.Payments, func(r record) record {
			r.Payment = clone(r.Payment)
			if r.Refund != nil {
				r.Refund = new(*r.Refund)
			}
			return r
		}),
		Transactions: slices.Clone(st.Transactions),
		Receipts:     slices.Clone(st.Receipts),
		Answers:      maps.Clone(st.Answers),
		Ledger:       st.Ledger.clone(),
		Messages:     slices.Clone(st.Messages),
		Bookings:     copies(st.Bookings, func(b Booking) Booking { return b }),
		Blocks:       copies(st.Blocks, func(b Block) Block { return b }),
		Outgoing:     copies(st.Outgoing, func(m outgoing) outgoing { return m }),
	}
}

func copies[T any](list []*T, deep func(T) T) []*T {
	copied := make([]*T, len(list))
	for i, p := range list {
		copied[i] = new(deep(*p))
	}
	return copied
}

func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".sandbox-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // absent after a successful rename
	_, err = f.Write(data)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func (st *state) addPayment(r *record) {
	st.Payments = append(st.Payments, r)
	st.index(r)
}

func (st *state) index(r *record) {
	st.byKey[r.Payment.PaymentKey] = r
	st.byOrder[r.Payment.OrderID] = append(st.byOrder[r.Payment.OrderID], r)
}

// payment returns a payment by key after applying transitions that are due, or nil if the key is unknown.
func (st *state) payment(key string, now time.Time) *record {
	r := st.byKey[key]
	if r != nil {
		r.advance(now, &st.Ledger)
	}
	return r
}

// order returns the payment of an order that the provider processed, otherwise the newest, or nil if there is none. It
// applies all transitions that are due.
func (st *state) order(orderID string, now time.Time) *record {
	var chosen *record
	for _, r := range st.byOrder[orderID] {
		r.advance(now, &st.Ledger)
		if chosen == nil || r.processed() || !chosen.processed() {
			chosen = r
		}
	}
	return chosen
}
