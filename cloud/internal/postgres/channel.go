package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Listing is a room offered at a partner channel.
type Listing struct {
	ID         int
	Channel    string // ical, gateway, manual
	Partner    string // the partner's name
	ExternalID string // the partner's id of the room
	Branch     booking.BranchID
	BranchCode string
	Room       booking.RoomID
	RoomNo     int
	Feed
	FeedETag  string
	FeedSince string // Last-Modified of the last calendar read
}

// ErrNoListing is returned if a partner offers no room under an id, or if a calendar's token is unknown.
var ErrNoListing = errors.New("postgres: no such listing")

const selectListing = `
	select l.id, l.channel, l.partner, l.external_id, b.id, b.code, r.id, r.no, l.feed_sealed, l.feed_url, l.feed_etag, l.feed_modified
	from channel_listing l join room r on r.id = l.room_id join branch b on b.id = r.branch_id where l.enabled `

func oneListing(ctx context.Context, q Querier, where string, args ...any) (Listing, error) {
	rows, err := q.Query(ctx, selectListing+where, args...)
	if err != nil {
		return Listing{}, err
	}
	l, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Listing])
	if errors.Is(err, pgx.ErrNoRows) {
		return l, ErrNoListing
	}
	return l, err
}

// ListingOf returns a listing by the partner's id, or ErrNoListing.
func ListingOf(ctx context.Context, q Querier, partner, externalID string) (Listing, error) {
	return oneListing(ctx, q, `and l.partner = $1 and l.external_id = $2`, partner, externalID)
}

// ListingByToken returns the listing whose export token has the given SHA-256, or ErrNoListing.
func ListingByToken(ctx context.Context, q Querier, branch string, room int, token []byte) (Listing, error) {
	return oneListing(ctx, q, `and b.code = $1 and r.no = $2 and l.export_token = $3`, branch, room, token)
}

// maxUnfinished is the number of reads without an end after which a feed is in quarantine.
const maxUnfinished = 3

// Feeds returns the listings whose calendar was last fetched before a time, oldest first. For each it is a random time of up to jitter
// earlier. A feed in quarantine is due only if it was fetched before another, earlier time.
func Feeds(ctx context.Context, q Querier, before time.Time, jitter time.Duration, quarantined time.Time, limit int) ([]Listing, error) {
	rows, err := q.Query(ctx, selectListing+`and (l.feed_sealed is not null or l.feed_url <> '') and (l.fetched_at is null or l.fetched_at <=
			case when l.feed_quarantined_at is null and l.feed_unfinished <= $4 then $1::timestamptz - random() * $5::interval else $2::timestamptz end)
		order by l.fetched_at nulls first limit $3`, before, quarantined, limit, maxUnfinished, jitter)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Listing])
}

// ConflictListings returns the listings with bookings in conflict that have not ended.
func ConflictListings(ctx context.Context, q Querier, now time.Time, limit int) ([]Listing, error) {
	rows, err := q.Query(ctx, selectListing+`and exists (
			select from partner_conflict c join partner_booking p on p.reservation_id = c.reservation_id
			where p.listing_id = l.id and p.status = 'CONFLICT' and p.end_at > $1)
		order by l.id limit $2`, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Listing])
}

// feedAlert opens an alert about the feed of a listing l with the given condition, unless one is open. $1 is the listing,
// $2 the time.
const feedAlert = `
	select alert_open('discrepancy', b.code, 'calendar:' || l.id, $2)
	from %s l join room r on r.id = l.room_id join branch b on b.id = r.branch_id where l.id = $1 and %s`

// BeginFetch records that the reading of a calendar begins. It is stored before the reading, so that a calendar that crashes
// the process is not due again immediately. If the record puts the feed in quarantine, it raises an alert.
func BeginFetch(ctx context.Context, q Querier, listing int, now time.Time) error {
	_, err := q.Exec(ctx, `
		with begun as (update channel_listing set fetched_at = $2, feed_unfinished = feed_unfinished + 1 where id = $1 returning id, room_id, feed_unfinished)`+
		fmt.Sprintf(feedAlert, "begun", fmt.Sprintf("l.feed_unfinished > %d", maxUnfinished)), listing, now)
	return err
}

