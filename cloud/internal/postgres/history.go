package postgres

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// HistoryEntry is one event in the history of a reservation.
type HistoryEntry struct {
	At     time.Time
	Kind   string // created, paid, canceled, money, message, door, move, refund, deed
	By     string // actor; empty if there is none
	Detail json.RawMessage
}

// HistoryOf returns the history of a reservation, oldest event first, at most 500 events. It contains no keys, PINs or texts
// of messages.
func HistoryOf(ctx context.Context, q Querier, id booking.ReservationID) ([]HistoryEntry, error) {
	rows, err := q.Query(ctx, `
		select at, kind, by, detail from (
			select created_at as at, 'created' as kind, coalesce(created_by, '') as by,
			       jsonb_build_object('source', source) as detail, 0 as rank
			from reservation where id = $1
			union all
			select greatest(paid_at, created_at), 'paid', '', jsonb_build_object('method', method, 'amount', amount), 2
			from reservation where id = $1 and paid_at is not null
			union all
			select canceled_at, 'canceled', '', '{}', 9 from reservation where id = $1 and canceled_at is not null
			union all
			select at, 'money', '', jsonb_build_object('what', kind, 'amount', amount, 'code', code), 1
			from ledger where reservation_id = $1
			union all
			select coalesce(sent_at, created_at), 'message', '',
			       jsonb_build_object('id', id, 'template', template, 'state', state, 'channel', channel, 'error', error), 3
			from message where reservation_id = $1
			union all
			select created_at, 'door', case when requested_by like 'admin:%' then requested_by else '' end,
			       jsonb_build_object('device', device, 'state', state, 'detail', detail, 'source', 'remote',
			           'latencyMs', round(extract(epoch from finished_at - created_at) * 1000),
			           'companion', nullif(`+companionLabel+`, '')), 4
			from door_request d where reservation_id = $1
			union all
			select at, 'door', '', jsonb_build_object('device', device, 'state', outcome, 'detail', reason, 'source', source), 4
			from pass_entry where reservation_id = $1
			union all
			select v.at, 'move', v.moved_by, jsonb_build_object('reason', v.reason,
			       'fromRoom', f.no, 'fromStart', v.from_start, 'fromEnd', v.from_end,
			       'toRoom', t.no, 'toStart', v.to_start, 'toEnd', v.to_end), 5
			from reservation_move v join room f on f.id = v.from_room join room t on t.id = v.to_room
			where v.reservation_id = $1
			union all
			select updated_at, 'refund', requested_by,
			       jsonb_build_object('state', state, 'amount', amount, 'code', error_code, 'message', error_message,
			           'reason', nullif(reason, '')), 6
			from refund where reservation_id = $1
			union all
			select at, 'deed', actor, jsonb_build_object('action', action,
			       'reason', case action when 'reservation.cancel' then detail ->> 'reason' end), 7
			from audit where target = $1::bigint::text and action like 'reservation.%' and action <> 'reservation.move'
		) entry order by at, rank limit 500`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[HistoryEntry])
}

// likePattern escapes the wildcards of LIKE.
var likePattern = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// SearchReservations finds the latest reservations of branches by a part of a name, a part of a phone number (at
// least four digits), or a whole order id, id or e-mail address. Of a partner's stay that is stored in parts, it finds the first, which has
// the key.
func SearchReservations(ctx context.Context, q Querier, branches []string, text string, limit int) ([]booking.Reservation, error) {
	return manyReservations(ctx, q, `
		join branch b on b.id = r.branch_id
		where ($1::text[] is null or b.code = any($1)) and r.state not in ('EXPIRED', 'RELEASED') and (r.extends is null or r.source <> 'PARTNER')
		  and (r.name ilike '%' || $5 || '%' or r.order_id = $2 or r.email_key = lower($2)
		       or length($3) >= 4 and r.mobile_key like '%' || $3 || '%' or $3 = $2 and r.id::text = $3)
		order by r.start_at desc limit $4`, branches, text, booking.NormalizePhone(text), limit, likePattern.Replace(text))
}

// RoomName names a room of a branch.
type RoomName struct {
	Branch  string
	No      int
	Machine string
}

// SearchRooms finds rooms of branches whose branch, number and machine contain every word of a text.
func SearchRooms(ctx context.Context, q Querier, branches []string, text string, limit int) ([]RoomName, error) {
	rows, err := q.Query(ctx, `
		select b.code, r.no, r.machine from room r join branch b on b.id = r.branch_id
		where ($1::text[] is null or b.code = any($1))
		  and not exists (select from unnest($2::text[]) word
		                  where concat_ws(' ', b.code, b.name_ko, b.name_en, r.no || '번', 'room' || r.no, '룸', r.machine) not ilike '%' || word || '%')
		order by b.code, r.no limit $3`, branches, strings.Fields(likePattern.Replace(text)), limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[RoomName])
}

// NoteView appends an entry about a view of personal data, unless the same administrator viewed the same target after a
// moment.
func NoteView(ctx context.Context, q Querier, e audit.Entry, after time.Time) error {
	var seen bool
	err := q.QueryRow(ctx, `select exists (select from audit where target = $1 and actor = $2 and action = $3 and at > $4)`,
		e.Target, e.Actor, e.Action, after).Scan(&seen)
	if err != nil || seen {
		return err
	}
	return AppendAudit(ctx, q, e)
}
