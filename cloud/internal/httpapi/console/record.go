package console

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// ReservationRecord serves GET /v2/admin/reservations/{id}: everything known about a reservation in any state, with its
// history. The view is audited.
func (c *Console) ReservationRecord(w http.ResponseWriter, r *http.Request) error {
	id, err := wire.PathReservation(r)
	if err != nil {
		return err
	}
	record, err := c.Backoffice.Reservation(r.Context(), id)
	if err != nil {
		return err
	}
	if err := wire.Scope(r, record.Branch.Code); err != nil {
		return err
	}
	if record, err = c.Backoffice.Complete(r.Context(), record, actor(r)); err != nil {
		return err
	}
	balances, err := c.Reserve.BalancesOf(r.Context(), record.Reservation)
	if err != nil {
		return err
	}
	forbidden := c.Reserve.MayAdminCancel(r.Context(), wire.Principal(r), record.Reservation)
	if forbidden != nil && !errors.Is(forbidden, account.ErrRoleForbidden) && !errors.Is(forbidden, account.ErrScopeForbidden) {
		return forbidden
	}
	answer, err := c.wireRecord(record, balances, wire.Principal(r).MayOpen(), forbidden == nil)
	if err != nil {
		return err
	}
	return wire.WriteData(w, answer)
}

type wireHistory struct {
	At     string          `json:"at"`
	Kind   string          `json:"kind"`
	By     *string         `json:"by"`
	Detail json.RawMessage `json:"detail"`
}

type wireAccount struct {
	BankName string  `json:"bankName"`
	Number   string  `json:"number"`
	Holder   string  `json:"holder"`
	DueAt    *string `json:"dueAt"`
	QR       string  `json:"qr"` // bank, account number and amount, for the guest's phone
}

// wireStay holds the times at which the guests entered and left. Times that the doors have not shown are null.
type wireStay struct {
	EnteredAt string  `json:"enteredAt"`
	ByKey     *string `json:"byKey"` // owner, staff, or the label of a companion; pin or code: at the keypad
	LeftAt    *string `json:"leftAt"`
}

// wireCleaned is the photo that a cleaner took after the stay.
type wireCleaned struct {
	At    string `json:"at"`
	By    string `json:"by"`
	Photo string `json:"photo"` // data URL
}

// wireKey is a key without its text.
type wireKey struct {
	ID         string  `json:"id"`
	Kind       string  `json:"kind"`
	Label      *string `json:"label"`
	CreatedBy  string  `json:"createdBy"`
	CreatedAt  *string `json:"createdAt"`
	LastUsedAt *string `json:"lastUsedAt"`
	RevokedAt  *string `json:"revokedAt"`
	RevokedAs  *string `json:"revokedAs"`
}

func wireKeys(keys []booking.AccessKey) []wireKey {
	list := make([]wireKey, 0, len(keys))
	for _, k := range keys {
		list = append(list, wireKey{strconv.FormatInt(k.ID, 10), string(k.Kind), wire.Nullable(k.Label), k.CreatedBy, wire.Instant(k.CreatedAt),
			wire.Instant(k.LastUsedAt), wire.Instant(k.RevokedAt), wire.Nullable(k.RevokedAs)})
	}
	return list
}

// cancelable reports whether a reservation is in a state that an administrator can end.
func (c *Console) cancelable(d backoffice.Record) bool {
	if d.State == booking.Confirming && !reserve.Unclear(d.Reservation, d.Payment, c.Now()) {
		return false
	}
	return d.State == booking.Conflict || d.State != booking.Canceling && d.Occupies(c.Now())
}

