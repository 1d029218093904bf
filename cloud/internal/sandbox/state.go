package sandbox

import "time"

// state is what the sandbox knows. All of it survives a restart if there is a state file.
type state struct {
	Payments     []*record // oldest first
	Transactions []Transaction
	Receipts     []receiptRecord    // of POST /v1/cash-receipts, oldest first
	Answers      map[string]*answer // by identity of the request, see answerToss
	Ledger       Ledger
	Messages     []Message
	Bookings     []*Booking
	Blocks       []*Block
	Outgoing     []*outgoing

	byKey   map[string]*record
	byOrder map[string][]*record
	unsaved changes
}

func newState() state {
	return state{Answers: map[string]*answer{}, byKey: map[string]*record{}, byOrder: map[string][]*record{}, unsaved: newChanges()}
}

func (st *state) addPayment(r *record) {
	st.Payments = append(st.Payments, r)
	st.index(r)
	st.changed(r)
}

func (st *state) index(r *record) {
	st.byKey[r.Payment.PaymentKey] = r
	st.byOrder[r.Payment.OrderID] = append(st.byOrder[r.Payment.OrderID], r)
}

// payment returns a payment by key after applying transitions that are due, or nil if the key is unknown.
func (st *state) payment(key string, now time.Time) *record {
	r := st.byKey[key]
	if r != nil {
		st.advance(r, now)
	}
	return r
}

// order returns the payment of an order that the provider processed, otherwise the newest, or nil if there is none. It
// applies all transitions that are due.
func (st *state) order(orderID string, now time.Time) *record {
	var chosen *record
	for _, r := range st.byOrder[orderID] {
		st.advance(r, now)
		if chosen == nil || r.processed() || !chosen.processed() {
			chosen = r
		}
	}
	return chosen
}

// newest returns the newest payment of an order after applying transitions that are due, or nil if there is none.
func (st *state) newest(orderID string, now time.Time) *record {
	records := st.byOrder[orderID]
	if len(records) == 0 {
		return nil
	}
	r := records[len(records)-1]
	st.advance(r, now)
	return r
}

// advance applies the transitions of r that are due.
func (st *state) advance(r *record, now time.Time) {
	if r.advance(now, &st.Ledger) {
		st.changed(r)
	}
}
