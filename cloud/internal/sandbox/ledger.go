package sandbox

import (
	"slices"
	"time"
)

// maxCalls bounds the calls the ledger remembers; the sums are exact for ever.
const maxCalls = 50_000

// Ledger is the provider's account of the shop: what came in, what went back, and who asked for what.
type Ledger struct {
	Charged  int    `json:"charged"`  // won that came in: confirmed payments and deposits, less bank reversals
	Refunded int    `json:"refunded"` // won sent back, less refunds that the receiving bank returned
	Calls    []Call `json:"calls"`    // the newest 50,000 calls of the payment API, oldest first
}

// Call is one request to the payment API.
type Call struct {
	At             time.Time `json:"at"`
	Method         string    `json:"method"`
	Path           string    `json:"path"`
	IdempotencyKey string    `json:"idempotencyKey"`
	OrderID        string    `json:"orderId"` // empty if the call names no payment the provider knows
	Status         int       `json:"status"`  // 0: the connection was closed without an answer
}

// Ledger returns a copy of the ledger.
func (s *Sandbox) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.state.Ledger
	l.Calls = slices.Clone(l.Calls)
	if l.Calls == nil {
		l.Calls = []Call{}
	}
	return l
}

// note adds a call. s.mu is held.
func (l *Ledger) note(c Call) {
	if len(l.Calls) >= maxCalls {
		l.Calls = slices.Delete(l.Calls, 0, maxCalls/10)
	}
	l.Calls = append(l.Calls, c)
}

// Transaction is one movement of money as GET /v1/transactions lists it, for the nightly comparison. The
// amount of a cancellation is positive like any other; its status tells which way the money went.
type Transaction struct {
	MID            string    `json:"mId"`
	TransactionKey string    `json:"transactionKey"`
	PaymentKey     string    `json:"paymentKey"`
	OrderID        string    `json:"orderId"`
	Method         string    `json:"method"`
	CustomerKey    string    `json:"customerKey"`
	UseEscrow      bool      `json:"useEscrow"`
	ReceiptURL     string    `json:"receiptUrl"`
	Status         Status    `json:"status"`
	TransactionAt  time.Time `json:"transactionAt"`
	Currency       string    `json:"currency"`
	Amount         int       `json:"amount"`
}

// book adds the movement that p has just made. s.mu is held.
func (st *state) book(p *Payment, amount int, now time.Time) {
	st.Transactions = append(st.Transactions, Transaction{
		MID: p.MID, TransactionKey: *p.LastTransactionKey, PaymentKey: p.PaymentKey, OrderID: p.OrderID,
		Method: *p.Method, CustomerKey: "@@ANONYMOUS", ReceiptURL: p.Receipt.URL,
		Status: p.Status, TransactionAt: wireTime(now), Currency: "KRW", Amount: amount,
	})
}
