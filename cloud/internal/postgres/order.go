package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
)

// OrderOf returns the record of an order. An order of an earlier release without a record is current.
func OrderOf(ctx context.Context, q Querier, orderID string) (money.Order, error) {
	order := money.Order{ID: orderID}
	var replaced, abandoned, pending *time.Time
	err := q.QueryRow(ctx, `select replaced_at, abandoned_at, pending_at from orders where order_id = $1`, orderID).
		Scan(&replaced, &abandoned, &pending)
	order.ReplacedAt, order.AbandonedAt, order.PendingAt = value(replaced), value(abandoned), value(pending)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return order, err
}

// NewOrder is the payment data of a hold.
type NewOrder struct {
	ID      string
	Contact booking.Contact
	Entity  string // the code of the legal entity that is paid; empty: that of the settings
	Amount  int    // won
}

// RegisterOrder stores the payment data of a hold under a new order id. The caller has locked the row and checked that the
// hold is valid. An existing order is replaced: if its payment was attempted, a charge may still arrive, so the order and
// its payment move to a released row of their own. It returns booking.ErrSellerChanged if the branch has another legal entity by now.
func RegisterOrder(ctx context.Context, tx pgx.Tx, r booking.Reservation, o NewOrder, now time.Time) error {
	if o.Entity != "" {
		err := UseEntity(ctx, tx, o.Entity)
		if errors.Is(err, ErrEntityRetired) {
			err = booking.ErrSellerChanged
		}
		if err != nil {
			return err
		}
	}
	if r.OrderID != "" {
		if err := replaceOrder(ctx, tx, r, now); err != nil {
			return fmt.Errorf("replace order %s: %w", r.OrderID, err)
		}
	}
	c := o.Contact
	_, err := tx.Exec(ctx, `
		update reservation set name = $2, mobile = $3, email = $4, mobile_key = $5, email_key = $6, language = $7,
		       order_id = $8, amount = $9, legal_entity = $12,
		       consent_version = $10, consent_at = case when $10::text is null then null else $11::timestamptz end
		where id = $1`,
		r.ID, null(c.Name), null(c.Mobile), null(c.Email), null(booking.NormalizePhone(c.Mobile)),
		null(booking.NormalizeEmail(c.Email)), c.Language, o.ID, o.Amount, null(c.ConsentVersion), now, null(o.Entity))
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into orders (order_id, purchase_id, reservation_id, amount, created_at) values ($1, $2, $2, $3, $4)`,
		o.ID, r.ID, o.Amount, now)
	return err
}

func replaceOrder(ctx context.Context, tx pgx.Tx, r booking.Reservation, now time.Time) error {
	holder := r.ID
	if _, err := PaymentOf(ctx, tx, r.ID); err == nil {
		if holder, err = splitOrder(ctx, tx, r); err != nil {
			return err
		}
	} else if !errors.Is(err, ErrNoPayment) {
		return err
	}
	_, err := tx.Exec(ctx, `
		insert into orders (order_id, purchase_id, reservation_id, amount, replaced_at) values ($1, $2, $3, $4, $5)
		on conflict (order_id) do update set reservation_id = excluded.reservation_id, replaced_at = excluded.replaced_at`,
		r.OrderID, r.ID, holder, r.Amount, now)
	return err
}

// splitOrder moves the order of a hold, with its payment, to a released row of its own and returns that row's id.
func splitOrder(ctx context.Context, tx pgx.Tx, r booking.Reservation) (id booking.ReservationID, err error) {
	if _, err = tx.Exec(ctx, `update reservation set order_id = null where id = $1`, r.ID); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, expires_at, name, mobile, email,
		                         mobile_key, email_key, language, order_id, amount, legal_entity, extends, replaces)
		select branch_id, room_id, 'RELEASED', source, start_at, end_at, occupied, expires_at, name, mobile, email,
		       mobile_key, email_key, language, $2, amount, legal_entity, extends, replaces
		from reservation where id = $1 returning id`, r.ID, r.OrderID).Scan(&id)
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, `update payment set reservation_id = $2 where reservation_id = $1`, r.ID, id)
	return id, err
}

// AbandonOrder records that the guest left while the outcome of an order was unclear.
func AbandonOrder(ctx context.Context, tx pgx.Tx, r booking.Reservation, now time.Time) error {
	_, err := tx.Exec(ctx, `
		insert into orders (order_id, purchase_id, reservation_id, amount, abandoned_at) values ($1, $2, $2, $3, $4)
		on conflict (order_id) do update set abandoned_at = coalesce(orders.abandoned_at, excluded.abandoned_at)`,
		r.OrderID, r.ID, r.Amount, now)
	return err
}

// OweOutcome records that the guest received the response "pending", so the outcome must be sent as a message.
func OweOutcome(ctx context.Context, tx pgx.Tx, r booking.Reservation, now time.Time) error {
	_, err := tx.Exec(ctx, `
		insert into orders (order_id, purchase_id, reservation_id, amount, pending_at) values ($1, $2, $2, $3, $4)
		on conflict (order_id) do update set pending_at = coalesce(orders.pending_at, excluded.pending_at)`,
		r.OrderID, r.ID, r.Amount, now)
	return err
}

// OutcomeSent records that the message about the outcome is enqueued.
func OutcomeSent(ctx context.Context, tx pgx.Tx, orderID string) error {
	_, err := tx.Exec(ctx, `update orders set pending_at = null where order_id = $1`, orderID)
	return err
}

// CloseAttempt records that a payment's attempt can no longer result in a charge.
func CloseAttempt(ctx context.Context, tx pgx.Tx, id booking.ReservationID, now time.Time) error {
	_, err := tx.Exec(ctx, `update payment set closed_at = coalesce(closed_at, $2) where reservation_id = $1`, id, now)
	return err
}
