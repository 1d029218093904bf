package postgres

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ErrChanged is returned if the row has changed since the caller read it.
var ErrChanged = errors.New("postgres: the row has changed")

// ErrBranchExists is returned if another branch has the code.
var ErrBranchExists = errors.New("postgres: the branch exists")

// AddBranch adds a branch without its rooms. It returns ErrBranchExists.
func AddBranch(ctx context.Context, tx pgx.Tx, b booking.Branch) (id booking.BranchID, err error) {
	if err := LockBranches(ctx, tx); err != nil {
		return 0, err
	}
	var exists bool
	if err := tx.QueryRow(ctx, `select exists (select from branch where code = $1)`, b.Code).Scan(&exists); err != nil {
		return 0, err
	}
	if exists {
		return 0, ErrBranchExists
	}
	var batch BranchBatch
	if err := batch.PutBranch(b, false); err != nil {
		return 0, err
	}
	if err := batch.Run(ctx, tx); err != nil {
		return 0, err
	}
	err = tx.QueryRow(ctx, `select id from branch where code = $1`, b.Code).Scan(&id)
	return id, err
}

// EditBranch stores name, address, phone, horizon, keypads, schedule and refund rules of a branch if its revision is still the given one. It
// returns ErrChanged otherwise.
func EditBranch(ctx context.Context, q Querier, b booking.Branch) error {
	schedule, err := json.Marshal(b.Schedule)
	if err != nil {
		return err
	}
	policy, compensation, err := refundRules(b)
	if err != nil {
		return err
	}
	lat, lon := coordinates(b.Location)
	tag, err := q.Exec(ctx, `
		update branch set name_ko = $3, name_en = $4, address = $5, phone = $6, horizon_days = $7, schedule = $8,
		       refund_policy = $9, compensation = $10, latitude = $11, longitude = $12, keypads = $13
		where id = $1 and revision = $2`,
		b.ID, b.Revision, b.NameKo, b.NameEn, b.Address, b.Phone, int(b.Horizon.Hours()/24), json.RawMessage(schedule), policy, compensation, lat, lon, keypads(b))
	if err == nil && tag.RowsAffected() == 0 {
		return ErrChanged
	}
	return err
}

// EditRoom stores a room of a branch under its number. A new room is disabled, because its door is not verified yet; the
// enabled flag of an existing room does not change, nor does its turnover (SetTurnover).
func EditRoom(ctx context.Context, q Querier, branch booking.BranchID, r booking.Room) error {
	_, err := q.Exec(ctx, `
		insert into room (branch_id, no, machine, grade, min10, min30, min60, lock, turnover_minutes, enabled)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, false)
		on conflict (branch_id, no) do update
		set machine = excluded.machine, grade = excluded.grade, min10 = excluded.min10, min30 = excluded.min30, min60 = excluded.min60,
		    lock = excluded.lock`,
		branch, r.No, r.Machine, string(r.Grade), r.Price.Min10, r.Price.Min30, r.Price.Min60, r.Lock, r.TurnoverMinutes)
	return err
}

