package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Checkout is what a buyer brings to the payment widget and chooses in it.
type Checkout struct {
	OrderID       string `json:"orderId"`
	OrderName     string `json:"orderName"`
	Amount        int    `json:"amount"` // won
	Method        string `json:"method"` // one of the Method constants
	Bank          string `json:"bank"`   // for a virtual account; empty means 20 (우리)
	CustomerName  string `json:"customerName"`
	CustomerPhone string `json:"customerMobilePhone"`
}

// ErrNoSuchPayment: the provider knows no payment of that key.
var ErrNoSuchPayment = errors.New("no payment of that key")

// Open is the buyer opening the payment widget: a payment that waits to be authenticated. Opening it again for
// the same order and amount, as a reload does, returns the same payment.
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

// Authenticate is the buyer going through the payment widget in one go: the payment is IN_PROGRESS and waits
// ten minutes to be confirmed. It returns the payment key. An order may be authenticated more than once, as
// by a buyer with two windows open; only one of the payments can be confirmed.
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

// AuthenticatePayment is the buyer choosing a method and paying in an open widget.
func (s *Sandbox) AuthenticatePayment(paymentKey, method, bank string) error {
	return s.onPayment(paymentKey, func(r *record) error {
		if r.Payment.Status != StatusReady {
			return fmt.Errorf("nothing to authenticate: the payment is %s", r.Payment.Status)
		}
		return s.authenticatePayment(r, method, bank)
	})
}

// Decline makes the card company or bank refuse the payment when it is confirmed, with that code of the
// provider; empty means REJECT_CARD_PAYMENT. The payment is then ABORTED.
func (s *Sandbox) Decline(paymentKey, code string) error {
	return s.onPayment(paymentKey, func(r *record) error {
		if st := r.Payment.Status; st != StatusReady && st != StatusInProgress {
			return fmt.Errorf("too late to decline: the payment is %s", st)
		}
		r.Decline = cmp.Or(code, "REJECT_CARD_PAYMENT")
		return nil
	})
}

// Payments returns the payments of an order, or all if orderID is empty, oldest first.
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
		r.advance(now, &s.state.Ledger)
		payments = append(payments, clone(r.Payment))
	}
	return payments
}

// Payment returns the payment of that key.
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
		return errors.New("amount must be a positive number of won")
	case !within(c.OrderName, 0, 100):
		return errors.New("orderName must be at most 100 characters")
	}
	return nil
}

// newRecord returns a payment in the state READY. s.mu is held.
func (s *Sandbox) newRecord(c Checkout) *record {
	now := s.now()
	return &record{
		Payment: newPayment(c.OrderID, cmp.Or(c.OrderName, c.OrderID), widgetKeys.mID(), c.Amount, now),
		Keys:    widgetKeys, OpenedAt: now,
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
	s.keep()
	return nil
}

// clone copies p with what changes during the life of a payment.
func clone(p Payment) Payment {
	p.Cancels = slices.Clone(p.Cancels)
	if p.VirtualAccount != nil {
		p.VirtualAccount = new(*p.VirtualAccount)
	}
	return p
}
