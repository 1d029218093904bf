package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// state is all that outlives a restart when there is a state file.
type state struct {
	Payments     []*record          `json:"payments"` // oldest first
	Transactions []Transaction      `json:"transactions"`
	Answers      map[string]*answer `json:"answers"` // by identity of the request, see answerToss
	Ledger       Ledger             `json:"ledger"`
	Messages     []Message          `json:"messages"`
	Bookings     []*Booking         `json:"bookings"`
	Blocks       []*Block           `json:"blocks"`
	Outgoing     []*outgoing        `json:"outgoing"`

	byKey   map[string]*record
	byOrder map[string][]*record
}

// loadState reads the state kept at path; no path or no file is an empty state.
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

// keepWithin bounds what a crash of the sandbox can lose. Writing the whole file at every change would make a load test
// one of the disk.
const keepWithin = 100 * time.Millisecond

// keep has the state file written soon, and in any case before Close returns. Errors are logged; the sandbox goes on in
// memory. s.mu is held.
func (s *Sandbox) keep() {
	if s.opts.StateFile == "" || s.keeping || s.ctx.Err() != nil {
		return
	}
	s.keeping = true
	s.wg.Go(func() {
		select {
		case <-time.After(keepWithin):
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		s.keeping = false
		content := mustJSON(&s.state)
		s.mu.Unlock()
		if err := writeFile(s.opts.StateFile, content); err != nil {
			s.log.Error("sandbox: state not kept", "error", err)
		}
	})
}

func writeFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".sandbox-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // no longer there when all went well
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

// payment returns the payment of that key as it stands at now, or nil.
func (st *state) payment(key string, now time.Time) *record {
	r := st.byKey[key]
	if r != nil {
		r.advance(now, &st.Ledger)
	}
	return r
}

// order returns, of the attempts to pay an order as they stand at now, the one the provider has acted on, else
// the newest; nil if there is none.
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
