package httpapi

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// registerPayment serves POST /payment.
func (a *API) registerPayment(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Amount    *int    `json:"amount"`
		Name      *string `json:"name"`
		MobileNum *string `json:"mobileNum"`
		Email     *string `json:"email"`

		// Additions to the interface: the hold that the page shows, as a precondition.
		Branch        *string `json:"branch"`
		Room          *int    `json:"room"`
		StartDateTime *string `json:"startDateTime"`
		EndDateTime   *string `json:"endDateTime"`

		ConsentVersion *string           `json:"consentVersion"` // addition
		CashReceipt    *wire.CashReceipt `json:"cashReceipt"`    // addition
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	amount, err := wire.Whole("amount", body.Amount, 0, math.MaxInt32)
	if err != nil {
		return err
	}
	expected, err := readExpected(body.Branch, body.Room, body.StartDateTime, body.EndDateTime)
	if err != nil {
		return err
	}
	contact, err := readContact(r, 50, true, body.Name, body.MobileNum, body.Email)
	if err != nil {
		return err
	}
	if contact.ConsentVersion, err = wire.OptionalText("consentVersion", body.ConsentVersion, 20); err != nil {
		return err
	}
	if contact.ConsentVersion != "" {
		if _, err := a.Company.Text(r.Context(), contact.ConsentVersion); errors.Is(err, company.ErrNoText) {
			return wire.UnknownValue("consentVersion")
		} else if err != nil {
			return err
		}
	}
	var wish reserve.ReceiptWish
	if wish.Type, wish.Number, err = body.CashReceipt.Wish(); err != nil {
		return err
	}
	orderID, err := a.Reserve.Register(r.Context(), holdToken(r, customerHoldCookie), contact, wish, amount, expected)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		OrderID string `json:"orderId"`
	}{orderID})
}

// readExpected reads the optional fields that identify the hold that the page shows.
func readExpected(branch *string, room *int, start, end *string) (reserve.Expected, error) {
	var (
		expected reserve.Expected
		err      error
	)
	if expected.Branch, err = wire.OptionalText("branch", branch, 100); err != nil {
		return expected, err
	}
	if room != nil {
		if expected.Room, err = wire.Whole("room", room, 1, maxRoom); err != nil {
			return expected, err
		}
	}
	if start != nil {
		if expected.Times.Start, err = wire.Time("startDateTime", start, time.UTC); err != nil {
			return expected, err
		}
	}
	if end != nil {
		expected.Times.End, err = wire.Time("endDateTime", end, time.UTC)
	}
	return expected, err
}

// readContact reads the contact of a guest. maxName is the longest name; required: name and number must be given.
func readContact(r *http.Request, maxName int, required bool, name, number, address *string) (booking.Contact, error) {
	contact := booking.Contact{Language: wire.Language(r)}
	read := wire.OptionalText
	if required {
		read = wire.Text
	}
	var err error
	if contact.Name, err = read("name", name, maxName); err != nil {
		return contact, err
	}
	if contact.Mobile, err = wire.Mobile("mobileNum", number, required); err != nil {
		return contact, err
	}
	contact.Email, err = wire.Email("email", address)
	return contact, err
}

// The provider's maximum lengths of paymentKey and orderId.
const (
	maxPaymentKey = 200
	maxOrderID    = 64
)

// receiptCookieTTL is the lifetime of the purchase's cookie after payment, so that the browser can show the receipt before
// and after a deposit arrives.
const receiptCookieTTL = 24 * time.Hour

