package toss

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Values of [Payment.Status]. The provider may add others, which are passed on unchanged.
const (
	StatusReady             = "READY"
	StatusInProgress        = "IN_PROGRESS"
	StatusWaitingForDeposit = "WAITING_FOR_DEPOSIT"
	StatusDone              = "DONE"
	StatusCanceled          = "CANCELED"
	StatusPartialCanceled   = "PARTIAL_CANCELED"
	StatusAborted           = "ABORTED"
	StatusExpired           = "EXPIRED"
)

// Values of [Payment.Method] that the service offers. Others are passed on unchanged.
const (
	MethodCard           = "카드"
	MethodEasyPay        = "간편결제"
	MethodVirtualAccount = "가상계좌"
	MethodMobilePhone    = "휴대폰"
)

// Won is the currency of the service.
const Won = "KRW"

// Payment is a payment as the provider stores it. Amounts are in won, unless its currency is another one.
type Payment struct {
	PaymentKey    string // the provider's id, at most 200 characters; never changes
	OrderID       string // ours
	OrderName     string
	Status        string
	Method        string    // "" until the buyer chooses one
	Currency      string    // the buyer's browser names it to the widget, and the confirmation does not
	TotalAmount   int       // the original amount; never changes
	BalanceAmount int       // the amount that can still be cancelled
	ApprovedAt    time.Time // zero until the payment is captured
	// Secret authenticates the deposit callback, which contains it. It must be stored and never logged.
	Secret         string
	VirtualAccount *VirtualAccount
	Cancels        []Cancellation
	ReceiptURL     string
	Failure        *Failure // why the payment was aborted or expired
	// CashReceipts are those that the provider issued with the payment. It cancels them with the payment itself. Those of
	// [Client.IssueCashReceipt] are not among them.
	CashReceipts []CashReceipt
}

// VirtualAccount is the account into which the buyer pays.
type VirtualAccount struct {
	Number       string
	Bank         string // two-character bank code
	CustomerName string
	DueDate      time.Time
	Expired      bool
	RefundStatus string // NONE, PENDING, FAILED, PARTIAL_FAILED, COMPLETED or newer
}

// Cancellation is one full or partial refund of a payment.
type Cancellation struct {
	TransactionKey string
	Amount         int
	CanceledAt     time.Time
	Status         string // DONE for domestic payments
}

// Failure is the reason why a payment failed.
type Failure struct {
	Code    string
	Message string
}

// RefundStatus returns the state of the bank transfer that refunds a deposit; empty for other payments.
func (p Payment) RefundStatus() string {
	if p.VirtualAccount == nil {
		return ""
	}
	return p.VirtualAccount.RefundStatus
}

// Held returns the won of the payment that the provider holds. The balance of an account that was never paid into is its whole amount,
// so the balance alone is not sufficient.
func (p Payment) Held() int {
	if p.Status == StatusDone || p.Status == StatusPartialCanceled {
		return p.BalanceAmount
	}
	return 0
}

// Processed reports whether a confirmation of the payment was accepted: it was captured, or its account issued. An order has at most one
// such payment.
func (p Payment) Processed() bool {
	return !p.ApprovedAt.IsZero() || p.Status == StatusWaitingForDeposit
}

// FullyCanceled reports whether the payment was cancelled and its balance is zero. A
// payment that was cancelled in parts remains PARTIAL_CANCELED, so the status alone is
// not sufficient.
func (p Payment) FullyCanceled() bool {
	switch p.Status {
	case StatusCanceled:
		return true
	case StatusPartialCanceled:
		return p.BalanceAmount == 0
	}
	return false
}

// CanceledAmount returns the sum of all completed cancellations.
func (p Payment) CanceledAmount() int {
	sum := 0
	for _, c := range p.Cancels {
		if c.Status == "" || c.Status == "DONE" {
			sum += c.Amount
		}
	}
	return sum
}

