package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"
)

// kst is the provider's time zone: all times carry +09:00. Korea has no daylight saving time.
var kst = time.FixedZone("KST", 9*60*60)

// The payment methods, as the provider names them.
const (
	MethodCard           = "카드"
	MethodEasyPay        = "간편결제"
	MethodVirtualAccount = "가상계좌"
	MethodMobilePhone    = "휴대폰"
)

// methods lists the payment methods in the order of the widget.
var methods = []string{MethodCard, MethodEasyPay, MethodVirtualAccount, MethodMobilePhone}

// Status is the status of a payment; the package comment shows the transitions.
type Status string

// The statuses of a payment (docs/specification.md, Payment provider 2).
const (
	StatusReady             Status = "READY"
	StatusInProgress        Status = "IN_PROGRESS"
	StatusWaitingForDeposit Status = "WAITING_FOR_DEPOSIT"
	StatusDone              Status = "DONE"
	StatusCanceled          Status = "CANCELED"
	StatusPartialCanceled   Status = "PARTIAL_CANCELED"
	StatusAborted           Status = "ABORTED"
	StatusExpired           Status = "EXPIRED"
)

// Limits of a payment session (docs/specification.md, Payment provider 2).
const (
	authenticationLife = 30 * time.Minute // READY, until the buyer authenticates
	confirmationLife   = 10 * time.Minute // IN_PROGRESS, until the shop confirms
	widgetAccountLife  = 7 * 24 * time.Hour
)

// Payment is the provider's payment object, field by field (docs/specification.md, Payment provider 2). Fields documented as nullable are
// pointers.
type Payment struct {
	Version             string          `json:"version"`
	PaymentKey          string          `json:"paymentKey"`
	Type                string          `json:"type"`
	OrderID             string          `json:"orderId"`
	OrderName           string          `json:"orderName"`
	MID                 string          `json:"mId"`
	Currency            string          `json:"currency"`
	Method              *string         `json:"method"`
	TotalAmount         int             `json:"totalAmount"`
	BalanceAmount       int             `json:"balanceAmount"`
	SuppliedAmount      int             `json:"suppliedAmount"`
	VAT                 int             `json:"vat"`
	TaxFreeAmount       int             `json:"taxFreeAmount"`
	TaxExemptionAmount  int             `json:"taxExemptionAmount"`
	Status              Status          `json:"status"`
	RequestedAt         time.Time       `json:"requestedAt"`
	ApprovedAt          *time.Time      `json:"approvedAt"`
	UseEscrow           bool            `json:"useEscrow"`
	CultureExpense      bool            `json:"cultureExpense"`
	LastTransactionKey  *string         `json:"lastTransactionKey"`
	IsPartialCancelable bool            `json:"isPartialCancelable"`
	Card                *Card           `json:"card"`
	EasyPay             *EasyPay        `json:"easyPay"`
	MobilePhone         *MobilePhone    `json:"mobilePhone"`
	VirtualAccount      *VirtualAccount `json:"virtualAccount"`
	Transfer            *struct{}       `json:"transfer"`
	GiftCertificate     *struct{}       `json:"giftCertificate"`
	CashReceipt         *CashReceipt    `json:"cashReceipt"`
	CashReceipts        []CashReceipt   `json:"cashReceipts"`
	Discount            *struct{}       `json:"discount"`
	Cancels             []Cancel        `json:"cancels"`
	Secret              *string         `json:"secret"`
	Failure             *Failure        `json:"failure"`
	Country             string          `json:"country"`
	Metadata            *struct{}       `json:"metadata"`
	Receipt             *Link           `json:"receipt"`
	Checkout            Link            `json:"checkout"`
}

// Card describes a card payment.
type Card struct {
	Amount                int     `json:"amount"`
	IssuerCode            string  `json:"issuerCode"`
	AcquirerCode          *string `json:"acquirerCode"`
	Number                string  `json:"number"` // masked
	InstallmentPlanMonths int     `json:"installmentPlanMonths"`
	ApproveNo             string  `json:"approveNo"`
	UseCardPoint          bool    `json:"useCardPoint"`
	CardType              string  `json:"cardType"`
	OwnerType             string  `json:"ownerType"`
	AcquireStatus         string  `json:"acquireStatus"`
	IsInterestFree        bool    `json:"isInterestFree"`
	InterestPayer         *string `json:"interestPayer"`
}

// EasyPay names the wallet. A wallet settled by card fills Payment.Card as well.
type EasyPay struct {
	Provider       string `json:"provider"`
	Amount         int    `json:"amount"`
	DiscountAmount int    `json:"discountAmount"`
}

