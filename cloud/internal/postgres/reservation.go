package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ErrNoReservation is returned if no reservation matches.
var ErrNoReservation = booking.ErrNoReservation

// liveStates is the predicate of the exclusion constraint and of the partial indexes.
const liveStates = `state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')`

const selectReservation = `
	select r.id, r.branch_id, r.room_id, m.no, r.state, r.source, r.start_at, r.end_at, coalesce(r.extends, 0), coalesce(r.replaces, 0), r.stay_end, r.expires_at,
	       r.order_id, r.amount, r.method, r.name, r.mobile, r.email, r.language, r.reason, r.created_by,
	       case when r.state = 'DONE' and not r.keys_blocked then k.sealed end, r.doorlock_key, r.keys_blocked, r.blocked_until,
	       r.paid_at, r.canceled_at, r.created_at, r.version, coalesce(r.quarantine_of, 0), coalesce(r.held_price, 0),
	       coalesce(r.legal_entity, '')
	from reservation r join room m on m.id = r.room_id
	left join access_key k on k.reservation_id = r.id and k.kind = 'owner' and k.revoked_at is null `

func scanReservation(row pgx.CollectableRow) (booking.Reservation, error) {
	var (
		r                                                      booking.Reservation
		expires, paid, canceled, blocked, stayEnd              *time.Time
		order, method, name, mobile, email, note, by, language *string
		amount                                                 *int
		sealed                                                 []byte
		key                                                    *uuid.UUID
	)
	err := row.Scan(&r.ID, &r.Branch, &r.Room, &r.RoomNo, &r.State, &r.Source, &r.Start, &r.End, &r.Extends, &r.Replaces, &stayEnd, &expires,
		&order, &amount, &method, &name, &mobile, &email, &language, &note, &by,
		&sealed, &key, &r.KeysBlocked, &blocked, &paid, &canceled, &r.CreatedAt, &r.Version, &r.QuarantineOf, &r.HeldPrice, &r.LegalEntity)
	if err != nil {
		return r, err
	}
	r.ExpiresAt, r.PaidAt, r.CanceledAt, r.StayEnd = value(expires), value(paid), value(canceled), value(stayEnd)
	r.OrderID, r.Name, r.Mobile, r.Email = value(order), value(name), value(mobile), value(email)
	r.Language, r.Note, r.CreatedBy = value(language), value(note), value(by)
	r.Method, r.Amount = booking.Method(value(method)), value(amount)
	r.SealedKey, r.BlockedUntil = string(sealed), value(blocked)
	if key != nil && sealed == nil {
		r.DoorlockKey = key.String()
	}
	return r, nil
}

func value[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}

// null returns nil for a zero value, which is stored as NULL.
func null[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}

func oneReservation(ctx context.Context, q Querier, where string, args ...any) (booking.Reservation, error) {
	rows, err := q.Query(ctx, selectReservation+where, args...)
	if err != nil {
		return booking.Reservation{}, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, scanReservation)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, ErrNoReservation
	}
	return r, err
}

func manyReservations(ctx context.Context, q Querier, where string, args ...any) ([]booking.Reservation, error) {
	rows, err := q.Query(ctx, selectReservation+where, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanReservation)
}

// Reservation returns a reservation, or ErrNoReservation.
func Reservation(ctx context.Context, q Querier, id booking.ReservationID) (booking.Reservation, error) {
	return oneReservation(ctx, q, `where r.id = $1`, id)
}

// Reservations returns those of the reservations that exist.
func Reservations(ctx context.Context, q Querier, ids ...booking.ReservationID) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `where r.id = any($1)`, ids)
}

// LockReservation returns a reservation and locks its row until the transaction ends.
func LockReservation(ctx context.Context, tx pgx.Tx, id booking.ReservationID) (booking.Reservation, error) {
	return lockAnchored(ctx, tx, "id", id)
}

// LockOrder is LockReservation by order id.
func LockOrder(ctx context.Context, tx pgx.Tx, orderID string) (booking.Reservation, error) {
	return lockAnchored(ctx, tx, "order_id", orderID)
}