// Fetch is the outcome of reading a calendar.
type Fetch struct {
	ETag, Since string // stored only if there was no problem
	Problem     string
	Unreliable  string // why the calendar, which was read, may lack bookings; shown to administrators like a problem
	Quarantine  bool   // the calendar must be read less often
}

// unreadLimit is the time for which each reading of a calendar has failed, as an interval of SQL, after which an alert is raised: the
// partner sells the room meanwhile.
const unreadLimit = `interval '1 hour'`

// EndFetch records the outcome of reading a calendar. A feed that is in quarantine, or was not read for unreadLimit, raises an alert,
// which a successful read ends.
func EndFetch(ctx context.Context, q Querier, listing int, f Fetch, now time.Time) error {
	batch := &pgx.Batch{}
	batch.Queue(`
		update channel_listing set fetched_at = $5, fetch_error = $7, feed_unfinished = 0,
		       feed_quarantined_at = case when $6 then coalesce(feed_quarantined_at, $5) end,
		       feed_unread_since = case when $4 <> '' then coalesce(feed_unread_since, $5) end,
		       feed_etag = case when $4 = '' then $2 else feed_etag end, feed_modified = case when $4 = '' then $3 else feed_modified end
		where id = $1`, listing, f.ETag, f.Since, f.Problem, now, f.Quarantine, cmp.Or(f.Problem, f.Unreliable))
	if f.Problem == "" {
		batch.Queue(`update alert set ended_at = $2 where kind = 'discrepancy' and subject = 'calendar:' || $1::integer and ended_at is null`, listing, now)
	} else {
		batch.Queue(fmt.Sprintf(feedAlert, "channel_listing", "(l.feed_quarantined_at is not null or l.feed_unread_since <= $2 - "+unreadLimit+")"), listing, now)
	}
	return q.SendBatch(ctx, batch).Close()
}

// EnsureListings lists every room at a partner under the id branch-room.
func EnsureListings(ctx context.Context, q Querier, channel, partner string) error {
	_, err := q.Exec(ctx, `
		insert into channel_listing (channel, partner, external_id, room_id)
		select $1, $2, b.code || '-' || r.no, r.id from room r join branch b on b.id = r.branch_id
		where not exists (select from channel_listing l where l.partner = $2 and l.room_id = r.id)
		on conflict do nothing`, channel, partner)
	return err
}

// PartnerBooking is the last known version of a booking made at a partner.
type PartnerBooking struct {
	Partner     string
	ExternalID  string
	Listing     int
	Reservation booking.ReservationID // 0 if it never was in the calendar
	Status      string                // CONFIRMED, CONFLICT, CANCELLED
	Seq         int64
	booking.Interval
	Mobile string // of the guest, as the partner reported it
	Missed int    // number of successive calendars without it
}

// ErrNoPartnerBooking is returned if a partner has reported no such booking.
var ErrNoPartnerBooking = errors.New("postgres: no such partner booking")

const selectPartnerBooking = `
	select partner, external_id, listing_id, coalesce(reservation_id, 0), status, seq, start_at, end_at, coalesce(mobile, ''), missed from partner_booking `

func scanPartnerBooking(row pgx.CollectableRow) (b PartnerBooking, err error) {
	err = row.Scan(&b.Partner, &b.ExternalID, &b.Listing, &b.Reservation, &b.Status, &b.Seq, &b.Start, &b.End, &b.Mobile, &b.Missed)
	return b, err
}