// MobilePhone names the phone bill that is charged.
type MobilePhone struct {
	CustomerMobilePhone string `json:"customerMobilePhone"`
	SettlementStatus    string `json:"settlementStatus"`
	ReceiptURL          string `json:"receiptUrl"`
}

// VirtualAccount is an account that accepts one transfer of the exact amount until it is due.
type VirtualAccount struct {
	AccountType          string         `json:"accountType"`
	AccountNumber        string         `json:"accountNumber"`
	BankCode             string         `json:"bankCode"`
	CustomerName         string         `json:"customerName"`
	DueDate              time.Time      `json:"dueDate"`
	Expired              bool           `json:"expired"`
	SettlementStatus     string         `json:"settlementStatus"`
	RefundStatus         string         `json:"refundStatus"` // NONE, PENDING, COMPLETED, FAILED, PARTIAL_FAILED
	RefundReceiveAccount *RefundAccount `json:"refundReceiveAccount"`
	DepositorName        *string        `json:"depositorName"`
}

// RefundAccount is the account for the refund of a deposit.
type RefundAccount struct {
	BankCode      string `json:"bankCode"`
	AccountNumber string `json:"accountNumber"`
	HolderName    string `json:"holderName"`
}

// Cancel is one cancellation of a payment.
type Cancel struct {
	CancelAmount           int       `json:"cancelAmount"`
	CancelReason           string    `json:"cancelReason"`
	TaxFreeAmount          int       `json:"taxFreeAmount"`
	TaxExemptionAmount     int       `json:"taxExemptionAmount"`
	RefundableAmount       int       `json:"refundableAmount"`
	EasyPayDiscountAmount  int       `json:"easyPayDiscountAmount"`
	TransferDiscountAmount int       `json:"transferDiscountAmount"`
	CardDiscountAmount     int       `json:"cardDiscountAmount"`
	CanceledAt             time.Time `json:"canceledAt"`
	TransactionKey         string    `json:"transactionKey"`
	ReceiptKey             *string   `json:"receiptKey"`
	CancelStatus           string    `json:"cancelStatus"`
	CancelRequestID        *string   `json:"cancelRequestId"`
}

// Failure is the reason why a payment was aborted or expired.
type Failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Link is a URL at the provider.
type Link struct {
	URL string `json:"url"`
}

// record is a payment with the provider's internal state.
type record struct {
	Payment         Payment    `json:"payment"`
	Keys            keySet     `json:"keys"`
	Method          string     `json:"method"` // chosen in the widget; shown as Payment.Method once processed
	Bank            string     `json:"bank"`
	CustomerName    string     `json:"customerName"`
	CustomerPhone   string     `json:"customerPhone"`
	OpenedAt        time.Time  `json:"openedAt"`
	AuthenticatedAt time.Time  `json:"authenticatedAt"`
	Decline         string     `json:"decline"`   // the code with which confirm will be rejected
	Transfers       []transfer `json:"transfers"` // refunds in progress to the buyer's account
	Bounced         int        `json:"bounced"`   // won of refunds that the buyer's bank has returned

	unsaved bool // listed in the changes of its state
}

// transfer is a refund that a bank executes later.
type transfer struct {
	Amount int       `json:"amount"`
	At     time.Time `json:"at"`    // zero if the transfer stays pending
	Fails  bool      `json:"fails"` // the receiving bank will return it
}

// foreignTo reports whether the payment does not belong to the merchant of a key set.
func (r *record) foreignTo(keys keySet) bool { return r.Keys.merchant() != keys.merchant() }

// processed reports whether the provider has acted on the payment, which consumes its order id.
func (r *record) processed() bool {
	switch r.Payment.Status {
	case StatusDone, StatusWaitingForDeposit, StatusCanceled, StatusPartialCanceled:
		return true
	case StatusExpired:
		return r.Payment.VirtualAccount != nil
	}
	return false
}

// paid reports whether money was received and not reversed by a bank.
func (r *record) paid() bool {
	return r.Payment.ApprovedAt != nil
}

// advance applies all transitions of r that are due by now and reports whether there were any.
func (r *record) advance(now time.Time, l *Ledger) bool {
	p := &r.Payment
	before := p.Status
	switch p.Status {
	case StatusReady:
		if !now.Before(r.OpenedAt.Add(authenticationLife)) {
			r.expire()
		}
	case StatusInProgress:
		if !now.Before(r.AuthenticatedAt.Add(confirmationLife)) {
			r.expire()
		}
	case StatusWaitingForDeposit:
		if !now.Before(p.VirtualAccount.DueDate) {
			p.Status = StatusExpired
			p.VirtualAccount.Expired = true
		}
	}
	return r.transferred(now, l) || p.Status != before
}

