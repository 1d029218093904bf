package sandbox

import "slices"

// changes are elements of a state in their newest version, in the order of the changes. They are one line of the state file; the
// first line contains a whole state.
type changes struct {
	Payments     []*record          `json:"payments,omitempty"`
	Transactions []Transaction      `json:"transactions,omitempty"`
	Receipts     []receiptRecord    `json:"receipts,omitempty"`
	Answers      map[string]*answer `json:"answers,omitempty"`
	Ledger       Ledger             `json:"ledger"` // the sums, and the calls that were added
	Messages     []Message          `json:"messages,omitempty"`
	Bookings     []Booking          `json:"bookings,omitempty"`
	Blocks       []Block            `json:"blocks,omitempty"`   // without an end: removed
	Outgoing     []outgoing         `json:"outgoing,omitempty"` // without a kind: delivered, or given up
}

func newChanges() changes { return changes{Answers: map[string]*answer{}} }

// changed notes that r is new or is about to change.
func (st *state) changed(r *record) {
	if !r.unsaved {
		r.unsaved = true
		st.unsaved.Payments = append(st.unsaved.Payments, r)
	}
}

func (st *state) changedBooking(b *Booking) { st.unsaved.Bookings = append(st.unsaved.Bookings, *b) }

// takeChanges returns the changes since the last call. Later changes of the state do not affect them.
func (st *state) takeChanges() changes {
	c := st.unsaved
	st.unsaved = newChanges()
	for i, r := range c.Payments {
		r.unsaved = false
		c.Payments[i] = r.clone()
	}
	c.Ledger.Charged, c.Ledger.Refunded = st.Ledger.Charged, st.Ledger.Refunded
	return c
}

// dropChanges forgets the changes of a state that is not saved.
func (st *state) dropChanges() {
	for _, r := range st.unsaved.Payments {
		r.unsaved = false
	}
	answers := st.unsaved.Answers
	clear(answers)
	st.unsaved = changes{Answers: answers}
}

// whole returns all of a state as changes of an empty one.
func (st *state) whole() changes {
	return changes{
		Payments: st.Payments, Transactions: st.Transactions, Receipts: st.Receipts, Answers: st.Answers, Ledger: st.Ledger,
		Messages: st.Messages, Bookings: values(st.Bookings), Blocks: values(st.Blocks), Outgoing: values(st.Outgoing),
	}
}

func values[T any](list []*T) []T {
	copied := make([]T, len(list))
	for i, p := range list {
		copied[i] = *p
	}
	return copied
}

// replay builds a state from changes.
type replay struct {
	state    state
	payments ordered[record]
	bookings ordered[Booking]
	blocks   ordered[Block]
	outgoing ordered[outgoing]
}

func (p *replay) apply(c changes) {
	for _, r := range c.Payments {
		p.payments.set(r.Payment.PaymentKey, r)
	}
	st := &p.state
	st.Transactions = append(st.Transactions, c.Transactions...)
	st.Receipts = append(st.Receipts, c.Receipts...)
	for identity, a := range c.Answers {
		st.Answers[identity] = a
	}
	st.Ledger.Charged, st.Ledger.Refunded = c.Ledger.Charged, c.Ledger.Refunded
	for _, call := range c.Ledger.Calls {
		st.Ledger.note(call)
	}
	for _, call := range c.Ledger.Foreign {
		st.Ledger.noteForeign(call)
	}
	for _, m := range c.Messages {
		st.addMessage(m)
	}
	for _, b := range c.Bookings {
		p.bookings.set(b.ID, &b)
	}
	for _, b := range c.Blocks {
		if b.End.IsZero() {
			p.blocks.remove(b.ID)
		} else {
			p.blocks.set(b.ID, &b)
		}
	}
	for _, m := range c.Outgoing {
		if m.Kind == "" {
			p.outgoing.remove(m.ID)
		} else {
			p.outgoing.set(m.ID, &m)
		}
	}
}

// done returns the state that results from the changes.
func (p *replay) done() state {
	st := p.state
	st.Payments, st.Bookings, st.Blocks, st.Outgoing = p.payments.all(), p.bookings.all(), p.blocks.all(), p.outgoing.all()
	for _, r := range st.Payments {
		st.index(r)
	}
	return st
}

// ordered keeps elements in the order in which their ids first occurred.
type ordered[T any] struct {
	list []*T // nil: removed
	at   map[string]int
}

func (o *ordered[T]) set(id string, element *T) {
	if i, ok := o.at[id]; ok {
		o.list[i] = element
		return
	}
	if o.at == nil {
		o.at = map[string]int{}
	}
	o.at[id] = len(o.list)
	o.list = append(o.list, element)
}

func (o *ordered[T]) remove(id string) {
	if i, ok := o.at[id]; ok {
		o.list[i] = nil
		delete(o.at, id)
	}
}

func (o *ordered[T]) all() []*T {
	return slices.DeleteFunc(o.list, func(element *T) bool { return element == nil })
}