// confirmPayment serves POST /payment/confirm.
func (a *API) confirmPayment(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		PaymentKey *string `json:"paymentKey"`
		OrderID    *string `json:"orderId"`
		Amount     *int    `json:"amount"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	var (
		request reserve.ConfirmRequest
		err     error
	)
	if request.PaymentKey, err = wire.Text("paymentKey", body.PaymentKey, maxPaymentKey); err != nil {
		return err
	}
	if request.OrderID, err = wire.Text("orderId", body.OrderID, maxOrderID); err != nil {
		return err
	}
	if request.Amount, err = wire.Whole("amount", body.Amount, 0, math.MaxInt32); err != nil {
		return err
	}
	receipt, err := a.Reserve.Confirm(r.Context(), request)
	if err != nil {
		return err
	}
	token := holdToken(r, customerHoldCookie)
	if token != "" {
		a.setHoldCookie(w, customerHoldCookie, token, receiptCookieTTL)
	}
	answer := wireConfirmed(receipt)
	answer.ofExtension(receipt.Reservation)
	if !receipt.PaidAt.IsZero() && a.Now().Sub(receipt.PaidAt) > repeatTTL {
		if own, err := a.Reserve.ByToken(r.Context(), token); err != nil || own.OrderID != receipt.OrderID {
			answer.hideContact()
		}
	}
	return wire.WriteData(w, answer)
}

// repeatTTL is how long any client that repeats a confirmation receives the full response, for example a client that retries
// after a lost response.
const repeatTTL = 10 * time.Minute

// hideContact masks the guest's contact for a client without the guest's cookie. The URL to which the payment provider
// redirects the browser is sufficient to repeat a confirmation, so it must not reveal the contact.
func (c *confirmed) hideContact() {
	if n := len(c.MobileNum); n > 4 {
		c.MobileNum = strings.Repeat("*", n-4) + c.MobileNum[n-4:]
	}
	c.Email, c.CustomerName = nil, nil
}

// confirmed is the response of POST /payment/confirm.
type confirmed struct {
	Branch             string  `json:"branch"`
	RoomNo             string  `json:"roomNo"`
	StartDateTime      string  `json:"startDateTime"`
	EndDateTime        string  `json:"endDateTime"`
	RefundableDateTime string  `json:"refundableDateTime"`
	MobileNum          string  `json:"mobileNum"`
	Email              *string `json:"email"`
	PaymentMethod      string  `json:"paymentMethod"`
	AccountNumber      *string `json:"virtualaccountAccountNumber"`
	BankName           *string `json:"virtualaccountBankName"`
	Amount             *int    `json:"virtualaccountAmount"`
	CustomerName       *string `json:"virtualaccountCustomerName"`
	DueDate            *string `json:"virtualaccountDueDate"`
	Extension          bool    `json:"extension,omitempty"` // an addition, present only if it is true: no key is sent
}

func wireConfirmed(receipt reserve.Receipt) confirmed {
	zone := receipt.Branch.Zone
	c := confirmed{
		Branch: receipt.Branch.Code, RoomNo: strconv.Itoa(receipt.RoomNo),
		StartDateTime: wire.Minute(receipt.Start, zone), EndDateTime: wire.StoredEnd(receipt.Interval, zone),
		RefundableDateTime: wire.Minute(receipt.RefundableUntil(), zone),
		MobileNum:          receipt.Mobile, Email: wire.Nullable(receipt.Email), PaymentMethod: string(receipt.Method),
	}
	if account := receipt.Payment.Account; receipt.Method == booking.VirtualAccount {
		c.AccountNumber, c.BankName = wire.Nullable(account.Number), wire.Nullable(booking.BankName(account.Bank))
		c.Amount, c.CustomerName, c.DueDate = &receipt.Amount, wire.Nullable(account.Holder), wireDue(account, zone)
	}
	return c
}

func wireDue(account money.DepositAccount, zone *time.Location) *string {
	if account.DueAt.IsZero() {
		return nil
	}
	return wire.Nullable(account.DueAt.In(zone).Format(wire.LayoutLocalISO))
}

// cancelPayment serves POST /payment/cancel.
func (a *API) cancelPayment(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		ID           *int64  `json:"id"`
		CancelReason *string `json:"cancelReason"`
		RefundAmount *int    `json:"refundAmount"`
		wire.RefundAccount
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.ID == nil {
		return wire.Missing("id")
	}
	reason, err := wire.Text("cancelReason", body.CancelReason, 200)
	if err != nil {
		return err
	}
	account, err := body.Account()
	if err != nil {
		return err
	}
	err = a.Reserve.Cancel(r.Context(), reserve.CancelRequest{
		ID: booking.ReservationID(*body.ID), By: wire.Principal(r), Reason: reason, Account: account, Amount: body.RefundAmount,
	})
	if err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// myReservations serves GET /my-reservations.
func (a *API) myReservations(w http.ResponseWriter, r *http.Request) error {
	records, err := a.paymentRecords(r.Context(), wire.Principal(r).LoginType, wire.Principal(r).LoginID)
	if err != nil {
		return err
	}
	return wire.WriteData(w, records)
}

// paymentRecord is a payment as shown to its payer.
type paymentRecord struct {
	ID                  int64   `json:"id"`
	Status              string  `json:"status"`
	Method              string  `json:"method"`
	Branch              string  `json:"branch"`
	RoomNo              string  `json:"roomNo"`
	StartDateTime       string  `json:"startDateTime"`
	EndDateTime         string  `json:"endDateTime"`
	Amount              int     `json:"amount"`
	PaymentDoneDateTime string  `json:"paymentDoneDateTime"`
	BankName            *string `json:"virtualaccountBankName"`
	AccountNumber       *string `json:"virtualaccountAccountNumber"`
	DueDate             *string `json:"virtualaccountDueDate"`

	CashReceipt *wire.IssuedReceipt `json:"cashReceipt,omitempty"` // addition
	Refunded    int                 `json:"refunded,omitempty"`    // addition
}

// paymentRecords returns the payments of a customer, newest first.
func (a *API) paymentRecords(ctx context.Context, loginType booking.LoginType, loginID string) ([]paymentRecord, error) {
	receipts, err := a.Reserve.History(ctx, loginType, loginID)
	if err != nil {
		return nil, err
	}
	records := make([]paymentRecord, 0, len(receipts))
	for _, receipt := range receipts {
		records = append(records, wirePaymentRecord(receipt))
	}
	return records, nil
}

func wirePaymentRecord(receipt reserve.Receipt) paymentRecord {
	zone := receipt.Branch.Zone
	done := receipt.PaidAt
	if done.IsZero() {
		done = receipt.Payment.AttemptedAt // the interface allows no null here, so use the time of issue
	}
	if done.IsZero() {
		done = receipt.CreatedAt
	}
	record := paymentRecord{
		ID: int64(receipt.ID), Status: wireStatus(receipt.Reservation), Method: string(receipt.Method),
		Branch: receipt.Branch.Code, RoomNo: strconv.Itoa(receipt.RoomNo),
		StartDateTime: wire.Minute(receipt.Start, zone), EndDateTime: wire.StoredEnd(receipt.Interval, zone),
		Amount: receipt.Amount, PaymentDoneDateTime: wire.Minute(done, zone), CashReceipt: cashReceipt(receipt),
		Refunded: receipt.Refunded,
	}
	if receipt.Ended {
		record.Status = string(booking.Canceled)
	}
	if account := receipt.Payment.Account; receipt.Method == booking.VirtualAccount {
		record.BankName, record.AccountNumber = wire.Nullable(booking.BankName(account.Bank)), wire.Nullable(account.Number)
		record.DueDate = wireDue(account, zone)
	}
	return record
}

// wireStatus maps the states to the three states of the interface. A reservation that is being cancelled keeps its previous
// status, although its key is revoked: the money is not refunded yet, and the provider may reject the refund, which restores the stay.
func wireStatus(r booking.Reservation) string {
	switch r.BookingStatus() {
	case booking.StatusPaid:
		return string(booking.Done)
	case booking.StatusWaitingForDeposit:
		return string(booking.WaitingForDeposit)
	}
	return string(booking.Canceled)
}
