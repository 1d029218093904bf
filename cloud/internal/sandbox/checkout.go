package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Checkout holds the order that the shop passes to the payment widget and the buyer's choices.
type Checkout struct {
	OrderID       string `json:"orderId"`
	OrderName     string `json:"orderName"`
	Amount        int    `json:"amount"`
	Currency      string `json:"currency"` // the buyer's browser chooses it; empty means KRW
	Method        string `json:"method"`   // one of the Method constants
	Bank          string `json:"bank"`     // for a virtual account; empty means 20 (우리)
	CustomerName  string `json:"customerName"`
	CustomerPhone string `json:"customerMobilePhone"`
	ClientKey     string `json:"clientKey"` // of the merchant; empty: see UseClientKey
}

// UseClientKey sets the client key of checkouts that name none; empty means the first merchant's.
func (s *Sandbox) UseClientKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clientKey = key
}

// ErrNoSuchPayment is returned if no payment has the key.
var ErrNoSuchPayment = errors.New("no payment of that key")

// Open simulates the buyer opening the payment widget and returns a payment that waits for authentication. Opening it
// again with the same order and amount, as a reload does, returns the same payment.
func (s *Sandbox) Open(c Checkout) (Payment, error) {
	if err := c.check(); err != nil {
		return Payment{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	r := s.state.order(c.OrderID, now)
	if r != nil && r.processed() {
		return Payment{}, refuse("DUPLICATED_ORDER_ID")
	}
	if r == nil || r.Payment.Status != StatusReady || r.Payment.TotalAmount != c.Amount {
		r = s.newRecord(c)
		s.state.addPayment(r)
		s.keep()
	}
	return clone(r.Payment), nil
}

// Authenticate simulates the buyer completing the payment widget and returns the payment key. The payment is
// IN_PROGRESS and can be confirmed for ten minutes. An order may be authenticated several times, for example in two
// windows, but only one of its payments can be confirmed.
func (s *Sandbox) Authenticate(c Checkout) (paymentKey string, err error) {
	if err := c.check(); err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.newRecord(c)
	if err := s.authenticatePayment(r, c.Method, c.Bank); err != nil {
		return "", err
	}
	s.state.addPayment(r)
	s.keep()
	return r.Payment.PaymentKey, nil
}

// AuthenticatePayment simulates the buyer choosing a method and paying in an open widget.
func (s *Sandbox) AuthenticatePayment(paymentKey, method, bank string) error {
	return s.onPayment(paymentKey, func(r *record) error {
		if r.Payment.Status != StatusReady {
			return fmt.Errorf("nothing to authenticate: the payment is %s", r.Payment.Status)
		}
		return s.authenticatePayment(r, method, bank)
	})
}

// Decline makes the card company or bank reject the payment at confirmation with the provider's code; empty means
// REJECT_CARD_PAYMENT. The payment is then ABORTED.
func (s *Sandbox) Decline(paymentKey, code string) error {
	return s.onPayment(paymentKey, func(r *record) error {
		if st := r.Payment.Status; st != StatusReady && st != StatusInProgress {
			return fmt.Errorf("too late to decline: the payment is %s", st)
		}
		r.Decline = cmp.Or(code, "REJECT_CARD_PAYMENT")
		return nil
	})
}

// Payments returns the payments of an order, or all payments if orderID is empty, oldest first.
func (s *Sandbox) Payments(orderID string) []Payment {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	records := s.state.Payments
	if orderID != "" {
		records = s.state.byOrder[orderID]
	}
	payments := make([]Payment, 0, len(records))
	for _, r := range records {
		s.state.advance(r, now)
		payments = append(payments, clone(r.Payment))
	}
	return payments
}

// Bounced returns the won of an order's refunds that the buyer's bank has returned and that were not sent again.
func (s *Sandbox) Bounced(orderID string) (won int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for _, r := range s.state.byOrder[orderID] {
		s.state.advance(r, now)
		won += r.Bounced
	}
	return won
}

// Payment returns a payment by its key.
func (s *Sandbox) Payment(paymentKey string) (Payment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.state.payment(paymentKey, s.now())
	if r == nil {
		return Payment{}, ErrNoSuchPayment
	}
	return clone(r.Payment), nil
}

func (c Checkout) check() error {
	switch {
	case !validOrderID(c.OrderID):
		return errors.New("orderId must be 6 to 64 letters, digits, '-', '_' or '='")
	case c.Amount <= 0:
		return errors.New("amount must be a positive number")
	case !within(c.OrderName, 0, 100):
		return errors.New("orderName must be at most 100 characters")
	}
	return nil
}

// newRecord returns a payment in the state READY. The caller holds s.mu.
func (s *Sandbox) newRecord(c Checkout) *record {
	now := s.now()
	_, merchant := merchantOf(cmp.Or(c.ClientKey, s.clientKey))
	keys := widgetKeys.of(merchant)
	payment := newPayment(c.OrderID, cmp.Or(c.OrderName, c.OrderID), keys.mID(), c.Amount, now)
	payment.Currency = cmp.Or(c.Currency, payment.Currency)
	return &record{
		Payment: payment, Keys: keys, OpenedAt: now,
		CustomerName: cmp.Or(c.CustomerName, "고객"), CustomerPhone: c.CustomerPhone,
	}
}

func (s *Sandbox) authenticatePayment(r *record, method, bank string) error {
	if !slices.Contains(methods, method) {
		return fmt.Errorf("method must be one of %s", strings.Join(methods, ", "))
	}
	code, ok := issuingBank(cmp.Or(bank, "20"))
	if !ok {
		return fmt.Errorf("bank %q issues no virtual accounts", bank)
	}
	r.Method, r.Bank = method, code
	r.AuthenticatedAt = s.now()
	r.Payment.Status = StatusInProgress
	return nil
}

func (s *Sandbox) onPayment(paymentKey string, f func(*record) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.state.payment(paymentKey, s.now())
	if r == nil {
		return ErrNoSuchPayment
	}
	if err := f(r); err != nil {
		return err
	}
	s.state.changed(r)
	s.keep()
	return nil
}

// clone returns a copy of r that later changes do not affect.
func (r *record) clone() *record {
	c := *r
	c.Payment = clone(r.Payment)
	c.Transfers = slices.Clone(r.Transfers)
	return &c
}

// clone returns a copy of p that later changes do not affect.
func clone(p Payment) Payment {
	p.Cancels = slices.Clone(p.Cancels)
	if p.VirtualAccount != nil {
		p.VirtualAccount = new(*p.VirtualAccount)
	}
	return p
}