// ReservationByOrder returns the reservation of an order id, or ErrNoReservation.
func ReservationByOrder(ctx context.Context, q Querier, orderID string) (booking.Reservation, error) {
	return oneReservation(ctx, q, `where r.order_id = $1`, orderID)
}

// ReservationByToken returns the reservation that was created with the hold cookie of this hash, or ErrNoReservation.
func ReservationByToken(ctx context.Context, q Querier, token []byte) (booking.Reservation, error) {
	return oneReservation(ctx, q, `where r.hold_token = $1`, token)
}

// LockToken is ReservationByToken, but also locks the row until the transaction ends.
func LockToken(ctx context.Context, tx pgx.Tx, token []byte) (booking.Reservation, error) {
	return lockAnchored(ctx, tx, "hold_token", token)
}

// NewHold is the input of InsertHold.
type NewHold struct {
	Room booking.RoomID
	booking.Interval
	Source    booking.Source
	Token     []byte // SHA-256 of the cookie
	ExpiresAt time.Time
	By        string // administrator's login id
	Client    string // address of a customer's client; empty: not recorded

	Extends  booking.ReservationID // the root of the stay that the hold extends; 0: none
	Replaces booking.ReservationID // the reservation that the hold is to replace; 0: none

	Price int // won, fixed from now on; 0: not for a customer
}

// HoldStatement is the statement of InsertHold, exported so that a benchmark can run it with pgbench.
const HoldStatement = `
		with target as (
			select id, branch_id from room m where id = $1 and enabled and not exists (
				select from partner_conflict where room_id = $1 and occupied && room_occupied(m.turnover_minutes, $10::bigint is not null, $2, $3))
			for share
		), stale as (
			update reservation set state = 'EXPIRED'
			where room_id = $1 and state = 'HOLD' and expires_at <= $4 and occupied && tstzrange($2, $3::timestamptz + interval '1 hour')
			returning 1
		), cleared as (select count(*) from stale)
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, hold_token, expires_at, created_by,
		                         client, extends, replaces, held_price)
		select target.branch_id, target.id, 'HOLD', $5, $2, $3, tstzrange($2, $3), $6, $7, $8, $9, $10, $11, $12 from target, cleared
		on conflict do nothing
		returning id`

// InsertHold takes a slot in one statement: it first ends expired holds that may be in the way, whose margin is at most an
// hour, then the exclusion constraint decides. A trigger adds the margin of the room to the time. InsertHold returns 0 if the
// room is occupied or disabled, or a partner has sold the time in conflict.
//
// With a plain INSERT, two transactions that wait for each other's uncommitted entries deadlock, which PostgreSQL resolves
// after one second; the speculative insertion of ON CONFLICT DO NOTHING resolves it immediately. FOR SHARE conflicts with the
// lock of a transaction that disables the room, moves a reservation into it or begins a conflict of a partner's booking.
func InsertHold(ctx context.Context, q Querier, h NewHold, now time.Time) (booking.ReservationID, error) {
	var id booking.ReservationID
	err := q.QueryRow(ctx, HoldStatement,
		h.Room, h.Start, h.End, now, h.Source, h.Token, h.ExpiresAt, null(h.By), null(h.Client),
		null(h.Extends), null(h.Replaces), null(h.Price)).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return id, err
}

// Conflict is the reason why a room is not available.
type Conflict struct {
	Disabled  bool // the room is disabled
	Confirmed bool // the other reservation is confirmed or waits for its deposit, not only held
}

// A Place is the room and the time that a reservation needs, its margin aside.
type Place struct {
	Room booking.RoomID
	booking.Interval
	Extension bool // it begins in the margin of the reservation that it follows
}

// needed is the time for which a place occupies its room m; its parameters are those of Place.args.
const needed = `room_occupied(m.turnover_minutes, $4, $2, $3)`

func (p Place) args(except []booking.ReservationID) []any {
	return []any{p.Room, p.Start, p.End, p.Extension, except}
}

