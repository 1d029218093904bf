package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// PersonalTable is a table whose rows hold personal data. Erasing, retention and export read this registry; a test
// requires every column that can hold text to be in it or in the list of columns that hold none.
type PersonalTable struct {
	Name        string
	Reservation string // the id of the reservation of row x; empty if rows are found by contact only
	Contact     string // predicate of rows of the contact $1 that belong to no reservation of this contact; empty if there are none
	Finished    string // predicate of rows that are no longer needed; empty: as long as the reservation
	Delete      bool   // rows found by contact are deleted; otherwise Columns are emptied
	Columns     []PersonalColumn
}

// PersonalColumn is a column with personal data. Sealed ones are not exported.
type PersonalColumn struct {
	Name   string
	Erased string // SQL expression of the value after erasing; only in rows found by contact alone it may contain $1
	Sealed bool
}

// PersonalTables is the registry of personal data. The reservation comes last, because the others are found by it.
var PersonalTables = []PersonalTable{
	{Name: "payment", Reservation: "x.reservation_id", Columns: []PersonalColumn{
		{Name: "account_holder", Erased: "null"}, {Name: "account_number", Erased: "null"}, {Name: "receipt_url", Erased: "null"},
	}},
	{Name: "refund", Reservation: "x.reservation_id", Finished: `state in ('COMPLETED', 'REFUSED')`, Columns: []PersonalColumn{
		{Name: "reason", Erased: "''"}, {Name: "error_message", Erased: "null"}, {Name: "account", Erased: "null", Sealed: true}, {Name: "extension_account", Erased: "null", Sealed: true},
		{Name: "account_summary", Erased: "null"},
		{Name: "settled_outside", Erased: "case when settled_outside is not null then '{}'::jsonb end"}, // that it was by hand remains known
		{Name: "outside_request", Erased: "null"},
	}},
	{Name: "refund_request", Reservation: "x.reservation_id", Columns: []PersonalColumn{{Name: "body_hash", Erased: "''", Sealed: true}}},
	{Name: "cash_receipt", Reservation: "x.reservation_id", Columns: []PersonalColumn{
		{Name: "number", Erased: "null", Sealed: true}, {Name: "masked", Erased: "null"}, {Name: "url", Erased: "null"},
		{Name: "error_message", Erased: "null"}, {Name: "outside", Erased: "null"},
	}},
	{Name: "reconciliation_difference", Reservation: "discrepancy_reservation(x.order_id)", Columns: []PersonalColumn{
		{Name: "resolution", Erased: "null"},
	}},
	{Name: "reservation_move", Reservation: "x.reservation_id", Columns: []PersonalColumn{{Name: "reason", Erased: "null"}}},
	{Name: "message", Reservation: "x.reservation_id", Contact: "reservation_id is null and (" + written("to_mobile", "to_email") + " or " + ofInquiry + ")", Finished: notOfOthers,
		Columns: []PersonalColumn{
			{Name: "to_mobile", Erased: "''"}, {Name: "to_email", Erased: "''"}, {Name: "variables", Erased: "$2", Sealed: true},
		}},
	{Name: "message", Contact: toFormer("message"), Columns: []PersonalColumn{
		{Name: "to_mobile", Erased: `case when ` + phoneKey("to_mobile") + ` = $1 then '' else to_mobile end`},
		{Name: "to_email", Erased: `case when lower(trim(to_email)) = $1 then '' else to_email end`},
		{Name: "variables", Erased: "$2", Sealed: true},
	}},
	{Name: "partner_booking", Reservation: "x.reservation_id", Contact: reportedFormer, Columns: []PersonalColumn{{Name: "mobile", Erased: "null"}}},
	{Name: "access_key", Reservation: "x.reservation_id", Columns: []PersonalColumn{{Name: "label", Erased: "null"}}},
	{Name: "franchise_inquiry", Contact: written("mobile", "email"), Delete: true, Columns: []PersonalColumn{
		{Name: "name"}, {Name: "mobile"}, {Name: "email"}, {Name: "region"}, {Name: "message"},
	}},
	{Name: "guest_note", Contact: "mobile_key = $1", Delete: true, Columns: []PersonalColumn{{Name: "mobile_key"}, {Name: "text"}}},
	{Name: "guest_block", Contact: "mobile_key = $1", Delete: true, Columns: []PersonalColumn{{Name: "mobile_key"}, {Name: "reason"}}},
	{Name: "handover", Contact: mentioned, Delete: true,
		Columns: []PersonalColumn{{Name: "text"}}},
	{Name: "login_code", Contact: "login_id = $1", Delete: true, Columns: []PersonalColumn{{Name: "login_id"}}},
	{Name: "session", Contact: "data ->> 'loginId' = $1", Delete: true, Columns: []PersonalColumn{{Name: "data", Sealed: true}}},
	{Name: "compensation", Reservation: "x.reservation_id", Columns: []PersonalColumn{{Name: "mobile_key", Erased: "null"}}},
	{Name: "reservation", Reservation: "x.id", Columns: []PersonalColumn{
		{Name: "name", Erased: "null"}, {Name: "mobile", Erased: "null"}, {Name: "email", Erased: "null"},
		{Name: "mobile_key", Erased: "null"}, {Name: "email_key", Erased: "null"}, {Name: "reason", Erased: "null"}, {Name: "client", Erased: "null"},
		{Name: "replaced_account", Erased: "null", Sealed: true},
	}},
}

