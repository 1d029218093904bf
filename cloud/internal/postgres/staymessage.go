package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// StayMessage is a kind of message about a stay that is due at a time.
type StayMessage struct {
	Template string
	at       string // the time that it is about, of reservation r
	due      string // the condition that it is due at $2
}

// The messages of a stay (docs/specification.md, Messages). A stay that was booked, or moved, after the time of its reminder
// gets none, because that message contains everything. Its end is not announced if it was set within the ten minutes before: the guest has
// ended the stay, or staff have.
var (
	StayReminder = StayMessage{"stay-reminder", `r.start_at`, `
		r.start_at > $2 and r.start_at <= $2::timestamptz + ` + interval(reminderLead) + ` and r.paid_at <= r.start_at - ` + interval(reminderLead) + `
		and not exists (select from reservation_move v where v.reservation_id = r.id and v.at > r.start_at - ` + interval(reminderLead) + `)`}
	StayPIN = StayMessage{"stay-pin", `r.start_at`, `
		r.start_at <= $2::timestamptz + interval '30 minutes' and ` + stayEnd + ` - ` + unlockLead + ` > $2
		and exists (select from pass p where p.reservation_id = r.id and p.ended_at is null)
		and exists (select from branch b, jsonb_each_text(b.keypads) k (device, kind) where b.id = r.branch_id and k.kind = 'agent'
			and (k.device = any (b.front_doors) or k.device = (select 'room_' || m.no from room m where m.id = r.room_id)))`}
	StayEnding = StayMessage{"stay-ending", stayEnd, `
		` + stayEnd + ` > $2 and ` + stayEnd + ` <= $2::timestamptz + interval '10 minutes'
		and (r.start_at <= $2::timestamptz - interval '10 minutes' or r.paid_at <= r.start_at)
		and not exists (select from reservation_move v where v.reservation_id = r.id and v.at > ` + stayEnd + ` - interval '10 minutes')`}
	StayDoorFailed = StayMessage{"stay-door-failed", `r.start_at`, `
		r.start_at - ` + unlockLead + ` <= $2 and ` + stayEnd + ` - ` + unlockLead + ` > $2 and (
			select d.state in ('FAILED', 'UNKNOWN') and d.detail is distinct from 'claim denied' and d.finished_at < clock_timestamp() - interval '20 seconds'
			   and not ` + enteredAfter + `
			from door_request d where d.reservation_id = r.id and d.created_at > clock_timestamp() - interval '10 minutes'
			order by d.created_at desc limit 1)`}
	StayNotArrived = StayMessage{"stay-not-arrived", `r.start_at`, `
		r.start_at <= $2::timestamptz - interval '15 minutes' and r.start_at > $2::timestamptz - interval '30 minutes'
		and ` + stayEnd + ` - ` + unlockLead + ` > $2 and ` + notArrived + `
		and not exists (select from reservation_move v where v.reservation_id = r.id and v.at > r.start_at)`}
)

// reminderLead is how long before the start of a stay its reminder is due, the earliest message about it.
const reminderLead = time.Hour

// announcedStay is the condition that reservation r is a stay that was booked here and may be near $2: at most reminderLead before it, or in
// progress. The bounds of its occupied time are for the index reservation_upcoming.
var announcedStay = `r.state = 'DONE' and not r.keys_blocked and r.extends is null and r.source <> 'PARTNER'
			  and upper(r.occupied) > $2::timestamptz - ` + maxLength + `
			  and upper(r.occupied) <= $2::timestamptz + ` + interval(reminderLead+booking.MaxLength+booking.MaxMargin)

// StayMessages lists all messages of a stay.
var StayMessages = []StayMessage{StayReminder, StayPIN, StayEnding, StayDoorFailed, StayNotArrived}

// ClaimStayMessages records up to limit messages that are due and were not queued, and returns their reservations, whose rows
// are locked: one that is being cancelled or moved is left to the next sweep. A guest whom no message was ever sent to gets
// none, because an administrator may have registered the stay without notifying the guest.
func ClaimStayMessages(ctx context.Context, tx pgx.Tx, m StayMessage, now time.Time, limit int) ([]booking.Reservation, error) {
	rows, err := tx.Query(ctx, `
		with due as (
			select r.id, `+m.at+` as at from reservation r
			where `+announcedStay+` and `+m.due+` and coalesce(r.mobile, r.email) is not null
			  and exists (select from message g where g.reservation_id = r.id)
			  and not exists (select from stay_message s where s.reservation_id = r.id and s.template = $1 and s.at = `+m.at+`)
			order by r.start_at, r.id limit $3 for share of r skip locked
		)
		insert into stay_message (reservation_id, template, at) select id, $1, at from due on conflict do nothing
		returning reservation_id`, m.Template, now, limit)
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[booking.ReservationID])
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return manyReservations(ctx, tx, `where r.id = any($1) order by r.start_at, r.id`, ids)
}

// MessageKinds are the templates whose messages may be wrong if they are sent late.
type MessageKinds struct {
	OfStay    []string // they carry a key, or the time of a stay
	Replacing []string // after them, the key or the time of an earlier message is wrong
	Awaiting  []string // they are right while the reservation waits for its deposit
	OfRefund  []string // they are right while a refund waits for the guest; a later one of its kind makes an earlier one wrong
	Code      string   // it carries a login code
}

