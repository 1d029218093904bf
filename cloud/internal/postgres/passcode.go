package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// CodeKeyPurpose is the purpose with which code keys are sealed.
const CodeKeyPurpose = "pass-code"

// PassCode is a one-time code that was given. Its digits follow from Key, see protocol.Code.
type PassCode struct {
	Branch string // code
	Device string // front, room_<n>
	Step   uint64
	I      int
	Key    []byte // sealed for CodeKeyPurpose
}

// ErrNoCode is returned when no code can be given: see the function pick_pass_code (migration 00086).
var ErrNoCode = errors.New("postgres: no code can be given")

const selectCode = `
	select b.code, c.device, c.step, c.i, k.code_key
	from pass_code c join pass_agent k on k.username = c.username and k.code_epoch = c.code_epoch join branch b on b.id = c.branch_id `

func oneCode(ctx context.Context, q Querier, where string, args ...any) (c PassCode, err error) {
	err = q.QueryRow(ctx, selectCode+where, args...).Scan(&c.Branch, &c.Device, &c.Step, &c.I, &c.Key)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, ErrNoCode
	}
	return c, err
}

// GiveCode gives a code for a device to a reservation whose key opens it at now, or returns ErrNoCode. The caller has
// checked the key.
func GiveCode(ctx context.Context, tx pgx.Tx, branch booking.BranchID, device string, id booking.ReservationID, now time.Time) (PassCode, error) {
	var i *int
	if err := tx.QueryRow(ctx, `select pick_pass_code($1, $2, $3, null, $4)`, branch, device, id, now).Scan(&i); err != nil {
		return PassCode{}, err
	}
	if i == nil {
		return PassCode{}, ErrNoCode
	}
	return oneCode(ctx, tx, `
		where c.branch_id = $1 and c.device = $2 and c.reservation_id = $3 and c.i = $4 and c.step = floor(extract(epoch from $5::timestamptz) / 60)`,
		branch, device, id, *i, now)
}

// RevealCode returns the code that was given when a request failed, or ErrNoCode: there is none, actor did not make the
// request, it is no longer accepted, or the customer has lost the right to it. If the limit of codes left none for this
// request, it is the latest one of the reservation for the same doors.
func RevealCode(ctx context.Context, q Querier, id uuid.UUID, actor string, now time.Time) (PassCode, error) {
	return oneCode(ctx, q, `
		join door_request d on d.id = $1 and d.requested_by = $2 and d.created_at > clock_timestamp() - $5::interval
		 and (c.request_id = d.id or c.reservation_id = d.reservation_id and c.device = d.device)
		where c.step + 2 > extract(epoch from $3::timestamptz) / 60 and not `+staticKeypad("d.device")+`
		  and coalesce(b.keypads ->> d.device, '') <> 'none'
		  and (d.reservation_id is null or exists (
			select from `+keyed+`
			where r.id = d.reservation_id and `+holdsNow+` and r.start_at <= $4 and $3 < `+stayEnd+`))
		order by coalesce(c.request_id = d.id, false) desc, c.step desc, c.i desc limit 1`,
		id, actor, now, now.Add(booking.UnlockLead), revealLimit)
}

// staticKeypad is the condition that the keypad of a device in branch b has a static PIN: no PIN is shown at a keypad that
// takes codes.
func staticKeypad(device string) string {
	return `case ` + device + ` when 'front' then not exists (select from unnest(b.front_doors) f where b.keypads ->> f = 'agent')
		and exists (select from unnest(b.front_doors) f where coalesce(b.keypads ->> f, 'standalone') = 'standalone')
		else coalesce(b.keypads ->> ` + device + `, 'standalone') = 'standalone' end`
}