// ofPerson is the predicate of reservations r with the contact $1, a normalised phone number or e-mail address.
const ofPerson = `(r.mobile_key = $1 or r.email_key = $1)`

// toFormer is the predicate of messages, a table or its alias, that were sent to the contact $1 about a reservation whose contact was
// corrected afterwards. Apart from them, the reservation belongs to the person with the corrected contact.
func toFormer(messages string) string {
	return `(` + messages + `.reservation_id is not null and ` + written(messages+".to_mobile", messages+".to_email") + `
		and not exists (select from reservation r where r.id = ` + messages + `.reservation_id and ` + ofPerson + `))`
}

// reportedFormer is the predicate of partner bookings with the number $1, which staff have corrected in the reservation.
var reportedFormer = phoneKey("mobile") + ` = $1 and not exists (select from reservation r where r.id = partner_booking.reservation_id and ` + ofPerson + `)`

// mentioned is the predicate of notes whose text contains the contact $1, a phone number in any notation: with its leading zero, or
// with the country code instead. ("+82 (0)10" has both.)
var mentioned = `(position($1 in ` + digitsOf("text") + `) > 0 or $1 like '0%' and position('82' || substr($1, 2) in ` + digitsOf("text") + `) > 0
	or $1 like '010%' and position(substr($1, 2) in ` + digitsOf("text") + `) > 0 or position($1 in lower(text)) > 0)`

// notOfOthers is the predicate of messages that an erasure empties. One that is still to be sent has no recipient then, and is given up;
// one that is being sent leaves no trace. One that forwards an inquiry may be that of another person, so it is sent first.
const notOfOthers = `(template <> 'franchise-inquiry' or state in ('SENT', 'FAILED'))`

// ofInquiry is the predicate of messages that may forward an inquiry of the contact $1: their variables are sealed, so those
// of other inquiries, which are kept in franchise_inquiry, match as well.
var ofInquiry = `template = 'franchise-inquiry' and exists (select from franchise_inquiry i where ` + written("i.mobile", "i.email") + `)`

// written is the predicate of rows with the contact $1 in the notation of the user.
func written(mobile, email string) string {
	return `(` + phoneKey(mobile) + ` = $1 or lower(trim(` + email + `)) = $1)`
}

