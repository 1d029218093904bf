package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// A pass is the PIN of a confirmed reservation, which the branch's agent checks by itself (docs/specification.md, Passes).
//
// How other packages use passes, always in the transaction of their change:
//
//   - [IssuePass] after every statement that confirms a reservation, moves it, or gives it another key: confirmation,
//     registration, move, exchange, rotation. It creates a new PIN and ends the previous pass.
//   - [ExtendPass] when the stay gets longer or shorter under the same key: an extension or the end of one. The PIN stays.
//   - [LiftQuarantine] when the guest, not staff, frees a time before the PIN is disclosed (a cancellation, an exchange).
//
// Nothing is called to end a pass: triggers end it when the reservation is no longer DONE, has another room or time (pass_follows), or another
// owner's key (pass_follows_key); a reservation whose end becomes earlier keeps its pass, shortened. The trigger quarantine_freed blocks the
// time that becomes free while an agent may hold a pass for it. A pass that is missing although its reservation is confirmed is created by
// [IssueMissing] before the next list is sent, so a forgotten call delays a PIN by seconds and never keeps one alive.
type Pass struct {
	ID        uuid.UUID
	Room      booking.RoomID
	PIN       []byte // sealed for PassPINPurpose
	NotBefore time.Time
	NotAfter  time.Time
	Ready     bool // the active agent has acknowledged a list with it
}

// PassPINPurpose is the purpose with which the PINs of passes are sealed.
const PassPINPurpose = "pass-pin"

// passLock is the first key of the advisory locks that serialize the choice of PINs of one branch.
const passLock = 0x70617373

// owned is the condition that reservation r has an owner's key, blocked or not.
const owned = `exists (select from access_key k where k.reservation_id = r.id and k.kind = 'owner' and k.revoked_at is null)`

// piecesDuring selects the stays of a branch that have a confirmed piece in a time: the reservation itself or one of its extensions.
// The stay may have begun a month before.
func piecesDuring(branch, from, before string) string {
	return `select coalesce(x.extends, x.id) from reservation x where x.branch_id = ` + branch + ` and x.state = 'DONE' and ` + overlaps("x", from, before)
}

// touchedPass makes the list of the branch due whose reservation $1 is blocked or unblocked: a blocked pass is not listed.
const touchedPass = `with touched as (
	update pass set changed_at = clock_timestamp() where reservation_id = $1 and ended_at is null) `

// IssuePass gives a confirmed reservation a pass with a new PIN, and ends the one it had. A reservation that is not
// confirmed, has no key or is over gets none. The PIN differs from those of all passes of the branch whose windows overlap,
// ended ones included, because an agent may still hold them.
func IssuePass(ctx context.Context, tx pgx.Tx, keys *seal.Keyring, id booking.ReservationID, now time.Time) error {
	var branch booking.BranchID
	p := Pass{ID: uuid.New()}
	err := tx.QueryRow(ctx, `
		with ended as (
			update pass set ended_at = clock_timestamp(), changed_at = clock_timestamp() where reservation_id = $1 and ended_at is null
		)
		select branch_id, room_id, start_at, coalesce(stay_end, end_at) from reservation r where id = $1 and state = 'DONE' and `+owned, id).
		Scan(&branch, &p.Room, &p.NotBefore, &p.NotAfter)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("pass of reservation %d: %w", id, err)
	}
	p.NotBefore, p.NotAfter = booking.Reservation{Interval: booking.Interval{Start: p.NotBefore, End: p.NotAfter}}.UnlockWindow()
	if !now.Before(p.NotAfter) {
		return nil
	}
	taken, err := pinsDuring(ctx, tx, keys, branch, id, p.NotBefore, p.NotAfter)
	if err != nil {
		return fmt.Errorf("pass of reservation %d: %w", id, err)
	}
	pin := newPIN()
	for taken[pin] {
		pin = newPIN()
	}
	_, err = tx.Exec(ctx, `
		insert into pass (id, reservation_id, branch_id, room_id, pin, not_before, not_after) values ($1, $2, $3, $4, $5, $6, $7)`,
		p.ID, id, branch, p.Room, keys.Seal(PassPINPurpose, []byte(pin)), p.NotBefore, p.NotAfter)
	if err != nil {
		return fmt.Errorf("pass of reservation %d: %w", id, err)
	}
	return repeatStayPIN(ctx, tx, id)
}

// ExtendPass makes the pass of a reservation end with a stay that ends at until, earlier or later than before, with the same
// PIN. If another pass has that PIN in the added time, the reservation gets a new one. Without a pass nothing happens.
func ExtendPass(ctx context.Context, tx pgx.Tx, keys *seal.Keyring, id booking.ReservationID, until time.Time) error {
	var (
		branch booking.BranchID
		p      Pass
	)
	err := tx.QueryRow(ctx, `
		select id, branch_id, pin, not_before, not_after from pass where reservation_id = $1 and ended_at is null for update`, id).
		Scan(&p.ID, &branch, &p.PIN, &p.NotBefore, &p.NotAfter)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("extend the pass of reservation %d: %w", id, err)
	}
	end := booking.Interval{End: until}.LastUnlock()
	taken, err := pinsDuring(ctx, tx, keys, branch, id, p.NotBefore, end)
	if err != nil {
		return fmt.Errorf("extend the pass of reservation %d: %w", id, err)
	}
	plain, err := keys.Open(PassPINPurpose, p.PIN)
	if err != nil {
		return fmt.Errorf("extend the pass of reservation %d: %w", id, err)
	}
	if pin := string(plain); taken[pin] {
		for taken[pin] {
			pin = newPIN()
		}
		p.PIN = keys.Seal(PassPINPurpose, []byte(pin))
		if err := repeatStayPIN(ctx, tx, id); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, `
		update pass set pin = $2, not_after = greatest($3, not_before + interval '1 second'), changed_at = clock_timestamp() where id = $1`,
		p.ID, p.PIN, end)
	return err
}