// ConflictAt returns the reason after InsertHold or a move has found a place taken.
func ConflictAt(ctx context.Context, q Querier, p Place, except ...booking.ReservationID) (Conflict, error) {
	var o Conflict
	err := q.QueryRow(ctx, `
		select not enabled, exists (
			select from reservation where room_id = $1 and not id = any($5) and occupied && `+needed+`
			  and (state in ('WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING') or `+withheld+`)) or `+soldInConflict+`
		from room m where id = $1`, p.args(except)...).Scan(&o.Disabled, &o.Confirmed)
	return o, err
}

const roomFree = `enabled and not exists (
	select from reservation where room_id = $1 and not id = any($5) and occupied && ` + needed + ` and ` + liveStates + `)`

// RoomFree reports whether the room of a place is enabled and no reservation other than except is in the way, margins
// included. The caller holds the room's lock.
func RoomFree(ctx context.Context, tx pgx.Tx, p Place, except ...booking.ReservationID) (free bool, err error) {
	err = tx.QueryRow(ctx, `select `+roomFree+` from room m where id = $1`, p.args(except)...).Scan(&free)
	return free, err
}

// RoomForSale is RoomFree, and false if a partner has sold a part of the place with a booking in conflict other than except.
func RoomForSale(ctx context.Context, tx pgx.Tx, p Place, except ...booking.ReservationID) (free bool, err error) {
	err = tx.QueryRow(ctx, `select `+roomFree+` and not `+soldInConflict+` from room m where id = $1`, p.args(except)...).Scan(&free)
	return free, err
}

// ExpireHolds ends the expired holds of a room that may be in the way of a place, except one. The caller holds the room's
// lock.
func ExpireHolds(ctx context.Context, tx pgx.Tx, p Place, except booking.ReservationID, now time.Time) error {
	_, err := tx.Exec(ctx, `
		update reservation set state = 'EXPIRED'
		where room_id = $1 and state = 'HOLD' and expires_at <= $4 and id <> $5
		  and occupied && tstzrange($2, $3::timestamptz + interval '1 hour')`,
		p.Room, p.Start, p.End, now, except)
	return err
}

// SetState moves a reservation to another state. It returns false, and changes nothing, if the state was no longer from.
func SetState(ctx context.Context, q Querier, id booking.ReservationID, from, to booking.State) (bool, error) {
	tag, err := q.Exec(ctx, `update reservation set state = $3 where id = $1 and state = $2`, id, from, to)
	return tag.RowsAffected() == 1, err
}

// Confirmation holds the values that confirm a reservation.
type Confirmation struct {
	Method booking.Method
	Key    NewKey // zero for an extension, which the key of its stay covers
	PaidAt time.Time
}

// MarkDone confirms a reservation. Its key opens doors from now on; keys of an earlier confirmation are revoked.
func MarkDone(ctx context.Context, tx pgx.Tx, id booking.ReservationID, c Confirmation) error {
	_, err := tx.Exec(ctx, `
		update reservation set state = 'DONE', method = $2, paid_at = $3, expires_at = null, blocked_key = null, keys_blocked = false,
		       refund_policy = coalesce(refund_policy, (select b.refund_policy from branch b where b.id = reservation.branch_id))
		where id = $1`, id, c.Method, c.PaidAt)
	if err != nil || c.Key.Key == uuid.Nil {
		return err
	}
	return PutOwnerKey(ctx, tx, id, c.Key, KeyReplaced, systemActor)
}

// systemActor creates the keys of confirmed reservations.
const systemActor = "system"

// MarkWaiting makes a reservation wait for a deposit until due. Its keys open nothing, and its confirmation creates others.
func MarkWaiting(ctx context.Context, tx pgx.Tx, id booking.ReservationID, due time.Time) error {
	_, err := tx.Exec(ctx, `
		update reservation set state = 'WAITING_FOR_DEPOSIT', method = $2, doorlock_key = null, blocked_key = null, keys_blocked = false, paid_at = null, expires_at = $3
		where id = $1`, id, booking.VirtualAccount, due)
	return err
}

