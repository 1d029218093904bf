package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// DoorHistoryItem is an unlock request, an attempt at a keypad or an event of a door.
type DoorHistoryItem struct {
	At          time.Time
	Device      string
	Kind        string // the state of a request, pass-<outcome> of an attempt, or the kind of an event
	By          string // admin:…, discord:…; empty for guests and for events
	Reservation *booking.ReservationID
	LatencyMs   *int64 // from the request to its end
	Detail      string
	Companion   string // the label of the companion's key; empty for every other key
	Source      string // remote, pin, code; empty for an event of a door
}

// companionLabel is the label of the companion's key with which door request d was made, or an empty text.
const companionLabel = `coalesce((select label from access_key k where k.hash = d.key_hash), '')`

// DoorHistory returns the latest items of a branch, newest first. It omits the lock events that belong to a request, because
// the request represents them.
func DoorHistory(ctx context.Context, q Querier, branch booking.BranchID, limit int) ([]DoorHistoryItem, error) {
	rows, err := q.Query(ctx, `
		select at, device, kind, by, reservation_id, latency, detail, companion, source from (
			(select created_at as at, device, state as kind, case when requested_by = 'customer' then '' else requested_by end as by,
			        reservation_id, round(extract(epoch from finished_at - created_at) * 1000)::bigint as latency, coalesce(detail, '') as detail,
			        `+companionLabel+` as companion, 'remote' as source
			 from door_request d where branch_id = $1 order by created_at desc limit $2)
			union all
			(select at, device, kind, '', null, null, coalesce(detail ->> 'detail', ''), '', ''
			 from door_event where branch_id = $1 and kind not in ('energized', 'released') order by at desc limit $2)
			union all
			(select at, device, 'pass-' || outcome, '', reservation_id, null, reason, '', source
			 from pass_entry where branch_id = $1 order by at desc limit $2)
		) happening order by at desc limit $2`, branch, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[DoorHistoryItem])
}

// DoorPIN is the PIN of a door's keypad, without its digits.
type DoorPIN struct {
	Branch    string // code
	Device    string // front, room_<n>
	ChangedAt time.Time
	Reveals   int // number of disclosures since then
}

// DoorPINs returns the PINs of a branch, or of all branches if the code is empty.
func DoorPINs(ctx context.Context, q Querier, branch string) ([]DoorPIN, error) {
	rows, err := q.Query(ctx, `
		select b.code, p.device, p.rotated_at, (
			select count(*) from audit a
			where a.branch_id = p.branch_id and a.at >= p.rotated_at and a.action = 'pin.reveal' and a.target = p.device)
		from door_pin p join branch b on b.id = p.branch_id where $1 in ('', b.code) order by b.id, p.device`, branch)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[DoorPIN])
}

// DoorContacts returns whether each door is open, by device, derived from the events of the last day. Doors without such an
// event are not in the map.
func DoorContacts(ctx context.Context, q Querier, branch booking.BranchID, now time.Time) (map[string]bool, error) {
	rows, err := q.Query(ctx, `
		select distinct on (device) device, kind = 'door-opened' from door_event
		where branch_id = $1 and at > $2 and kind in ('door-opened', 'door-closed')
		order by device, at desc, id desc`, branch, now.Add(-24*time.Hour))
	if err != nil {
		return nil, err
	}
	open := map[string]bool{}
	var device string
	var is bool
	_, err = pgx.ForEachRow(rows, []any{&device, &is}, func() error {
		open[device] = is
		return nil
	})
	return open, err
}