// wirePayment is the provider's JSON, decoded leniently: unknown fields are ignored,
// amounts may be quoted, times may lack their offset. It lists only the fields that the
// service uses, so a change of other fields cannot make a payment unreadable.
type wirePayment struct {
	PaymentKey     string   `json:"paymentKey"`
	OrderID        string   `json:"orderId"`
	OrderName      string   `json:"orderName"`
	Status         string   `json:"status"`
	Method         string   `json:"method"`
	Currency       string   `json:"currency"`
	TotalAmount    *won     `json:"totalAmount"`
	BalanceAmount  *won     `json:"balanceAmount"`
	ApprovedAt     wireTime `json:"approvedAt"`
	Secret         string   `json:"secret"`
	VirtualAccount *struct {
		AccountNumber string   `json:"accountNumber"`
		BankCode      string   `json:"bankCode"`
		CustomerName  string   `json:"customerName"`
		DueDate       wireTime `json:"dueDate"`
		Expired       bool     `json:"expired"`
		RefundStatus  string   `json:"refundStatus"`
	} `json:"virtualAccount"`
	Cancels []struct {
		TransactionKey string   `json:"transactionKey"`
		CancelAmount   won      `json:"cancelAmount"`
		CanceledAt     wireTime `json:"canceledAt"`
		CancelStatus   string   `json:"cancelStatus"`
	} `json:"cancels"`
	Receipt *struct {
		URL string `json:"url"`
	} `json:"receipt"`
	Failure *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"failure"`
	CashReceipts []wireCashReceipt `json:"cashReceipts"`
}

var errNotAPayment = errors.New("answer is not a payment: paymentKey, orderId, status, totalAmount and balanceAmount are required")

// decodePayment decodes a payment. It rejects a JSON object without an order or a status,
// which is not a payment.
func decodePayment(body []byte) (Payment, error) {
	var w wirePayment
	if err := json.Unmarshal(body, &w); err != nil {
		return Payment{}, err
	}
	if w.PaymentKey == "" || w.OrderID == "" || w.Status == "" || w.TotalAmount == nil || w.BalanceAmount == nil {
		return Payment{}, errNotAPayment
	}
	p := Payment{
		PaymentKey:    w.PaymentKey,
		OrderID:       w.OrderID,
		OrderName:     w.OrderName,
		Status:        w.Status,
		Method:        w.Method,
		Currency:      cmp.Or(w.Currency, Won),
		TotalAmount:   int(*w.TotalAmount),
		BalanceAmount: int(*w.BalanceAmount),
		ApprovedAt:    w.ApprovedAt.Time,
		Secret:        w.Secret,
	}
	if v := w.VirtualAccount; v != nil {
		p.VirtualAccount = &VirtualAccount{
			Number:       v.AccountNumber,
			Bank:         v.BankCode,
			CustomerName: v.CustomerName,
			DueDate:      v.DueDate.Time,
			Expired:      v.Expired,
			RefundStatus: v.RefundStatus,
		}
	}
	for _, c := range w.Cancels {
		p.Cancels = append(p.Cancels, Cancellation{
			TransactionKey: c.TransactionKey,
			Amount:         int(c.CancelAmount),
			CanceledAt:     c.CanceledAt.Time,
			Status:         c.CancelStatus,
		})
	}
	if w.Receipt != nil {
		p.ReceiptURL = w.Receipt.URL
	}
	if w.Failure != nil {
		p.Failure = &Failure{Code: w.Failure.Code, Message: w.Failure.Message}
	}
	for _, r := range w.CashReceipts {
		p.CashReceipts = append(p.CashReceipts, r.receipt())
	}
	return p, nil
}

// Transaction is one movement of money. Status determines its direction (DONE in, CANCELED
// and PARTIAL_CANCELED out); the sign of Amount is not documented.
type Transaction struct {
	TransactionKey string
	PaymentKey     string // of the payment that was processed
	OrderID        string
	Method         string
	Status         string
	Amount         int
}

type wireTransaction struct {
	TransactionKey string `json:"transactionKey"`
	PaymentKey     string `json:"paymentKey"`
	OrderID        string `json:"orderId"`
	Method         string `json:"method"`
	Status         string `json:"status"`
	Amount         won    `json:"amount"`
}

func decodeTransactions(body []byte) ([]Transaction, error) {
	var page []wireTransaction
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, err
	}
	list := make([]Transaction, 0, len(page))
	for i, w := range page {
		if w.TransactionKey == "" || w.OrderID == "" {
			return nil, fmt.Errorf("transaction %d has no key or no order", i)
		}
		list = append(list, Transaction{
			TransactionKey: w.TransactionKey,
			PaymentKey:     w.PaymentKey,
			OrderID:        w.OrderID,
			Method:         w.Method,
			Status:         w.Status,
			Amount:         int(w.Amount),
		})
	}
	return list, nil
}
