package sandbox

import (
	"slices"
	"time"
)

// maxCalls bounds the remembered calls; the sums always cover all of them.
const maxCalls = 50_000

// Ledger is the provider's account of the shop: received and refunded money, and all requests.
type Ledger struct {
	Charged  int    `json:"charged"`  // won received: confirmed payments and deposits, minus bank reversals
	Refunded int    `json:"refunded"` // won refunded, minus refunds returned by the receiving bank
	Calls    []Call `json:"calls"`    // the newest 50,000 calls of the payment API, oldest first
	Foreign  []Call `json:"foreign"`  // those with the key of a merchant that is not the payment's; the first 1,000
}

// Call is one request to the payment API.
type Call struct {
	At             time.Time `json:"at"`
	Method         string    `json:"method"`
	Path           string    `json:"path"`
	IdempotencyKey string    `json:"idempotencyKey"`
	OrderID        string    `json:"orderId"` // empty if the call names no known payment
	Status         int       `json:"status"`  // 0 if the connection was closed without a response
	Keys           string    `json:"keys"`    // the key set that the secret key belongs to: widget, api, widget-2, ...
}

// Ledger returns a copy of the ledger.
func (s *Sandbox) Ledger() Ledger {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Ledger.clone()
}

func (l Ledger) clone() Ledger {
	l.Calls = append([]Call{}, l.Calls...)
	l.Foreign = append([]Call{}, l.Foreign...)
	return l
}

// note appends a call. The caller holds s.mu.
func (l *Ledger) note(c Call) {
	if len(l.Calls) >= maxCalls {
		l.Calls = slices.Delete(l.Calls, 0, maxCalls/10)
	}
	l.Calls = append(l.Calls, c)
}

// maxForeign bounds the remembered calls with the key of another merchant.
const maxForeign = 1000

// noteForeign appends a call with the key of a merchant that is not the payment's. The caller holds s.mu.
func (l *Ledger) noteForeign(c Call) {
	if len(l.Foreign) < maxForeign {
		l.Foreign = append(l.Foreign, c)
	}
}

// Transaction is one movement of money as listed by GET /v1/transactions for reconciliation. The amount of a
// cancellation is positive too; the status determines the direction.
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

// book appends the movement that p has just made. The caller holds s.mu.
func (st *state) book(p *Payment, amount int, now time.Time) {
	t := Transaction{
		MID: p.MID, TransactionKey: *p.LastTransactionKey, PaymentKey: p.PaymentKey, OrderID: p.OrderID,
		Method: *p.Method, CustomerKey: "@@ANONYMOUS", ReceiptURL: p.Receipt.URL,
		Status: p.Status, TransactionAt: wireTime(now), Currency: p.Currency, Amount: amount,
	}
	st.Transactions = append(st.Transactions, t)
	st.unsaved.Transactions = append(st.unsaved.Transactions, t)
}
