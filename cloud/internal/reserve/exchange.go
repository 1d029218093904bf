package reserve

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// ExchangeRequest is a customer's request to change the room or the time of a paid stay.
type ExchangeRequest struct {
	ID      booking.ReservationID
	Room    int
	Times   booking.LocalInterval
	By      account.Principal
	Account *toss.RefundAccount // for a stay that was paid by virtual account and costs another amount now
	Earlier Token               // the client's current hold; empty: none
	Client  string              // limit.Address of the client; empty: unlimited
}

// Exchange is the outcome of an ExchangeRequest: the stay was moved, or a hold with a price waits for its payment, which
// refunds the old stay.
type Exchange struct {
	Moved  bool
	Token  Token
	TTL    time.Duration
	Amount int
}

// Exchange moves a stay at once if it costs the same at its new time. Otherwise it holds the new time for HoldTTL; the
// transaction that confirms the payment of the hold starts the full refund of the old stay. Until then the old stay is as
// before.
//
// Errors: ErrNotFound, ErrNotPayer, ErrNotMovable, booking.ErrTooLateToCancel, ErrAccountRequired, ErrUnknownBank, and those
// of Hold.
func (s *Service) Exchange(ctx context.Context, req ExchangeRequest) (Exchange, error) {
	found, err := postgres.Reservation(ctx, s.DB.Pool, req.ID)
	if errors.Is(err, booking.ErrNoReservation) {
		return Exchange{}, ErrNotFound
	}
	if err != nil {
		return Exchange{}, err
	}
	branch, err := s.DB.BranchByID(ctx, found.Branch)
	if err != nil {
		return Exchange{}, err
	}
	room, ok := branch.Room(req.Room)
	if !ok {
		return Exchange{}, ErrNoRoom
	}
	earlier, err := s.currentHold(ctx, req.Earlier)
	if err != nil {
		return Exchange{}, err
	}
	var result Exchange
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockRooms(ctx, tx, found.Room, room.ID, max(earlier.Room, room.ID)); err != nil {
			return err
		}
		stay, err := lockStay(ctx, tx, req.ID)
		if err != nil {
			return err
		}
		if stay.root.Room != found.Room {
			return ErrNotMovable
		}
		result, err = s.change(ctx, tx, stay.root, now).exchange(stay, req, earlier)
		return err
	})
	return result, err
}

func (c *change) exchange(stay stay, req ExchangeRequest, earlier booking.Reservation) (Exchange, error) {
	r := c.r()
	switch {
	case r.Method == "" || r.Source == booking.Partner:
		return Exchange{}, ErrNotFound
	case !r.BelongsTo(req.By.LoginType, req.By.LoginID):
		return Exchange{}, ErrNotPayer
	case r.State != booking.Done || r.Extends != 0:
		return Exchange{}, ErrNotMovable
	}
	if err := r.CanCancel(c.now); err != nil {
		return Exchange{}, err
	}
	branch, err := postgres.BranchOf(c.ctx, c.tx, r.Branch) // read again: the rooms are locked now
	if err != nil {
		return Exchange{}, err
	}
	room, ok := branch.Room(req.Room)
	if !ok {
		return Exchange{}, ErrNoRoom
	}
	times, err := req.Times.In(branch.Zone, c.now)
	if err != nil {
		return Exchange{}, err
	}
	if err := checkTimes(branch, room, times, booking.Customer, c.now); err != nil {
		return Exchange{}, err
	}
	if won, _ := branch.PriceOf(room, times); won != stay.price() {
		return c.holdExchange(stay, room, times, won, req, earlier)
	}
	if err := c.giveUpExchanges(); err != nil {
		return Exchange{}, err
	}
	to := stay.at(room, times)
	if to.isAt(r) { // a repeated request
		return Exchange{Moved: true}, nil
	}
	if err := c.moveTo(stay, branch, to, "customer", ""); err != nil {
		return Exchange{}, err
	}
	if err := c.notifyMoved(); err != nil {
		return Exchange{}, err
	}
	return Exchange{Moved: true}, postgres.LiftQuarantine(c.ctx, c.tx, r.ID, r.Start) // the PIN is not disclosed yet
}