// wireRecord encodes a record. Instead of the key it carries the link that was sent, only while that opens doors, and only
// for principals that may open doors.
func (c *Console) wireRecord(d backoffice.Record, balances map[booking.ReservationID]reserve.Balance, withKey, mayCancel bool) (any, error) {
	zone := d.Branch.Zone
	room, _ := d.Branch.Room(d.RoomNo)
	item, balance := wireTimelineReservation(d.Reservation, zone), balances[d.ID]
	item.StayBalance = stayBalance(d.Reservation, balances)
	item.MobileNum = wire.Nullable(d.Mobile)
	record := struct {
		timelineReservation
		Branch          string        `json:"branch"`
		Machine         string        `json:"machine"`
		Email           *string       `json:"email"`
		Note            *string       `json:"note"`
		CreatedBy       *string       `json:"createdBy"`
		OrderID         *string       `json:"orderId"`
		CreatedAt       *string       `json:"createdAt"`
		PaidAt          *string       `json:"paidAt"`
		CanceledAt      *string       `json:"canceledAt"`
		RefundUntil     *string       `json:"refundUntil"`
		ReceiptURL      *string       `json:"receiptUrl"`
		KeyLink         *string       `json:"keyLink"`
		Keys            []wireKey     `json:"keys"`
		Account         *wireAccount  `json:"account"`
		NeedsRefundBank bool          `json:"needsRefundAccount"`
		Movable         bool          `json:"movable"`
		Correctable     bool          `json:"correctable"`
		Cancelable      bool          `json:"cancelable"`
		History         []wireHistory `json:"history"`
		Stay            *wireStay     `json:"stay"`
		Cleaned         *wireCleaned  `json:"cleaned"`

		CashReceipt *wire.IssuedReceipt `json:"cashReceipt"`

		Balance           int `json:"balance"`
		ExtensionsBalance int `json:"extensionsBalance"`
	}{
		timelineReservation: item, Branch: d.Branch.Code, Machine: room.Machine, Email: wire.Nullable(d.Email), Note: wire.Nullable(d.Note),
		CreatedBy: wire.Nullable(d.CreatedBy), OrderID: wire.Nullable(d.OrderID), CreatedAt: wire.Instant(d.CreatedAt), PaidAt: wire.Instant(d.PaidAt),
		CanceledAt: wire.Instant(d.CanceledAt), ReceiptURL: wire.Nullable(d.Payment.ReceiptURL),
		NeedsRefundBank: d.State == booking.Done && (d.Method == booking.VirtualAccount || d.ExtendedByDeposit),
		Movable:         (d.State == booking.Done || d.State == booking.Conflict) && d.Extends == 0,
		Cancelable:      mayCancel && c.cancelable(d),
		Keys:            wireKeys(d.Keys),
		Correctable:     d.State == booking.Done || d.State == booking.WaitingForDeposit,
		History:         make([]wireHistory, 0, len(d.History)),

		Balance: balance.Own, ExtensionsBalance: balance.Extensions,
	}
	if d.Method == booking.VirtualAccount {
		record.CashReceipt = wire.Issued(d.Cash)
	}
	if d.Visit != nil {
		record.Stay = &wireStay{*wire.Instant(d.Visit.EnteredAt), wire.Nullable(d.Visit.ByKey), moment(d.Visit.LeftAt)}
	}
	if d.Cleaned != nil {
		record.Cleaned = &wireCleaned{*wire.Instant(d.Cleaned.TakenAt), d.Cleaned.TakenBy,
			"data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(d.Cleaned.Data)}
	}
	if d.State == booking.Done {
		record.RefundUntil = wire.Instant(d.RefundDeadline())
	}
	if withKey {
		link, err := c.Reserve.KeyLinkOf(d.Reservation)
		if err != nil {
			return nil, err
		}
		record.KeyLink = wire.Nullable(link)
	}
	if account := d.Payment.Account; account.Number != "" {
		picture, err := wire.QR(fmt.Sprintf("%s %s %d원", booking.BankName(account.Bank), account.Number, d.Amount))
		if err != nil {
			return nil, err
		}
		record.Account = &wireAccount{booking.BankName(account.Bank), account.Number, account.Holder, wire.Instant(account.DueAt), picture}
	}
	for _, e := range d.History {
		record.History = append(record.History, wireHistory{e.At.UTC().Format(time.RFC3339Nano), e.Kind, wire.Nullable(e.By), e.Detail})
	}
	return record, nil
}