// ascii is [booking.FoldPhone] for the characters that count in a phone number.
func ascii(column string) string {
	return `translate(` + column + `, '０１２３４５６７８９＋', '0123456789+')`
}

func digitsOf(column string) string {
	return `regexp_replace(` + ascii(column) + `, '[^0-9]', '', 'g')`
}

// phoneKey is [booking.NormalizePhone] of a column.
func phoneKey(column string) string {
	return `regexp_replace(` + digitsOf(column) + `,
		case when ` + ascii(column) + ` ~ '^[^0-9]*[+]' then '^(?:00)?820*' else '^00820*|^820*(?=[1-9][0-9]{7,10}$)' end || '|^(?=10[0-9]{8}$)', '0')`
}

// emptied is the SET clause that empties the columns. A column emptied by $2 is compared with it, so that a repetition
// changes nothing.
func (t PersonalTable) emptied() (set, filled string) {
	var sets, filter []string
	for _, c := range t.Columns {
		sets = append(sets, c.Name+" = "+c.Erased)
		filter = append(filter, fmt.Sprintf("%s is distinct from %s", c.Name, c.Erased))
	}
	return strings.Join(sets, ", "), "(" + strings.Join(filter, " or ") + ")"
}

func (t PersonalTable) finished() string {
	if t.Finished == "" {
		return "true"
	}
	return t.Finished
}

// over is the predicate of reservations r whose contact is no longer needed at $1. A cancelled stay needs none, even if
// it would begin later, unless its refund is open. The time of a conflict is needed until it has passed.
const over = `(r.state in ('CANCELED', 'EXPIRED', 'RELEASED') or r.state in ('DONE', 'CONFLICT') and ` + stayEnd + ` < $1)
	and not exists (select from refund f where f.reservation_id = r.id and f.state not in ('COMPLETED', 'REFUSED'))`

// paid is 1 for a reservation r that was paid, otherwise 0, as a column of the index reservation_named. The planner would not find a
// negated predicate in an index.
const paid = `(case when r.paid_at is not null and coalesce(r.amount, 0) > 0 then 1 else 0 end)`

// captured is the predicate of reservations r with a payment. A payment that the provider captured after its order had ended leaves
// paid_at empty and returns to the guest, but the books have it.
const captured = `exists (select from money_entry e where e.reservation_id = r.id and e.kind = 'paid')`

// Retention defines for how long names and contacts are kept after a reservation's end.
type Retention struct {
	Paid  time.Duration // paid reservations: the law requires records of contracts and payments for five years
	Other time.Duration // other reservations; also refund accounts, messages and franchise inquiries
}

// unknown is the predicate of notes and blocks g of a guest without a reservation.
const unknown = `not exists (select from reservation r where r.mobile_key = g.mobile_key and ` + bought + `)`

// Anonymise removes personal data whose retention has ended, of at most limit reservations and messages per call, and
// returns the number of reservations. empty is the sealed value of a message without variables.
func Anonymise(ctx context.Context, q Querier, keep Retention, empty []byte, now time.Time, limit int) (int64, error) {
	var ids []int64
	err := q.QueryRow(ctx, `
		select coalesce(array_agg(id), '{}') from (
			(select r.id from reservation r where r.anonymised_at is null and `+paid+` = 1 and r.end_at < $2 and `+over+` order by r.end_at limit $4)
			union all
			(select r.id from reservation r where r.anonymised_at is null and `+paid+` = 0 and r.end_at < $3 and `+over+` and (r.end_at < $2 or not `+captured+`) order by r.end_at limit $4)
			limit $4) r`, now, now.Add(-keep.Paid), now.Add(-keep.Other), limit).Scan(&ids)
	if err != nil {
		return 0, fmt.Errorf("find reservations to anonymise: %w", err)
	}
	n, err := eraseReservations(ctx, q, ids, empty, now)
	if err != nil {
		return 0, err
	}
	before := now.Add(-keep.Other)
	for _, step := range []struct {
		statement string
		args      []any
	}{
		{`update message set to_mobile = '', to_email = '', variables = $2 where id in (
			select id from message where created_at < $1 and (to_mobile <> '' or to_email <> '') and state in ('SENT', 'FAILED')
			order by created_at limit $3)`, []any{before, empty, limit}},
		{`update refund set account = null where account is not null and state in ('COMPLETED', 'REFUSED') and updated_at < $1`, []any{before}},
		{`delete from franchise_inquiry where created_at < $1`, []any{before}},
		{`delete from handover where created_at < $1`, []any{before}},
		{`delete from guest_note g where created_at < $1 and ` + unknown, []any{before}},
		{`delete from guest_block g where created_at < $1 and ` + unknown, []any{before}},
	} {
		if _, err := q.Exec(ctx, step.statement, step.args...); err != nil {
			return 0, fmt.Errorf("anonymise: %w", err)
		}
	}
	return n, nil
}