// StillDue reports whether a message may be sent at now:
//
//   - One of StayMessages may not if the stay was cancelled, moved or extended since it was queued, if its time has passed, or if a later one of
//     its kind replaces it. All but the one with the PIN have a link with the key, so a message of kinds.Replacing replaces them, too.
//   - One of kinds.OfStay may not, at a later attempt, after the stay, if the reservation was canceled, or if a message of kinds.Replacing
//     followed, about the stay of an extension, too: its key opens nothing, or its time is wrong.
//   - One of kinds.Awaiting or kinds.OfRefund may not, at a later attempt, once the reservation does not wait for its deposit, or the refund
//     for the guest.
//   - One with a login code may not once the code has expired, by the clock that set the expiry, nor at a later attempt after another code.
//
// At a later attempt, no message about a reservation is sent to a recipient who is not its contact any more.
func StillDue(ctx context.Context, q Querier, m booking.Message, kinds MessageKinds, now time.Time) (due bool, err error) {
	if m.Attempt > 1 && m.Reservation != 0 {
		r, err := Reservation(ctx, q, m.Reservation)
		if err != nil || !addressed(m, r) {
			return false, err
		}
	}
	if i := slices.IndexFunc(StayMessages, func(s StayMessage) bool { return s.Template == m.Template }); i >= 0 {
		return stayMessageDue(ctx, q, m, StayMessages[i], kinds, now)
	}
	switch {
	case m.Template == kinds.Code:
		err = q.QueryRow(ctx, `
			select exists (select from login_code where (login_type, login_id) in (($1, $2), ($3, $4)) and expires_at > $5)
			   and ($6 = 1 or not exists (
			       select from message where id > $7 and template = $8 and (to_mobile, to_email) = ($2, $4)))`,
			booking.LoginMobile, m.Mobile, booking.LoginEmail, m.Email, now, m.Attempt, m.ID, m.Template).Scan(&due)
	case m.Attempt == 1: // it is sent at once: the later message follows it
		due = true
	case slices.Contains(kinds.Awaiting, m.Template):
		err = q.QueryRow(ctx, `select exists (select from reservation where id = $1 and state = 'WAITING_FOR_DEPOSIT')`, m.Reservation).Scan(&due)
	case slices.Contains(kinds.OfRefund, m.Template):
		err = q.QueryRow(ctx, `
			select exists (select from refund f where f.reservation_id = $1 and f.state = 'FAILED' and f.account_by is null)
			   and not exists (select from message n where n.reservation_id = $1 and n.template = $2 and n.id > $3)`,
			m.Reservation, m.Template, m.ID).Scan(&due)
	case slices.Contains(kinds.OfStay, m.Template):
		err = q.QueryRow(ctx, `
			select exists (
				select from reservation r where r.id = $1 and r.state <> 'CANCELED' and `+stayEnd+` > $4
				   and not exists (
				       select from message n where n.reservation_id in (r.id, r.extends) and n.id > $2 and n.created_at <> $5 and n.template = any($3)))`,
			m.Reservation, m.ID, kinds.Replacing, now, m.CreatedAt).Scan(&due) // one transaction may send the same to number and address
	default:
		due = true
	}
	return due, err
}

// addressed reports whether the recipient of a message is the contact of its reservation.
func addressed(m booking.Message, r booking.Reservation) bool {
	return (m.Mobile == "" || booking.NormalizePhone(m.Mobile) == booking.NormalizePhone(r.Mobile)) &&
		(m.Email == "" || booking.NormalizeEmail(m.Email) == booking.NormalizeEmail(r.Email))
}

func stayMessageDue(ctx context.Context, q Querier, m booking.Message, s StayMessage, kinds MessageKinds, now time.Time) (due bool, err error) {
	passed, replacing := stayEnd, append([]string{m.Template}, kinds.Replacing...)
	switch m.Template {
	case StayReminder.Template:
		passed = `r.start_at`
	case StayPIN.Template:
		replacing = replacing[:1]
	}
	err = q.QueryRow(ctx, `
		select exists (
			select from reservation r join stay_message s on s.reservation_id = r.id and s.template = $2 and s.at = `+s.at+`
			where r.id = $1 and r.state = 'DONE' and not r.keys_blocked and `+passed+` > $3)
		and not exists (select from message n where n.reservation_id = $1 and n.template = any($5) and n.id > $4)`,
		m.Reservation, m.Template, now, m.ID, replacing).Scan(&due)
	return due, err
}

// DisclosePIN reports whether the PIN of a reservation is disclosed at now, and records that the guest receives it, so that
// no message of its own follows.
func DisclosePIN(ctx context.Context, tx pgx.Tx, id booking.ReservationID, now time.Time) (disclosed bool, err error) {
	err = tx.QueryRow(ctx, `
		with due as (select r.id, `+StayPIN.at+` as at from reservation r where r.id = $1 and `+StayPIN.due+`),
		recorded as (insert into stay_message (reservation_id, template, at) select id, $3, at from due on conflict do nothing)
		select exists (select from due)`, id, now, StayPIN.Template).Scan(&disclosed)
	if err != nil {
		return false, fmt.Errorf("PIN of reservation %d: %w", id, err)
	}
	return disclosed, nil
}

// repeatStayPIN makes the message with the PIN due again, because the PIN has changed.
func repeatStayPIN(ctx context.Context, tx pgx.Tx, id booking.ReservationID) error {
	_, err := tx.Exec(ctx, `delete from stay_message where reservation_id = $1 and template = $2`, id, StayPIN.Template)
	return err
}
