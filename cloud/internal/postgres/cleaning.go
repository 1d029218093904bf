package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// RoomToClean is a room that was used and not cleaned since. EndedAt is the end of its last stay, or the last entry of guests whose
// stay was cancelled or moved.
type RoomToClean struct {
	Branch  string // code
	RoomNo  int
	Machine string
	EndedAt time.Time
	Next    *time.Time // start of the next reservation; nil: none
}

// cleaningSpan is how long after a stay its room is still listed.
const cleaningSpan = 7 * 24 * time.Hour

// roomUses are the uses of room m that are over at $2: its stays that have ended within $3, of which one of a partner may have begun a
// month before, and the last entry of guests whose stay, begun within $3, was cancelled or moved to another room after they had entered.
const roomUses = `(
	select r.id, ` + stayEnd + ` as until from reservation r
	where r.branch_id = m.branch_id and r.room_id = m.id and r.state = 'DONE' and r.extends is null
	  and r.start_at > $2::timestamptz - $3::interval - interval '31 days'
	  and ` + stayEnd + ` > $2::timestamptz - $3::interval and ` + stayEnd + ` <= $2
	union all
	select gone.id, max(entry.at) from (
		select id from reservation r where branch_id = m.branch_id and state = 'CANCELED' and ` + bought + `
		  and start_at > $2::timestamptz - $3::interval and start_at < $2::timestamptz + interval '1 day'
		union all
		select id from reservation where branch_id = m.branch_id and state = 'DONE' and room_id <> m.id
		  and start_at > $2::timestamptz - $3::interval and start_at < $2::timestamptz + interval '1 day'
		  and id in (select reservation_id from reservation_move where at > $2::timestamptz - $3::interval)
	) gone cross join lateral (
		select d.finished_at as at from door_request d where d.reservation_id = gone.id and d.device = 'room_' || m.no and d.state = 'SUCCESS'
		union all
		select p.at from pass_entry p where p.reservation_id = gone.id and p.device = 'room_' || m.no and p.outcome = 'opened'
	) entry
	where entry.at <= $2 group by gone.id)`

// RoomsToClean returns the rooms of branches that were used since they were cleaned and are between stays, those that are needed
// next first. nil is every branch.
func RoomsToClean(ctx context.Context, q Querier, branches []string, now time.Time) ([]RoomToClean, error) {
	rows, err := q.Query(ctx, `
		select b.code, m.no, m.machine, last.until, next.at
		from branch b join room m on m.branch_id = b.id left join room_cleaning c on c.room_id = m.id
		cross join lateral (select max(until) as until from `+roomUses+` used) last
		left join lateral (
			select min(r.start_at) as at from reservation r
			where r.branch_id = b.id and r.room_id = m.id and r.start_at > $2 and r.state in ('CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE')) next on true
		where ($1::text[] is null or b.code = any($1)) and last.until > coalesce(c.cleaned_at, '-infinity')
		  and not room_has_stay(m.id, $2)
		order by next.at nulls last, last.until, m.id`, branches, now, cleaningSpan)
	if err != nil {
		return nil, fmt.Errorf("rooms to clean: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[RoomToClean])
}

// RoomOccupied reports whether a room has a stay now, or one whose unlock window has begun.
func RoomOccupied(ctx context.Context, q Querier, room booking.RoomID, now time.Time) (occupied bool, err error) {
	err = q.QueryRow(ctx, `select room_has_stay($1, $2)`, room, now).Scan(&occupied)
	return occupied, err
}

// PutCleaned records that a room was cleaned.
func PutCleaned(ctx context.Context, q Querier, room booking.RoomID, now time.Time) error {
	_, err := q.Exec(ctx, `
		insert into room_cleaning (room_id, cleaned_at) values ($1, $2)
		on conflict (room_id) do update set cleaned_at = greatest(room_cleaning.cleaned_at, excluded.cleaned_at)`, room, now)
	return err
}

// CleaningPhoto is what a cleaner photographed after a stay.
type CleaningPhoto struct {
	TakenAt time.Time
	TakenBy string // actor of the audit log
	Data    []byte // JPEG
}

// PutCleaningPhoto stores a photo of a room with the last stay that used it, and reports whether there is such a stay. A later
// photo replaces it.
func PutCleaningPhoto(ctx context.Context, q Querier, room booking.RoomID, p CleaningPhoto) (stored bool, err error) {
	tag, err := q.Exec(ctx, `
		insert into cleaning_photo (reservation_id, taken_at, taken_by, data)
		select used.id, $2, $4, $5 from room m cross join lateral `+roomUses+` used
		where m.id = $1 order by used.until desc limit 1
		on conflict (reservation_id) do update
		set taken_at = excluded.taken_at, taken_by = excluded.taken_by, data = excluded.data`,
		room, p.TakenAt, cleaningSpan, p.TakenBy, p.Data)
	return tag.RowsAffected() > 0, err
}

// CleaningPhotoOf returns the photo that was taken after a stay, or nil.
func CleaningPhotoOf(ctx context.Context, q Querier, id booking.ReservationID) (*CleaningPhoto, error) {
	var p CleaningPhoto
	err := q.QueryRow(ctx, `select taken_at, taken_by, data from cleaning_photo where reservation_id = $1`, id).Scan(&p.TakenAt, &p.TakenBy, &p.Data)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("photo after reservation %d: %w", id, err)
	}
	return &p, nil
}

// CleaningPhotoTTL is how long a photo is kept.
const CleaningPhotoTTL = 30 * 24 * time.Hour

// DeleteCleaningPhotos deletes the photos whose time has passed.
func DeleteCleaningPhotos(ctx context.Context, q Querier, now time.Time) error {
	_, err := q.Exec(ctx, `delete from cleaning_photo where taken_at < $1`, now.Add(-CleaningPhotoTTL))
	return err
}