// transferred ends the transfers that are due by now and reports whether there were any.
func (r *record) transferred(now time.Time, l *Ledger) bool {
	var open []transfer // a copy: earlier changes of the state share the present list
	for _, t := range r.Transfers {
		switch {
		case t.At.IsZero() || now.Before(t.At):
			open = append(open, t)
		case t.Fails:
			l.Refunded -= t.Amount
			r.Bounced += t.Amount
		}
	}
	if len(open) == len(r.Transfers) {
		return false
	}
	r.Transfers = open
	r.Payment.VirtualAccount.RefundStatus = r.refundStatus()
	return true
}

// refundStatus returns the state of all refunds of a deposit. The provider has one for the payment and none for each cancellation.
func (r *record) refundStatus() string {
	switch {
	case len(r.Transfers) > 0:
		return "PENDING"
	case r.Bounced > 0 && r.Payment.Status == StatusPartialCanceled:
		return "PARTIAL_FAILED"
	case r.Bounced > 0:
		return "FAILED"
	}
	return "COMPLETED"
}

func (r *record) expire() {
	r.Payment.Status = StatusExpired
	r.Payment.Failure = &Failure{Code: "EXPIRED_PAYMENT", Message: "결제가 만료되었습니다. 다시 시도해주세요."}
}

// newPayment returns a new payment without any transaction.
func newPayment(orderID, orderName, mID string, amount int, now time.Time) Payment {
	key := mID[:5] + now.In(kst).Format("20060102150405") + randomHex(6)
	return Payment{
		Version: "2022-11-16", PaymentKey: key, Type: "NORMAL",
		OrderID: orderID, OrderName: orderName, MID: mID,
		Currency: "KRW", Country: "KR",
		TotalAmount: amount, BalanceAmount: amount,
		SuppliedAmount: amount - vat(amount), VAT: vat(amount),
		Status: StatusReady, RequestedAt: wireTime(now), IsPartialCancelable: true,
		Checkout: Link{URL: "https://api.tosspayments.com/v1/payments/" + key + "/checkout"},
	}
}

// settle records the payment method and marks the payment as paid or waiting for its deposit.
func (r *record) settle(now, due time.Time) {
	p := &r.Payment
	p.Method = &r.Method
	p.LastTransactionKey = new(newTransactionKey())
	p.Secret = new("ps_" + randomHex(12))
	p.Receipt = &Link{URL: "https://dashboard.tosspayments.com/receipt/" + p.PaymentKey}
	card := &Card{
		Amount: p.TotalAmount, IssuerCode: "61", AcquirerCode: new("31"), Number: "12345678****123*",
		ApproveNo: "00000000", CardType: "신용", OwnerType: "개인", AcquireStatus: "READY",
	}
	switch r.Method {
	case MethodCard:
		p.Card = card
	case MethodEasyPay:
		p.EasyPay = &EasyPay{Provider: "토스페이", Amount: 0}
		p.Card = card
	case MethodMobilePhone:
		p.MobilePhone = &MobilePhone{
			CustomerMobilePhone: mask(r.CustomerPhone), SettlementStatus: "INCOMPLETED", ReceiptURL: p.Receipt.URL,
		}
	case MethodVirtualAccount:
		p.VirtualAccount = &VirtualAccount{
			AccountType: "일반", AccountNumber: "X" + randomDigits(13), BankCode: r.Bank,
			CustomerName: r.CustomerName, DueDate: wireTime(due),
			SettlementStatus: "INCOMPLETED", RefundStatus: "NONE",
		}
		p.Status = StatusWaitingForDeposit
		return
	}
	p.Status = StatusDone
	p.ApprovedAt = new(wireTime(now))
}

// vat returns the included VAT, a tenth of the net price, rounded to the won.
func vat(amount int) int { return (amount + 5) / 11 }

// wireTime formats t as the provider does: Korean time with seconds.
func wireTime(t time.Time) time.Time { return t.In(kst).Truncate(time.Second) }

// newTransactionKey returns the id of one movement of money.
func newTransactionKey() string { return strings.ToUpper(randomHex(16)) }

func randomHex(bytes int) string {
	b := make([]byte, bytes)
	rand.Read(b) // never returns an error
	return hex.EncodeToString(b)
}

func randomDigits(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never returns an error
	for i := range b {
		b[i] = '0' + b[i]%10
	}
	return string(b)
}

// mask hides the middle of a phone number.
func mask(phone string) string {
	if len(phone) < 8 {
		return "010****1234"
	}
	return phone[:3] + "****" + phone[len(phone)-4:]
}