// eraseReservations empties the personal columns of reservations and of the rows that belong to them.
func eraseReservations(ctx context.Context, q Querier, ids []int64, empty []byte, now time.Time) (n int64, err error) {
	if len(ids) == 0 {
		return 0, nil
	}
	for _, t := range PersonalTables {
		if t.Reservation == "" {
			continue
		}
		set, filled := t.emptied()
		statement := `update ` + t.Name + ` x set ` + set + ` where ` + t.Reservation + ` = any($1) and ` + t.finished() + ` and ` + filled
		args := []any{ids}
		if strings.Contains(statement, "$2") {
			args = append(args, empty)
		}
		if _, err := q.Exec(ctx, statement, args...); err != nil {
			return 0, fmt.Errorf("erase %s: %w", t.Name, err)
		}
	}
	tag, err := q.Exec(ctx, `update reservation set anonymised_at = $2 where id = any($1)`, ids, now)
	if err != nil {
		return 0, fmt.Errorf("mark anonymised reservations: %w", err)
	}
	return tag.RowsAffected(), nil
}

// Erase removes a guest's data from everything that is no longer needed. It returns the number of erased reservations, and
// of those that still need the contact. empty is the sealed value of a message without variables.
func Erase(ctx context.Context, q Querier, contact string, empty []byte, now time.Time) (erased, kept int64, err error) {
	var ids []int64
	err = q.QueryRow(ctx, `select coalesce(array_agg(r.id), '{}') from reservation r where `+over+` and (r.mobile_key = $2 or r.email_key = $2)`, now, contact).Scan(&ids)
	if err != nil {
		return 0, 0, fmt.Errorf("find reservations to erase: %w", err)
	}
	for _, t := range PersonalTables {
		if t.Contact == "" {
			continue
		}
		set, filled := t.emptied()
		statement, args := `update `+t.Name+` set `+set+` where `+t.Contact+` and `+t.finished()+` and `+filled, []any{contact}
		if t.Delete {
			statement = `delete from ` + t.Name + ` where ` + t.Contact
		}
		if strings.Contains(statement, "$2") {
			args = append(args, empty)
		}
		if _, err := q.Exec(ctx, statement, args...); err != nil {
			return 0, 0, fmt.Errorf("erase %s by contact: %w", t.Name, err)
		}
	}
	if erased, err = eraseReservations(ctx, q, ids, empty, now); err != nil {
		return 0, 0, err
	}
	// Why a quarantine of the guest's time was released. Only an erasure scans for it; Anonymise finds it by its own end.
	if _, err := q.Exec(ctx, `update reservation set reason = null where quarantine_of = any($1) and state <> 'HOLD' and reason is not null`, ids); err != nil {
		return 0, 0, fmt.Errorf("erase reasons of quarantines: %w", err)
	}
	// The kept answers of the last day may name the guest, but they have no reference to the guest. Their requests are still not repeated.
	if _, err := q.Exec(ctx, `update idempotent_request set answer = null where answer is not null`); err != nil {
		return 0, 0, fmt.Errorf("erase kept answers: %w", err)
	}
	if err := q.QueryRow(ctx, `select count(*) from reservation r where `+ofPerson, contact).Scan(&kept); err != nil {
		return 0, 0, fmt.Errorf("count reservations that still need the contact: %w", err)
	}
	return erased, kept, nil
}