// holdExchange holds the new time of a stay that costs another amount there.
func (c *change) holdExchange(stay stay, room booking.Room, times booking.Interval, won int, req ExchangeRequest, earlier booking.Reservation) (Exchange, error) {
	sealed, err := c.exchangeAccount(stay, req.Account)
	if err != nil {
		return Exchange{}, err
	}
	if err := c.giveUpExchanges(); err != nil {
		return Exchange{}, err
	}
	if earlier.ID != 0 && earlier.Replaces != c.r().ID {
		held, err := postgres.LockReservation(c.ctx, c.tx, earlier.ID)
		if err != nil {
			return Exchange{}, err
		}
		if err := c.on(held).giveUp(); err != nil {
			return Exchange{}, err
		}
	}
	result := Exchange{Token: newToken(), TTL: c.HoldTTL, Amount: won}
	hold := postgres.NewHold{
		Room: room.ID, Interval: times, Source: booking.Customer, Token: result.Token.hash(), ExpiresAt: c.now.Add(result.TTL),
		Client: req.Client, Replaces: c.r().ID, Price: won,
	}
	if err := c.insertHold(c.ctx, c.tx, hold, 0, c.now); err != nil {
		return Exchange{}, err
	}
	if err := c.limitClient(c.ctx, c.tx, hold, c.now); err != nil {
		return Exchange{}, err
	}
	if sealed == nil {
		return result, nil
	}
	held, err := postgres.LockToken(c.ctx, c.tx, hold.Token)
	if err != nil {
		return Exchange{}, err
	}
	return result, postgres.SetReplacedAccount(c.ctx, c.tx, held.ID, sealed)
}

// giveUpExchanges releases the unpaid exchanges of the stay, and closes the account of one that waits for its deposit: the guest
// has chosen another time.
func (c *change) giveUpExchanges() error {
	unpaid, err := postgres.LockExchanges(c.ctx, c.tx, c.r().ID)
	if err != nil {
		return err
	}
	for _, held := range unpaid {
		if held.State == booking.WaitingForDeposit {
			_, err = c.on(held).cancel(cancellation{by: rule.ByExchange, reason: "예약 변경", soon: true, forced: true})
		} else {
			err = c.on(held).giveUp()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// exchangeAccount seals the account for the refund of the old stay, or returns ErrAccountRequired if the old stay needs one.
func (c *change) exchangeAccount(stay stay, account *toss.RefundAccount) ([]byte, error) {
	if account != nil {
		return c.sealAccount(account)
	}
	for _, r := range stay.confirmed() {
		if r.Method == booking.VirtualAccount {
			return nil, ErrAccountRequired
		}
	}
	return nil, nil
}

// refundReplaced starts the full refund of the stay that a confirmed exchange replaces, unless it has ended already, and closes
// the account of one whose deposit the bank has taken back. If the refund is declined, rule.Fail keeps the stay ended. The
// exchange is paid, so neither a refund in progress nor a missing account of the old stay may prevent its confirmation.
func (c *change) refundReplaced() error {
	if c.r().Replaces == 0 {
		return nil
	}
	old, err := postgres.LockReservation(c.ctx, c.tx, c.r().Replaces)
	if err != nil {
		return err
	}
	sealed, err := postgres.TakeReplacedAccount(c.ctx, c.tx, c.r().ID)
	if err != nil || old.State != booking.Done && old.State != booking.WaitingForDeposit {
		return err
	}
	account, err := c.openAccount(sealed)
	if err != nil {
		return err
	}
	by := rule.ByExchange
	if old.CanCancel(c.now) == nil {
		by = "customer" // the PIN is not disclosed yet, so the freed time needs no quarantine
	}
	if old.State == booking.Done && old.Method == booking.VirtualAccount && account == nil {
		return c.on(old).endWithoutAccount(by)
	}
	intent := cancellation{by: by, reason: "예약 변경", account: account, soon: true, forced: true}
	replaced := c.on(old)
	refunding, err := replaced.cancel(intent)
	if err != nil || !refunding {
		return err
	}
	refund, err := currentRefund(c.ctx, c.tx, old.ID)
	if err != nil {
		return err
	}
	_, err = replaced.noteCancelAccount(refund, intent)
	return err
}
