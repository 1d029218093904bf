package sandbox

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// CashReceipt is the issue or the cancellation of a cash receipt (docs/specification.md, Payment provider 10).
type CashReceipt struct {
	ReceiptKey      string    `json:"receiptKey"`
	OrderID         string    `json:"orderId"`
	OrderName       string    `json:"orderName"`
	Type            string    `json:"type"`
	IssueNumber     string    `json:"issueNumber"`
	ReceiptURL      string    `json:"receiptUrl"`
	BusinessNumber  string    `json:"businessNumber"`
	TransactionType string    `json:"transactionType"` // CONFIRM, CANCEL
	Amount          int       `json:"amount"`
	TaxFreeAmount   int       `json:"taxFreeAmount"`
	IssueStatus     string    `json:"issueStatus"` // IN_PROGRESS, COMPLETED, FAILED
	Failure         *Failure  `json:"failure"`
	IdentityNumber  string    `json:"customerIdentityNumber"` // masked
	RequestedAt     time.Time `json:"requestedAt"`
}

// receiptRecord is an entry with the provider's internal state.
type receiptRecord struct {
	Receipt   CashReceipt `json:"receipt"`
	Keys      keySet      `json:"keys"`
	DecidedAt time.Time   `json:"decidedAt"` // when the tax office decides; zero: never
	Refused   bool        `json:"refused"`   // it will refuse
}

// advance applies the tax office's decision if it is due.
func (r *receiptRecord) advance(now time.Time) {
	if r.Receipt.IssueStatus != "IN_PROGRESS" || r.DecidedAt.IsZero() || now.Before(r.DecidedAt) {
		return
	}
	r.Receipt.IssueStatus = "COMPLETED"
	if r.Refused {
		r.Receipt.IssueStatus = "FAILED"
		r.Receipt.Failure = &Failure{Code: "CASH_RECEIPT_ISSUE_FAILED", Message: "국세청에서 현금영수증 발급을 거절했습니다."}
	}
}

// note stores an entry of the receipts. The tax office, which takes one or two days, has decided when the entry is next read
// here. The caller holds s.mu.
func (s *Sandbox) note(keys keySet, entry CashReceipt, now time.Time) CashReceipt {
	entry.IssueStatus, entry.RequestedAt, entry.IssueNumber = "IN_PROGRESS", wireTime(now), randomDigits(9)
	entry.ReceiptURL = "https://dashboard.tosspayments.com/receipt/cash/" + entry.ReceiptKey
	r := receiptRecord{Receipt: entry, Keys: keys, DecidedAt: now}
	switch fault := s.takeFault(TargetTaxOffice); {
	case fault.is(FaultError):
		r.Refused = true
	case fault.is(FaultTimeout):
		r.DecidedAt = time.Time{}
	case fault.is(FaultSlow):
		r.DecidedAt = now.Add(fault.slowTime())
	}
	s.state.Receipts = append(s.state.Receipts, r)
	s.state.unsaved.Receipts = append(s.state.unsaved.Receipts, r)
	return entry
}