// messageSummary lists messages g without their variables.
const messageSummary = `coalesce(jsonb_agg(jsonb_build_object('at', g.created_at, 'template', g.template, 'channel', g.channel, 'state', g.state) order by g.id), '[]')`

// PersonalData returns all stored data about a guest as JSON, without keys and codes.
func PersonalData(ctx context.Context, q Querier, contact string) (data json.RawMessage, err error) {
	err = q.QueryRow(ctx, `
		select jsonb_build_object(
			'reservations', coalesce((select jsonb_agg(jsonb_build_object(
				'id', r.id, 'branch', b.code, 'room', m.no, 'start', r.start_at, 'end', r.end_at, 'state', r.state, 'source', r.source,
				'name', r.name, 'mobileNum', r.mobile, 'email', r.email, 'note', r.reason, 'method', r.method, 'amount', r.amount,
				'orderId', r.order_id, 'createdAt', r.created_at, 'paidAt', r.paid_at, 'canceledAt', r.canceled_at,
				'doors', (select coalesce(jsonb_agg(jsonb_build_object('at', d.created_at, 'device', d.device, 'state', d.state) order by d.created_at), '[]')
				          from door_request d where d.reservation_id = r.id),
				'messages', (select `+messageSummary+` from message g where g.reservation_id = r.id),
				'records', (`+exported(`%[2]s = r.id`, func(t PersonalTable) bool { return t.Reservation != "" && t.Name != "reservation" })+`)) order by r.start_at)
				from reservation r join branch b on b.id = r.branch_id join room m on m.id = r.room_id where `+ofPerson+`), '[]'),
			'messages', (select `+messageSummary+`
				from message g where g.reservation_id is null and `+written("g.to_mobile", "g.to_email")+` or `+toFormer("g")+`),
			'handovers', coalesce((select jsonb_agg(jsonb_build_object('at', created_at, 'text', text) order by id) from handover
				where `+mentioned+`), '[]'),
			'notes', coalesce((select jsonb_agg(jsonb_build_object('at', n.created_at, 'text', n.text) order by n.id) from guest_note n where n.mobile_key = $1), '[]'),
			'block', (select jsonb_build_object('at', g.created_at, 'reason', g.reason) from guest_block g where g.mobile_key = $1),
			'inquiries', coalesce((select jsonb_agg(jsonb_build_object(
				'at', i.created_at, 'name', i.name, 'mobileNum', i.mobile, 'email', i.email, 'region', i.region, 'message', i.message) order by i.id)
				from franchise_inquiry i where `+written("i.mobile", "i.email")+`), '[]'))`, contact).Scan(&data)
	if err != nil {
		return nil, fmt.Errorf("export personal data: %w", err)
	}
	return data, nil
}

// exported selects an object with the personal columns of each table, by table, for rows x that match a condition.
func exported(condition string, include func(PersonalTable) bool) string {
	var tables []string
	for _, t := range PersonalTables {
		if !include(t) {
			continue
		}
		var columns []string
		for _, c := range t.Columns {
			if !c.Sealed {
				columns = append(columns, fmt.Sprintf("'%s', x.%[1]s", c.Name))
			}
		}
		tables = append(tables, fmt.Sprintf(`'%[1]s', (select coalesce(jsonb_agg(jsonb_build_object(%[3]s)), '[]') from %[1]s x where `+condition+`)`,
			t.Name, t.Reservation, strings.Join(columns, ", ")))
	}
	return `select jsonb_build_object(` + strings.Join(tables, ", ") + `)`
}