// MarkCanceling starts a cancellation. Its keys open nothing from now on, before any money moves.
func MarkCanceling(ctx context.Context, tx pgx.Tx, id booking.ReservationID) error {
	_, err := tx.Exec(ctx, `update reservation set state = 'CANCELING', doorlock_key = null, blocked_key = null, keys_blocked = false where id = $1`, id)
	return err
}

// MarkCanceled cancels a reservation and releases its slot.
func MarkCanceled(ctx context.Context, tx pgx.Tx, id booking.ReservationID, now time.Time) error {
	_, err := tx.Exec(ctx, `
		update reservation set state = 'CANCELED', doorlock_key = null, blocked_key = null, keys_blocked = false, canceled_at = $2 where id = $1`, id, now)
	return err
}

// MarkHeld returns a reservation whose confirmation failed to a hold. If extend is set, the hold lasts at least until keep,
// so that the guest can try again, but only once per hold.
func MarkHeld(ctx context.Context, tx pgx.Tx, id booking.ReservationID, extend bool, keep time.Time) error {
	_, err := tx.Exec(ctx, `
		update reservation set state = 'HOLD',
		       expires_at = case when $2 and not hold_extended then greatest(expires_at, $3) else expires_at end,
		       hold_extended = hold_extended or $2
		where id = $1`, id, extend, keep)
	return err
}

// RegisterAdmin turns an administrator's hold into a reservation without payment.
func RegisterAdmin(ctx context.Context, tx pgx.Tx, id booking.ReservationID, c booking.Contact, note string, conf Confirmation) error {
	_, err := tx.Exec(ctx, `
		update reservation set state = 'DONE', name = $2, mobile = $3, email = $4, mobile_key = $5, email_key = $6,
		       language = $7, reason = $8, amount = 0, method = $9, paid_at = $10, expires_at = null
		where id = $1`,
		id, null(c.Name), null(c.Mobile), null(c.Email), null(booking.NormalizePhone(c.Mobile)),
		null(booking.NormalizeEmail(c.Email)), c.Language, null(note), conf.Method, conf.PaidAt)
	if err != nil {
		return err
	}
	return PutOwnerKey(ctx, tx, id, conf.Key, KeyReplaced, systemActor)
}

// SetContact stores the name and contact of a reservation, and of those that have the same contact: its extensions, its unpaid exchanges, and the
// stays that it has replaced while their refunds are open. A stay that an unpaid exchange is to replace keeps its own: its key was sent there.
// The retention applies to them again if they had been erased.
func SetContact(ctx context.Context, tx pgx.Tx, r booking.Reservation) error {
	_, err := tx.Exec(ctx, `
		update reservation r set name = $2, mobile = $3, email = $4, mobile_key = $5, email_key = $6, anonymised_at = null from reservation before
		where before.id = $1 and (r.id = $1 or (r.extends = $1 or r.replaces = $1 and r.`+unpaidExchange+`
		      or r.state in ('CANCELING', 'CANCELED') and r.id = any(array(select f.reservation_id from refund f
		         where f.reservation_id = any(array(`+replacedBy+`)) and f.state in ('REQUESTED', 'PENDING', 'FAILED')))) and (r.mobile_key, r.email_key) is not distinct from (before.mobile_key, before.email_key))`,
		r.ID, null(r.Name), null(r.Mobile), null(r.Email), null(booking.NormalizePhone(r.Mobile)), null(booking.NormalizeEmail(r.Email)))
	return err
}

// Blocking returns the live reservations of a room that have not ended, soonest first. They prevent the room from being
// disabled. Quarantines and withheld time do not.
func Blocking(ctx context.Context, q Querier, room booking.RoomID, now time.Time) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `
		where r.room_id = $1 and r.end_at > $2 and r.`+liveStates+` and (r.state <> 'HOLD' or r.expires_at > $2)
		  and r.quarantine_of is null and not `+withheld+`
		order by r.start_at, r.id`, room, now)
}