// IssueMissing gives a pass to each confirmed reservation of a branch that begins before a time, has a key and no pass for
// its room and time: one whose pass ended with a revoked credential, or that was confirmed by a program of an earlier
// release.
func IssueMissing(ctx context.Context, tx pgx.Tx, keys *seal.Keyring, branch booking.BranchID, before, now time.Time) error {
	// r.state || '' keeps the planner from reading all confirmed reservations instead of looking up each stay.
	rows, err := tx.Query(ctx, `
		select r.id from reservation r left join pass p on p.reservation_id = r.id and p.ended_at is null
		where r.id in (`+piecesDuring("$1", "$3", "$2")+`) and r.state || '' = 'DONE' and `+stayEnd+` > $3 and `+owned+`
		  and (p.id is null or p.room_id <> r.room_id or p.not_before > r.start_at)
		order by r.id`, branch, before, now.Add(booking.UnlockLead))
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[booking.ReservationID])
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := IssuePass(ctx, tx, keys, id, now); err != nil {
			return err
		}
	}
	return nil
}

// PassOf returns the live pass of a reservation, or ErrNoPass.
func PassOf(ctx context.Context, q Querier, id booking.ReservationID) (Pass, error) {
	rows, err := q.Query(ctx, `
		select p.id, p.room_id, p.pin, p.not_before, p.not_after, exists (
			select from pass_listed l join pass_agent a on a.username = l.username join agent_credential c on c.username = l.username
			where l.pass_id = p.id and c.active and c.revoked_at is null and l.epoch = a.applied_epoch and l.version = a.applied_version
			  and l.not_before <= p.not_before and l.not_after >= p.not_after)
		from pass p where p.reservation_id = $1 and p.ended_at is null`, id)
	if err != nil {
		return Pass{}, err
	}
	p, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Pass])
	if errors.Is(err, pgx.ErrNoRows) {
		return p, ErrNoPass
	}
	return p, err
}

// ErrNoPass is returned for a reservation without a live pass.
var ErrNoPass = errors.New("postgres: no such pass")

// pinsDuring returns the PINs of all passes of a branch whose windows overlap a time, those of one reservation excepted.
// Until the transaction ends, it blocks the choice of other PINs of the branch.
func pinsDuring(ctx context.Context, tx pgx.Tx, keys *seal.Keyring, branch booking.BranchID, except booking.ReservationID, from, to time.Time) (map[string]bool, error) {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1, $2)`, passLock, int32(branch)); err != nil {
		return nil, err
	}
	// Most passes last at most a day, so not_after alone bounds the scan. The longer ones, of bookings of partners, are few and have
	// an index of their own.
	rows, err := tx.Query(ctx, `
		select pin from pass where branch_id = $1 and not_after > $2 and not_after < $3::timestamptz + interval '1 day' and not_before < $3
		  and (reservation_id <> $4 or ended_at is not null)
		union all
		select pin from pass where branch_id = $1 and not_after > $2 and not_after - not_before > interval '1 day' and not_before < $3
		  and (reservation_id <> $4 or ended_at is not null)`, branch, from, to, except)
	if err != nil {
		return nil, err
	}
	sealed, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		return nil, err
	}
	pins := make(map[string]bool, len(sealed))
	for _, s := range sealed {
		plain, err := keys.Open(PassPINPurpose, s)
		if err != nil {
			return nil, err
		}
		pins[string(plain)] = true
	}
	return pins, nil
}

// pinDigits is the length of a pass's PIN.
const pinDigits = 6

// newPIN returns a random PIN that is not trivial.
func newPIN() string {
	for {
		n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
		if err != nil {
			panic(err) // crypto/rand never fails
		}
		if pin := fmt.Sprintf("%0*d", pinDigits, n); !TrivialPIN(pin) {
			return pin
		}
	}
}

// TrivialPIN reports whether a PIN is one that a stranger tries first: it has fewer than three different digits, repeats its
// first two or three digits, or counts up or down.
func TrivialPIN(pin string) bool {
	different := map[byte]bool{}
	up, down := true, true
	for i := range len(pin) {
		different[pin[i]] = true
		if i > 0 {
			step := (int(pin[i]) - int(pin[i-1]) + 10) % 10
			up, down = up && step == 1, down && step == 9
		}
	}
	return len(different) < 3 || up || down || pin[:len(pin)/2] == pin[len(pin)/2:] || pin[:2] == pin[2:4] && pin[:2] == pin[4:]
}