// DeleteRoom deletes a disabled room that was never reserved, with its PIN and its places in partners' calendars, of which a
// gateway gives every room one. It returns ErrRoomUsed for any other room.
func DeleteRoom(ctx context.Context, tx pgx.Tx, branch booking.BranchID, no int) error {
	_, err := tx.Exec(ctx, `delete from door_pin where branch_id = $1 and device = 'room_' || $2::integer`, branch, no)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		with deleted as (
			delete from channel_listing l using room r
			where r.branch_id = $1 and r.no = $2 and not r.enabled and l.room_id = r.id
			returning l.id
		)
		update alert set ended_at = clock_timestamp() from deleted d
		where kind = 'discrepancy' and subject = 'calendar:' || d.id and ended_at is null`, branch, no)
	if isForeignKeyViolation(err) { // a partner has sold the room
		return ErrRoomUsed
	}
	if err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `delete from room where branch_id = $1 and no = $2 and not enabled`, branch, no)
	if isForeignKeyViolation(err) || err == nil && tag.RowsAffected() == 0 {
		return ErrRoomUsed
	}
	return err
}

// ErrRoomUsed is returned for a room that cannot be deleted: it is enabled, or reservations refer to it.
var ErrRoomUsed = errors.New("postgres: the room is enabled or was reserved")

// PutPIN stores the sealed PIN of a door.
func PutPIN(ctx context.Context, q Querier, branch booking.BranchID, device string, sealed []byte) error {
	_, err := q.Exec(ctx, `
		with ended as (
			update alert set ended_at = clock_timestamp() from branch b
			where b.id = $1 and alert.branch = b.code and kind = 'pin-exposed' and subject = $2 and ended_at is null
		)
		insert into door_pin (branch_id, device, pin) values ($1, $2, $3)
		on conflict (branch_id, device) do update set pin = excluded.pin, rotated_at = clock_timestamp(), revealed_at = null`,
		branch, device, sealed)
	return err
}

// DoorProof is the evidence for a working door: the agent has reported it, and its PIN is stored.
type DoorProof struct{ Reported, PIN bool }

// DoorProofs returns the proofs of the doors of a branch, by device. Doors without any are missing.
func DoorProofs(ctx context.Context, q Querier, branch booking.BranchID) (map[string]DoorProof, error) {
	rows, err := q.Query(ctx, `
		select device, bool_or(reported), bool_or(pin) from (
			select door ->> 'device' as device, true as reported, false as pin
			from agent_inventory, jsonb_array_elements(coalesce(nullif(inventory -> 'doors', 'null'), '[]')) door where branch_id = $1
			union all
			select device, false, true from door_pin where branch_id = $1
		) known group by device`, branch)
	if err != nil {
		return nil, err
	}
	proofs := map[string]DoorProof{}
	var device string
	var proof DoorProof
	_, err = pgx.ForEachRow(rows, []any{&device, &proof.Reported, &proof.PIN}, func() error {
		proofs[device] = proof
		return nil
	})
	return proofs, err
}

// ListingState is a room that is offered on a partner channel.
type ListingState struct {
	ID         int
	Channel    string
	Partner    string
	ExternalID string
	RoomNo     int
	Feed
	FetchedAt  *string // RFC 3339; nil: never
	FetchError string
	HasExport  bool
	Enabled    bool
}

// ListingsOf returns the listings of a branch.
func ListingsOf(ctx context.Context, q Querier, branch booking.BranchID) ([]ListingState, error) {
	rows, err := q.Query(ctx, `
		select l.id, l.channel, l.partner, l.external_id, m.no, l.feed_sealed, l.feed_url,
		       to_char(l.fetched_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), l.fetch_error, l.export_token is not null, l.enabled
		from channel_listing l join room m on m.id = l.room_id where m.branch_id = $1 order by l.partner, m.no`, branch)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[ListingState])
}

// ErrListingExists is returned if the partner already offers the room.
var ErrListingExists = errors.New("postgres: the partner already offers the room")

// AddListing offers a room on a partner's calendar. feed is the sealed address of the calendar to import, or nil. It returns
// ErrListingExists.
func AddListing(ctx context.Context, q Querier, room booking.RoomID, partner, externalID string, feed []byte) error {
	_, err := q.Exec(ctx, `
		insert into channel_listing (channel, partner, external_id, room_id, feed_sealed) values ('ical', $1, $2, $3, $4)`,
		partner, externalID, room, feed)
	if IsUniqueViolation(err, "channel_listing_partner_external_id_key") {
		return ErrListingExists
	}
	return err
}

// SwitchListing enables or disables a listing of a branch. It returns ErrNoListing.
func SwitchListing(ctx context.Context, q Querier, branch booking.BranchID, id int, enabled bool) error {
	tag, err := q.Exec(ctx, `
		update channel_listing l set enabled = $3 from room m where l.id = $2 and m.id = l.room_id and m.branch_id = $1`, branch, id, enabled)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoListing
	}
	return err
}

// SetExportToken replaces the export link of a listing and returns the number of its room. hash is the SHA-256 of the
// link's token. It returns ErrNoListing.
func SetExportToken(ctx context.Context, q Querier, branch booking.BranchID, id int, hash []byte) (room int, err error) {
	err = q.QueryRow(ctx, `
		update channel_listing l set export_token = $3 from room m
		where l.id = $2 and m.id = l.room_id and m.branch_id = $1 returning m.no`, branch, id, hash).Scan(&room)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNoListing
	}
	return room, err
}