// issueReceipt handles POST /v1/cash-receipts. Like the provider it does not compare the order with payments, and two requests
// with different idempotency keys make two receipts.
func (s *Sandbox) issueReceipt(c *tossCall) (any, error) {
	var in struct {
		Amount    int    `json:"amount"`
		OrderID   string `json:"orderId"`
		OrderName string `json:"orderName"`
		Number    string `json:"customerIdentityNumber"`
		Type      string `json:"type"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	personal := in.Type == "소득공제"
	switch {
	case in.Amount < 1:
		return nil, refuseRequest("amount는 1 이상의 정수여야 합니다.")
	case !validOrderID(in.OrderID):
		return nil, refuseRequest("orderId는 6자 이상 64자 이하의 영문, 숫자, '-', '_', '='이어야 합니다.")
	case !within(in.OrderName, 1, 100):
		return nil, refuseRequest("orderName은 필수이며 100자 이하여야 합니다.")
	case !personal && in.Type != "지출증빙":
		return nil, refuseRequest("type은 소득공제, 지출증빙 중 하나여야 합니다.")
	case strings.Trim(in.Number, "0123456789") != "", personal && (len(in.Number) < 10 || !strings.HasPrefix(in.Number, "01")), !personal && len(in.Number) != 10:
		return nil, refuseRequest("현금영수증 발급 번호(customerIdentityNumber)가 올바르지 않습니다.")
	}
	return s.note(c.keys, CashReceipt{
		ReceiptKey: randomHex(16), OrderID: in.OrderID, OrderName: in.OrderName, Type: in.Type, BusinessNumber: "1234567891",
		TransactionType: "CONFIRM", Amount: in.Amount, IdentityNumber: mask(in.Number),
	}, c.now), nil
}

// cancelReceipt handles POST /v1/cash-receipts/{receiptKey}/cancel, for the whole amount only.
func (s *Sandbox) cancelReceipt(c *tossCall) (any, error) {
	var in struct {
		Amount *int `json:"amount"`
	}
	if err := c.decode(&in); err != nil {
		return nil, err
	}
	var issued *CashReceipt
	for i := range s.state.Receipts {
		r := &s.state.Receipts[i]
		if r.Receipt.ReceiptKey != c.PathValue("receiptKey") || r.Keys != c.keys {
			continue
		}
		r.advance(c.now)
		if r.Receipt.TransactionType == "CANCEL" {
			return nil, refuseRequest("이미 취소된 현금영수증입니다.")
		}
		issued = &r.Receipt
	}
	switch {
	case issued == nil:
		return nil, refuse("NOT_FOUND")
	case issued.IssueStatus == "FAILED":
		return nil, refuseRequest("발급되지 않은 현금영수증입니다.")
	case in.Amount != nil && *in.Amount != issued.Amount:
		return nil, refuseRequest("현금영수증은 전액만 취소할 수 있습니다.")
	}
	canceled := *issued
	canceled.TransactionType, canceled.Failure = "CANCEL", nil
	return s.note(c.keys, canceled, c.now), nil
}

// listReceipts handles GET /v1/cash-receipts: what was requested on a day (requestDate, Korean time) under the caller's key
// set, oldest first, from the cursor on.
func (s *Sandbox) listReceipts(c *tossCall) (any, error) {
	q := c.URL.Query()
	date := q.Get("requestDate")
	if _, err := time.ParseInLocation(time.DateOnly, date, kst); err != nil {
		return nil, refuseRequest("requestDate는 yyyy-MM-dd 형식이어야 합니다.")
	}
	cursor, limit := 0, 100
	for name, into := range map[string]*int{"cursor": &cursor, "limit": &limit} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return nil, refuseRequest("cursor와 limit은 1 이상이어야 합니다.")
			}
			*into = n
		}
	}
	found := []CashReceipt{}
	for i := range s.state.Receipts {
		r := &s.state.Receipts[i]
		r.advance(c.now)
		if r.Keys == c.keys && r.Receipt.RequestedAt.In(kst).Format(time.DateOnly) == date {
			found = append(found, r.Receipt)
		}
	}
	found = found[min(cursor, len(found)):]
	page := slices.Clone(found[:min(limit, len(found))])
	return map[string]any{"hasNext": len(found) > len(page), "lastCursor": cursor + len(page), "data": page}, nil
}

// CashReceipts returns the issues and cancellations of cash receipts, oldest first.
func (s *Sandbox) CashReceipts() []CashReceipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	list := make([]CashReceipt, len(s.state.Receipts))
	for i := range s.state.Receipts {
		s.state.Receipts[i].advance(now)
		list[i] = s.state.Receipts[i].Receipt
	}
	return list
}

// IssueWithPayment makes the provider issue a cash receipt with the payment of an order, as shops that are registered for it
// may have configured.
func (s *Sandbox) IssueWithPayment(orderID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.state.order(orderID, s.now())
	if r == nil {
		return ErrNoSuchOrder
	}
	issued := CashReceipt{
		ReceiptKey: randomHex(16), OrderID: orderID, OrderName: r.Payment.OrderName, Type: "소득공제", TransactionType: "CONFIRM",
		Amount: r.Payment.TotalAmount, IssueStatus: "COMPLETED", IssueNumber: randomDigits(9), RequestedAt: wireTime(s.now()),
	}
	r.Payment.CashReceipt, r.Payment.CashReceipts = &issued, []CashReceipt{issued}
	s.state.changed(r)
	s.keep()
	return nil
}

func (s *Sandbox) getReceipts(*http.Request) (any, error) {
	return map[string]any{"cashReceipts": s.CashReceipts()}, nil
}