// PaidBy returns a customer's payments, newest first, at most limit.
func PaidBy(ctx context.Context, q Querier, loginType booking.LoginType, loginID string, since time.Time, limit int) ([]booking.Reservation, error) {
	column, key := "mobile_key", booking.NormalizePhone(loginID)
	if loginType == booking.LoginEmail {
		column, key = "email_key", booking.NormalizeEmail(loginID)
	}
	return manyReservations(ctx, q, `
		where r.`+column+` = $1 and r.method is not null and r.source <> 'PARTNER' and r.created_at > $2
		order by r.id desc limit $3`, key, since, limit)
}

// HasHistory reports whether a customer has a payment, completed or awaited, under this phone number or address.
func HasHistory(ctx context.Context, q Querier, loginType booking.LoginType, loginID string, since time.Time) (bool, error) {
	list, err := PaidBy(ctx, q, loginType, loginID, since, 1)
	return len(list) > 0, err
}

// ExpireHoldsEverywhere marks expired holds as EXPIRED. No other code depends on it, because expires_at ends a hold.
func ExpireHoldsEverywhere(ctx context.Context, q Querier, before time.Time) error {
	_, err := q.Exec(ctx, `
		update reservation set state = 'EXPIRED' where id in (
		    select id from reservation where state = 'HOLD' and expires_at <= $1 order by expires_at limit 500
		    for update skip locked)`, before)
	return err
}

// clientLock is the first key of the advisory locks that serialize the holds of one client.
const clientLock = 0x79656f6c

// lockClient serializes the holds of one client until the transaction ends.
func lockClient(ctx context.Context, tx pgx.Tx, client string) error {
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1, hashtext($2))`, clientLock, client)
	return err
}

// unpaid is the condition that a customer's reservation occupies a room without a payment.
const unpaid = `source = 'CUSTOMER' and (state in ('CONFIRMING', 'WAITING_FOR_DEPOSIT') or state = 'HOLD' and expires_at > $2)`

// CountClientHolds counts the live unpaid reservations of a client and returns when the first of them expires; now, if none does by
// its time. Until the transaction ends, it blocks other holds of the client.
func CountClientHolds(ctx context.Context, tx pgx.Tx, client string, now time.Time) (n int, until time.Time, err error) {
	if err := lockClient(ctx, tx, client); err != nil {
		return 0, time.Time{}, err
	}
	err = tx.QueryRow(ctx, `select count(*), coalesce(min(expires_at) filter (where expires_at > $2), $2) from reservation where client = $1 and `+unpaid,
		client, now).Scan(&n, &until)
	return n, until, err
}

// CountPhoneHolds is [CountClientHolds] for a phone number and all its reservations except one. Until the transaction ends, it
// blocks other registrations under the number.
func CountPhoneHolds(ctx context.Context, tx pgx.Tx, mobile string, except booking.ReservationID, now time.Time) (n int, until time.Time, err error) {
	if err := lockClient(ctx, tx, mobile); err != nil {
		return 0, time.Time{}, err
	}
	err = tx.QueryRow(ctx, `select count(*), coalesce(min(expires_at) filter (where expires_at > $2), $2) from reservation where mobile_key = $1 and id <> $3 and `+unpaid,
		mobile, now, except).Scan(&n, &until)
	return n, until, err
}

// BlockKeys disables the keys of a confirmed reservation until the provider has been queried again, at least until a time.
func BlockKeys(ctx context.Context, tx pgx.Tx, id booking.ReservationID, until time.Time) error {
	_, err := tx.Exec(ctx, touchedPass+`
		update reservation set keys_blocked = true, blocked_key = doorlock_key, doorlock_key = null, blocked_until = $2
		where id = $1 and state = 'DONE' and not keys_blocked`, id, until)
	return err
}

// UnblockKeys enables blocked keys again.
func UnblockKeys(ctx context.Context, tx pgx.Tx, id booking.ReservationID) error {
	_, err := tx.Exec(ctx, touchedPass+`
		update reservation set keys_blocked = false, doorlock_key = key_text(blocked_key), blocked_key = null
		where id = $1 and state = 'DONE' and keys_blocked`, id)
	return err
}