// LockPartnerBooking returns a booking and locks its row until the transaction ends, or returns ErrNoPartnerBooking.
func LockPartnerBooking(ctx context.Context, tx pgx.Tx, partner, externalID string) (PartnerBooking, error) {
	// A booking that is not known yet has no row to lock, and its events may be for different rooms.
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtextextended('partner booking ' || $1 || ' ' || $2, 0))`, partner, externalID); err != nil {
		return PartnerBooking{}, err
	}
	rows, err := tx.Query(ctx, selectPartnerBooking+`where partner = $1 and external_id = $2 for update`, partner, externalID)
	if err != nil {
		return PartnerBooking{}, err
	}
	return onePartnerBooking(rows)
}

// PartnerBookingOf returns the booking of a reservation, or ErrNoPartnerBooking.
func PartnerBookingOf(ctx context.Context, q Querier, id booking.ReservationID) (PartnerBooking, error) {
	rows, err := q.Query(ctx, selectPartnerBooking+`where reservation_id = $1`, id)
	if err != nil {
		return PartnerBooking{}, err
	}
	return onePartnerBooking(rows)
}

func onePartnerBooking(rows pgx.Rows) (PartnerBooking, error) {
	b, err := pgx.CollectExactlyOneRow(rows, scanPartnerBooking)
	if errors.Is(err, pgx.ErrNoRows) {
		return b, ErrNoPartnerBooking
	}
	return b, err
}

// ConfirmConflict makes a partner's booking in conflict a confirmed reservation with a key. It occupies nothing until MoveStay moves it.
func ConfirmConflict(ctx context.Context, tx pgx.Tx, id booking.ReservationID, key NewKey) error {
	if _, err := tx.Exec(ctx, `update reservation set state = 'DONE', occupied = 'empty' where id = $1 and state = 'CONFLICT'`, id); err != nil {
		return err
	}
	return PutOwnerKey(ctx, tx, id, key, KeyReplaced, systemActor)
}

// PartnerRoom returns the room of the stay of a booking, or 0 if there is none.
func PartnerRoom(ctx context.Context, q Querier, partner, externalID string) (room booking.RoomID, err error) {
	err = q.QueryRow(ctx, `
		select r.room_id from partner_booking b join reservation r on r.id = b.reservation_id where b.partner = $1 and b.external_id = $2`,
		partner, externalID).Scan(&room)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return room, err
}

// PartnerBookings returns the live bookings of a listing that have not ended.
func PartnerBookings(ctx context.Context, q Querier, listing int, now time.Time) ([]PartnerBooking, error) {
	rows, err := q.Query(ctx, selectPartnerBooking+`where listing_id = $1 and status <> 'CANCELLED' and end_at > $2`, listing, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanPartnerBooking)
}

// SavePartnerBooking stores the latest version of a booking and its outcome, without the phone number of a guest who was erased.
func SavePartnerBooking(ctx context.Context, tx pgx.Tx, b PartnerBooking, now time.Time) error {
	_, err := tx.Exec(ctx, `
		insert into partner_booking (partner, external_id, listing_id, reservation_id, status, seq, start_at, end_at, mobile, missed, seen_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, case when `+erased("$4")+` then null else $9 end, 0, $10)
		on conflict (partner, external_id) do update set listing_id = excluded.listing_id, reservation_id = excluded.reservation_id,
		       status = excluded.status, seq = excluded.seq, start_at = excluded.start_at, end_at = excluded.end_at,
		       mobile = excluded.mobile, missed = 0, seen_at = excluded.seen_at`,
		b.Partner, b.ExternalID, b.Listing, null(b.Reservation), b.Status, b.Seq, b.Start, b.End, null(b.Mobile), now)
	return err
}

// CountMissed records which bookings of a listing the last calendar contained and which it lacked.
func CountMissed(ctx context.Context, q Querier, listing int, seen, missed []string, now time.Time) error {
	_, err := q.Exec(ctx, `
		update partner_booking set missed = case when external_id = any($3) then missed + 1 else 0 end, seen_at = $4
		where listing_id = $1 and (external_id = any($2) or external_id = any($3))`, listing, seen, missed, now)
	return err
}

// SettlePartnerBooking ends the conflict of the booking of a stay, and reports whether there was one. A booking of a partner that was refused
// is in none: a repeated event gets the same answer.
func SettlePartnerBooking(ctx context.Context, tx pgx.Tx, id booking.ReservationID) (bool, error) {
	tag, err := tx.Exec(ctx, `
		update partner_booking b set status = 'CONFIRMED' from channel_listing l
		where b.reservation_id = $1 and b.status = 'CONFLICT' and l.id = b.listing_id and l.channel = 'ical'`, id)
	return tag.RowsAffected() == 1, err
}

// PartnerReservation is a partner's booking to insert into the calendar.
type PartnerReservation struct {
	Branch booking.BranchID
	Room   booking.RoomID
	booking.Interval
	State        booking.State         // Done, or Conflict if the time is taken
	Extends      booking.ReservationID // of a further part of a booking that is longer than a reservation: the first one
	Vacant       bool                  // it occupies nothing until MoveStay moves it with its stay
	Partner      string
	Name, Mobile string
	Key          NewKey // zero for Conflict and for further parts
}

// InsertPartnerReservation inserts a partner's booking into the calendar. The caller holds the room's lock and has
// checked that the time is free, or passes Conflict.
func InsertPartnerReservation(ctx context.Context, tx pgx.Tx, r PartnerReservation, now time.Time) (id booking.ReservationID, err error) {
	err = tx.QueryRow(ctx, `
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key,
		                         amount, paid_at, created_by, extends)
		values ($1, $2, $3, 'PARTNER', $4, $5, case when $12 then 'empty' else tstzrange($4, $5) end, $6, $7, $8, 0, $9, $10, nullif($11::bigint, 0)) returning id`,
		r.Branch, r.Room, r.State, r.Start, r.End, null(r.Name), null(r.Mobile),
		null(booking.NormalizePhone(r.Mobile)), now, r.Partner, r.Extends, r.Vacant).Scan(&id)
	if err != nil || r.State != booking.Done {
		return id, err
	}
	if r.Extends != 0 {
		_, err := tx.Exec(ctx, `update reservation set stay_end = $2 where id = $1`, r.Extends, r.End)
		return id, err
	}
	return id, PutOwnerKey(ctx, tx, id, r.Key, KeyReplaced, systemActor)
}

// The states of a block: WANTED -> PLACED -> UNWANTED -> REMOVED.
const (
	BlockWanted   = "WANTED"
	BlockPlaced   = "PLACED"
	BlockUnwanted = "UNWANTED"
	BlockRemoved  = "REMOVED"
)

// Block is a reserved time to place at, or remove from, a partner channel.
type Block struct {
	ID         int64
	State      string
	Partner    string
	ExternalID string // of the listing
	booking.Interval
	Attempt int  // including the current one
	Unclear bool // the previous attempt failed or has not ended, so the partner may still carry it out
}

// blocking returns the predicate of reservations r whose time a listing l must not sell, quarantines and withheld time included. Bookings of the
// same partner are excluded. now is an expression.
func blocking(now string) string {
	return `r.room_id = l.room_id and l.enabled and l.channel = 'gateway'
	and (r.state in ('WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING') or r.state = 'HOLD' and (r.quarantine_of is not null or r.source = 'PARTNER') and r.expires_at > ` + now + `)
	and not (r.source = 'PARTNER' and r.created_by = l.partner)`
}

// WantBlocks requests a block for the reservation's time at every gateway that lists its room, except the gateway the
// reservation came from. Calendar partners need none, because they read our calendar. It returns the ids of the new
// blocks.
func WantBlocks(ctx context.Context, tx pgx.Tx, id booking.ReservationID, now time.Time) ([]int64, error) {
	rows, err := tx.Query(ctx, `
		insert into channel_block (reservation_id, listing_id, state, start_at, end_at, next_at)
		select r.id, l.id, 'WANTED', r.start_at, r.end_at, $2 from reservation r, channel_listing l
		where r.id = $1 and `+blocking("$2")+` and not exists (
		    select from channel_block b where b.reservation_id = r.id and b.listing_id = l.id and b.state in ('WANTED', 'PLACED'))
		returning id`, id, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// UnwantBlocks requests the removal of a reservation's blocks and returns their ids.
func UnwantBlocks(ctx context.Context, tx pgx.Tx, id booking.ReservationID, now time.Time) ([]int64, error) {
	rows, err := tx.Query(ctx, `
		update channel_block set state = 'UNWANTED', attempt = 0, next_at = $2
		where reservation_id = $1 and state in ('WANTED', 'PLACED') returning id`, id, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// alignMost limits how many missing blocks one call of AlignBlocks creates, since a new partner may list many
// branches.
const alignMost = 1000

// AlignBlocks corrects the wanted blocks to match the reservations, for example after a room was listed or a row was
// changed by hand. Blocks in the past are left alone. complete is false if further blocks are missing.
func AlignBlocks(ctx context.Context, q Querier, now time.Time) (complete bool, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`
		update channel_block b set state = 'UNWANTED', attempt = 0, next_at = $1
		where b.state in ('WANTED', 'PLACED') and b.end_at > $1 and not exists (
		    select from reservation r, channel_listing l
		    where r.id = b.reservation_id and l.id = b.listing_id and `+blocking("$1")+` and b.start_at = r.start_at and b.end_at = r.end_at)`, now)
	// offset 0 makes PostgreSQL start with the few branches and use reservation_by_time for each; without it the
	// planner may scan all reservations.
	batch.Queue(`
		insert into channel_block (reservation_id, listing_id, state, start_at, end_at, next_at)
		select r.id, l.id, 'WANTED', r.start_at, r.end_at, $1
		from branch cross join lateral (
			select * from reservation r where r.branch_id = branch.id and r.start_at > $2 and r.end_at > $1 and `+liveStates+`
			offset 0) r
		join channel_listing l on `+blocking("$1")+`
		where not exists (
		    select from channel_block b where b.reservation_id = r.id and b.listing_id = l.id and b.state in ('WANTED', 'PLACED'))
		limit $3`, now, now.Add(-booking.MaxLength), alignMost)
	results := q.SendBatch(ctx, batch)
	defer func() { err = errors.Join(err, results.Close()) }()
	if _, err := results.Exec(); err != nil {
		return false, err
	}
	created, err := results.Exec()
	return created.RowsAffected() < alignMost, err
}

// DueBlocks returns the blocks whose partner is due to be notified.
func DueBlocks(ctx context.Context, q Querier, now time.Time, limit int) ([]int64, error) {
	rows, err := q.Query(ctx, `
		select id from channel_block where state in ('WANTED', 'UNWANTED') and next_at <= $1
		  and (busy_until is null or busy_until <= $1) order by next_at limit $2`, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[int64])
}

// ErrNoBlock is returned if no notification about a block is due.
var ErrNoBlock = errors.New("postgres: no such block")

// ClaimBlock claims a due block for the lease, or returns ErrNoBlock.
func ClaimBlock(ctx context.Context, q Querier, id int64, now time.Time, lease time.Duration) (Block, error) {
	rows, err := q.Query(ctx, `
		with due as (
			select id, error is not null or busy_until is not null as unclear from channel_block
			where id = $1 and state in ('WANTED', 'UNWANTED') and next_at <= $2 and (busy_until is null or busy_until <= $2) for update)
		update channel_block b set attempt = attempt + 1, busy_until = $3 from due, channel_listing l
		where b.id = due.id and l.id = b.listing_id
		returning b.id, b.state, l.partner, l.external_id, b.start_at, b.end_at, b.attempt, due.unclear`, id, now, now.Add(lease))
	if err != nil {
		return Block{}, err
	}
	b, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (b Block, err error) {
		err = row.Scan(&b.ID, &b.State, &b.Partner, &b.ExternalID, &b.Start, &b.End, &b.Attempt, &b.Unclear)
		return b, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return b, ErrNoBlock
	}
	return b, err
}

// FinishBlock records that the partner accepted a change. A block withdrawn in the meantime remains due for removal. A removal is repeated
// at a later time if the partner may still carry out an earlier attempt.
func FinishBlock(ctx context.Context, q Querier, b Block, again time.Time) error {
	tag, err := q.Exec(ctx, `
		update channel_block set busy_until = null,
		       state = case when $2 = 'WANTED' then 'PLACED' when $4 then 'UNWANTED' else 'REMOVED' end,
		       error = case when $2 = 'WANTED' and $4 then coalesce(error, 'an earlier attempt has not ended') end,
		       next_at = case when $4 then $5 else next_at end
		where `+latestAttempt, b.ID, b.State, b.Attempt, b.Unclear, again)
	if err != nil || tag.RowsAffected() > 0 {
		return err
	}
	return reopenRemoval(ctx, q, b, "")
}

// RetryBlock records why the notification failed and when to try again.
func RetryBlock(ctx context.Context, q Querier, b Block, problem string, next time.Time) error {
	tag, err := q.Exec(ctx, `update channel_block set busy_until = null, error = $4, next_at = $5 where `+latestAttempt, b.ID, b.State, b.Attempt, problem, next)
	if err != nil || tag.RowsAffected() > 0 {
		return err
	}
	return reopenRemoval(ctx, q, b, problem)
}

// latestAttempt is true of the block $1 in the state $2 if no attempt after the $3rd has begun.
const latestAttempt = `id = $1 and state = $2 and attempt = $3`

// reopenRemoval has a withdrawn block removed again after an attempt to create it has ended. Removals whose attempts have begun before do not
// count: the partner may have carried them out first.
func reopenRemoval(ctx context.Context, q Querier, b Block, problem string) error {
	if b.State != BlockWanted {
		return nil
	}
	_, err := q.Exec(ctx, `
		update channel_block set state = 'UNWANTED', attempt = attempt + 1, busy_until = null, error = coalesce(nullif($2, ''), error)
		where id = $1 and state in ('UNWANTED', 'REMOVED')`, b.ID, problem)
	return err
}

// BusyTime is a time of a room that a channel must not sell.
type BusyTime struct {
	ID booking.ReservationID
	booking.Interval
	Part       bool          // of the time of a booking of the partner
	Margin     time.Duration // for which the room stays empty after it
	ModifiedAt time.Time
	Version    int
}

// BusyTimes returns the occupied times of a room within a span, in order, without those that the partner itself has sold: its booking of
// this room, at the times that it reported. Staff may have moved a guest to another room, or given the guest more time.
func BusyTimes(ctx context.Context, q Querier, room booking.RoomID, span booking.Interval, partner string, now time.Time) ([]BusyTime, error) {
	rows, err := q.Query(ctx, `
		select r.id, lower(part), upper(part), part <> tstzrange(r.start_at, r.end_at), make_interval(mins => r.turnover_minutes), r.updated_at, r.version
		from reservation r left join (
			select b.reservation_id, tstzmultirange(tstzrange(b.start_at, b.end_at)) as sold
			from partner_booking b join channel_listing l on l.id = b.listing_id
			where b.partner = $4 and b.status <> 'CANCELLED' and l.room_id = $1
		) own on own.reservation_id = coalesce(r.extends, r.id) and r.source = 'PARTNER' and r.created_by = $4,
		unnest(tstzmultirange(tstzrange(r.start_at, r.end_at)) - coalesce(own.sold, '{}')) part
		where r.room_id = $1 and r.occupied && tstzrange($2, $3) and r.`+liveStates+` and (r.state <> 'HOLD' or r.expires_at > $5)
		order by r.start_at, part`, room, span.Start, span.End, partner, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (b BusyTime, err error) {
		err = row.Scan(&b.ID, &b.Start, &b.End, &b.Part, &b.Margin, &b.ModifiedAt, &b.Version)
		return b, err
	})
}
