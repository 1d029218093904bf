package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// issueAccount handles POST /v1/virtual-accounts, which issues an account without the widget (docs/specification.md, Payment provider 3). The
// account belongs to the API-individual key set; a widget key is rejected.
func (s *Sandbox) issueAccount(c *tossCall) (any, error) {
	var in struct {
		Amount              int    `json:"amount"`
		OrderID             string `json:"orderId"`
		OrderName           string `json:"orderName"`
		CustomerName        string `json:"customerName"`
		Bank                string `json:"bank"`
		ValidHours          *int   `json:"validHours"`
		DueDate             string `json:"dueDate"`
		CustomerEmail       string `json:"customerEmail"`
		CustomerMobilePhone string `json:"customerMobilePhone"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	bank, knownBank := issuingBank(in.Bank)
	switch {
	case c.keys.kind() != apiKeys:
		return nil, refuse("INVALID_API_KEY")
	case in.Amount < 1:
		return nil, refuseRequest("amount는 1 이상의 정수여야 합니다.")
	case !validOrderID(in.OrderID) || strings.Contains(in.OrderID, "="):
		return nil, refuseRequest("orderId는 6자 이상 64자 이하의 영문, 숫자, '-', '_'이어야 합니다.")
	case !within(in.OrderName, 1, 100):
		return nil, refuseRequest("orderName은 필수이며 100자 이하여야 합니다.")
	case !within(in.CustomerName, 1, 100):
		return nil, refuseRequest("customerName은 필수이며 100자 이하여야 합니다.")
	case !knownBank:
		return nil, refuse("INVALID_BANK")
	case in.CustomerEmail != "" && (!strings.Contains(in.CustomerEmail, "@") || !within(in.CustomerEmail, 3, 100)):
		return nil, refuse("INVALID_EMAIL")
	case in.Amount < minimumAmount(MethodVirtualAccount):
		return nil, refuse("BELOW_MINIMUM_AMOUNT")
	}
	due, err := dueTime(in.ValidHours, in.DueDate, c.now)
	if err != nil {
		return nil, err
	}
	s.state.order(in.OrderID, c.now) // applies transitions that are due to its payments
	if slices.ContainsFunc(s.state.byOrder[in.OrderID], (*record).processed) {
		return nil, refuse("DUPLICATED_ORDER_ID")
	}
	r := &record{
		Payment: newPayment(in.OrderID, in.OrderName, c.keys.mID(), in.Amount, c.now),
		Keys:    c.keys, Method: MethodVirtualAccount, Bank: bank,
		CustomerName: in.CustomerName, CustomerPhone: in.CustomerMobilePhone,
		OpenedAt: c.now, AuthenticatedAt: c.now,
	}
	r.settle(c.now, due)
	s.state.addPayment(r)
	return &r.Payment, nil
}

// dueTime returns when an account stops accepting its deposit: at dueDate in Korean time, or after validHours.
func dueTime(validHours *int, dueDate string, now time.Time) (time.Time, error) {
	switch {
	case validHours != nil && dueDate != "":
		return time.Time{}, refuseRequest("validHours와 dueDate는 함께 사용할 수 없습니다.")
	case validHours != nil:
		if *validHours < 1 || *validHours > 720 {
			return time.Time{}, refuseRequest("validHours는 1 이상 720 이하여야 합니다.")
		}
		return now.Add(time.Duration(*validHours) * time.Hour), nil
	case dueDate == "":
		return now.Add(168 * time.Hour), nil
	}
	due, err := time.ParseInLocation("2006-01-02T15:04:05", dueDate, kst)
	if err != nil || !due.After(now) || due.After(now.Add(30*24*time.Hour)) {
		return time.Time{}, refuseRequest("dueDate는 30일 이내의 미래 시각(yyyy-MM-dd'T'HH:mm:ss)이어야 합니다.")
	}
	return due, nil
}

func within(text string, least, most int) bool {
	n := utf8.RuneCountInString(text)
	return n >= least && n <= most
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// Errors of bank operations.
var (
	// ErrNoSuchOrder is returned if no virtual account belongs to the order.
	ErrNoSuchOrder = errors.New("no virtual account of that order")
	// ErrBounced is returned if the account cannot accept the transfer, which the bank then returns to the payer.
	ErrBounced = errors.New("the deposit bounces")
)

// Deposit simulates the payer's transfer to the virtual account of an order. When it returns, the payment is DONE
// and the delivery of the deposit callback has begun.
//
// The account accepts one transfer. If the account is overdue, cancelled or already paid, Deposit returns ErrBounced.
func (s *Sandbox) Deposit(orderID string) (*Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	r := s.state.order(orderID, now)
	if r == nil || r.Payment.VirtualAccount == nil {
		return nil, ErrNoSuchOrder
	}
	if r.Payment.Status != StatusWaitingForDeposit {
		return nil, fmt.Errorf("%w: the payment is %s", ErrBounced, r.Payment.Status)
	}
	p, va := &r.Payment, r.Payment.VirtualAccount
	p.Status = StatusDone
	p.ApprovedAt = new(wireTime(now))
	p.LastTransactionKey = new(newTransactionKey())
	va.DepositorName = &r.CustomerName
	va.SettlementStatus = "INCOMPLETED"
	s.state.changed(r)
	s.state.Ledger.Charged += p.TotalAmount
	s.state.book(p, p.TotalAmount, now)
	d := s.depositCallback(r, now)
	s.keep()
	return d, nil
}

// Reverse simulates a bank that corrects an erroneous transfer: the bank withdraws the deposit, and the account waits for
// a deposit again until the original due time.
func (s *Sandbox) Reverse(orderID string) (*Delivery, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	r := s.state.order(orderID, now)
	if r == nil || r.Payment.VirtualAccount == nil {
		return nil, ErrNoSuchOrder
	}
	p := &r.Payment
	if p.Status != StatusDone {
		return nil, fmt.Errorf("nothing to reverse: the payment is %s", p.Status)
	}
	p.Status = StatusWaitingForDeposit
	p.ApprovedAt = nil
	p.LastTransactionKey = new(newTransactionKey())
	p.VirtualAccount.DepositorName = nil
	s.state.changed(r)
	s.state.Ledger.Charged -= p.TotalAmount
	s.state.book(p, p.TotalAmount, now)
	d := s.depositCallback(r, now)
	s.keep()
	return d, nil
}

// depositCallback notifies the shop that the status of a virtual account changed. The body is flat, without event
// type or payment key; the payment's secret is its only authentication (docs/specification.md, Payment provider 6). The caller holds s.mu.
func (s *Sandbox) depositCallback(r *record, now time.Time) *Delivery {
	if s.opts.WebhookURL == "" {
		return undelivered()
	}
	p := &r.Payment
	return s.deliver(&outgoing{
		Kind: depositCallbackKind, About: p.OrderID, URL: s.opts.WebhookURL,
		Body: mustJSON(map[string]any{
			"createdAt": now.In(kst).Format("2006-01-02T15:04:05.000000"), "secret": p.Secret, "status": p.Status,
			"transactionKey": p.LastTransactionKey, "orderId": p.OrderID,
		}),
	})
}
