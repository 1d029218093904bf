package console

import (
	"net/http"
	"strconv"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

type wireDeskItem struct {
	Kind          string  `json:"kind"`
	Branch        *string `json:"branch"`
	ReservationID *string `json:"reservationId"`
	OrderID       string  `json:"orderId"`
	RefundID      *string `json:"refundId"`
	DifferenceID  *string `json:"differenceId"`
	Amount        int     `json:"amount"`
	Since         string  `json:"since"`
	DueAt         *string `json:"dueAt"`
	Detail        string  `json:"detail"`
	Account       *string `json:"account"`
	wireByHand
}

// wireByHand is what a refund by hand (settledOutside) without an amount records, and what the provider returns of the extensions then.
type wireByHand struct {
	ByHand            *int `json:"byHand"` // null: not known, as of a deposit that came too late
	ExtensionsBalance int  `json:"extensionsBalance"`
}

func byHand(balances map[booking.ReservationID]reserve.Balance, id booking.ReservationID) wireByHand {
	balance, paid := balances[id]
	if !paid {
		return wireByHand{}
	}
	return wireByHand{&balance.ByHand, balance.Extensions}
}

// ShowMoneyDesk serves GET /v2/admin/money-desk?branch=: the money of one's branches that waits for a person. The headquarters
// also sees that of no branch.
func (c *Console) ShowMoneyDesk(w http.ResponseWriter, r *http.Request) error {
	branches, err := c.Reach(r)
	if err != nil {
		return err
	}
	found, err := c.Backoffice.MoneyDesk(r.Context(), branches)
	if err != nil {
		return err
	}
	ids := make([]booking.ReservationID, len(found))
	for i, item := range found {
		ids[i] = item.Reservation
	}
	balances, err := c.Reserve.BalancesByID(r.Context(), ids...)
	if err != nil {
		return err
	}
	items := make([]wireDeskItem, 0, len(found))
	for _, i := range found {
		item := wireDeskItem{
			Kind: i.Kind, Branch: wire.Nullable(i.Branch), OrderID: i.OrderID, RefundID: deskID(i.Refund), DifferenceID: deskID(i.Discrepancy),
			Amount: i.Amount, Since: *wire.Instant(i.Since), Detail: i.Detail, Account: i.Account, wireByHand: byHand(balances, i.Reservation),
		}
		if i.Reservation != 0 {
			item.ReservationID = wire.Nullable(wire.ReservationID(i.Reservation))
		}
		if i.DueAt != nil {
			item.DueAt = wire.Instant(*i.DueAt)
		}
		items = append(items, item)
	}
	return wire.WriteData(w, map[string]any{"items": items})
}

func deskID(id int64) *string {
	if id == 0 {
		return nil
	}
	return wire.Nullable(strconv.FormatInt(id, 10))
}
