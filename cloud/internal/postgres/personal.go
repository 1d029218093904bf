package postgres

import (
	"context"
	"encoding/json"
	"time"
)

// Personal data lives in four places: the contact on a reservation, whom a message went to and what it said, the account
// a refund went to, and an inquiry about a franchise. The audit log and the ledger name reservations, never people.

// forgotten are the columns of a reservation that name somebody, without them.
const forgotten = `name = null, mobile = null, email = null, mobile_key = null, email_key = null, reason = null`

// over is the predicate of reservations that nobody needs the contact of any more.
const over = `end_at < $1 and state in ('DONE', 'CANCELED', 'EXPIRED', 'RELEASED', 'CONFLICT')`

// Retention says for how long names and contacts are kept after a reservation's end.
type Retention struct {
	Paid  time.Duration // somebody paid: the law keeps records of contracts and payments for five years
	Other time.Duration // nobody paid; also the texts of all messages, and inquiries about a franchise
}

// Anonymise takes away names and contacts whose time is over, at most limit reservations and messages at a time, and
// returns how many reservations it was. empty are the sealed variables of a message that says nothing.
func Anonymise(ctx context.Context, q Querier, keep Retention, empty []byte, now time.Time, limit int) (int64, error) {
	tag, err := q.Exec(ctx, `
		update reservation set `+forgotten+`, anonymised_at = $1 where id in (
			select id from reservation where anonymised_at is null and `+over+`
			  and end_at < case when paid_at is not null and coalesce(amount, 0) > 0 then $2::timestamptz else $3::timestamptz end
			order by end_at limit $4)`, now, now.Add(-keep.Paid), now.Add(-keep.Other), limit)
	if err != nil {
		return 0, err
	}
	_, err = q.Exec(ctx, `
		update message set to_mobile = '', to_email = '', variables = $2 where id in (
			select id from message where created_at < $1 and (to_mobile <> '' or to_email <> '') and state in ('SENT', 'FAILED')
			order by id limit $3)`, now.Add(-keep.Other), empty, limit)
	if err != nil {
		return 0, err
	}
	_, err = q.Exec(ctx, `
		update refund set account = null where account is not null and state in ('COMPLETED', 'REFUSED') and updated_at < $1`, now.Add(-keep.Other))
	if err != nil {
		return 0, err
	}
	_, err = q.Exec(ctx, `delete from franchise_inquiry where created_at < $1`, now.Add(-keep.Other))
	return tag.RowsAffected(), err
}

// ofPerson is the predicate of reservations of a contact: a normalised phone number or e-mail address.
const ofPerson = `(r.mobile_key = $1 or r.email_key = $1)`

// written is the predicate of rows that hold a contact as somebody wrote it; see booking.NormalizePhone.
func written(mobile, email string) string {
	return `(regexp_replace(regexp_replace(` + mobile + `, '^\s*\+82\D*0?', '0'), '\D', '', 'g') = $1 or lower(trim(` + email + `)) = $1)`
}

// messages are what is told of messages g: not what they said.
const messages = `coalesce(jsonb_agg(jsonb_build_object('at', g.created_at, 'template', g.template, 'channel', g.channel, 'state', g.state) order by g.id), '[]')`

// PersonalData returns all that is kept about a person, as JSON. Keys and codes are not in it.
func PersonalData(ctx context.Context, q Querier, contact string) (data json.RawMessage, err error) {
	err = q.QueryRow(ctx, `
		select jsonb_build_object(
			'reservations', coalesce((select jsonb_agg(jsonb_build_object(
				'id', r.id, 'branch', b.code, 'room', m.no, 'start', r.start_at, 'end', r.end_at, 'state', r.state, 'source', r.source,
				'name', r.name, 'mobileNum', r.mobile, 'email', r.email, 'note', r.reason, 'method', r.method, 'amount', r.amount,
				'orderId', r.order_id, 'createdAt', r.created_at, 'paidAt', r.paid_at, 'canceledAt', r.canceled_at,
				'doors', (select coalesce(jsonb_agg(jsonb_build_object('at', d.created_at, 'device', d.device, 'state', d.state) order by d.created_at), '[]')
				          from door_request d where d.reservation_id = r.id),
				'messages', (select `+messages+`
				             from message g where g.reservation_id = r.id)) order by r.start_at)
				from reservation r join branch b on b.id = r.branch_id join room m on m.id = r.room_id where `+ofPerson+`), '[]'),
			'messages', (select `+messages+`
				from message g where g.reservation_id is null and `+written("g.to_mobile", "g.to_email")+`),
			'inquiries', coalesce((select jsonb_agg(jsonb_build_object(
				'at', i.created_at, 'name', i.name, 'mobileNum', i.mobile, 'email', i.email, 'region', i.region, 'message', i.message) order by i.id)
				from franchise_inquiry i where `+written("i.mobile", "i.email")+`), '[]'))`, contact).Scan(&data)
	return data, err
}

// Erase takes a person's name and contact out of everything that is over, inquiries about a franchise as a whole, and
// returns from how many reservations, and how many there are that are not over and still need them.
func Erase(ctx context.Context, q Querier, contact string, empty []byte, now time.Time) (erased, kept int64, err error) {
	_, err = q.Exec(ctx, `
		update message set to_mobile = '', to_email = '', variables = $3 where state in ('SENT', 'FAILED') and (reservation_id in (
			select r.id from reservation r where `+ofPerson+` and r.end_at < $2) or reservation_id is null and `+written("to_mobile", "to_email")+`)`, contact, now, empty)
	if err != nil {
		return 0, 0, err
	}
	if _, err = q.Exec(ctx, `delete from franchise_inquiry where `+written("mobile", "email"), contact); err != nil {
		return 0, 0, err
	}
	_, err = q.Exec(ctx, `
		update refund set account = null where account is not null and state in ('COMPLETED', 'REFUSED') and reservation_id in (
			select r.id from reservation r where `+ofPerson+` and r.end_at < $2)`, contact, now)
	if err != nil {
		return 0, 0, err
	}
	tag, err := q.Exec(ctx, `update reservation r set `+forgotten+`, anonymised_at = $1 where `+over+` and (r.mobile_key = $2 or r.email_key = $2)`, now, contact)
	if err != nil {
		return 0, 0, err
	}
	err = q.QueryRow(ctx, `select count(*) from reservation r where `+ofPerson, contact).Scan(&kept)
	return tag.RowsAffected(), kept, err
}
