package postgres

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ErrNoKey is returned if there is no such key, or if it is revoked.
var ErrNoKey = errors.New("postgres: no such key")

// NewKey is a key to store. Its text is stored only sealed.
type NewKey struct {
	Key    uuid.UUID
	Sealed []byte
}

// HashKey returns the hash by which a key is found.
func HashKey(key uuid.UUID) []byte {
	sum := sha256.Sum256([]byte(key.String()))
	return sum[:]
}

// Reasons for which a key was revoked.
const (
	KeyRotated   = "rotated"   // the owner received another one
	KeyCorrected = "corrected" // it was sent to a wrong contact, so it counts as unknown
	KeyRevoked   = "revoked"   // a companion's, by the owner or a member of staff
	KeyReplaced  = "replaced"  // the reservation was confirmed again
)

// ReservationByKey returns the confirmed reservation that a live key opens doors for, and the key, or ErrNoReservation.
func ReservationByKey(ctx context.Context, q Querier, key uuid.UUID) (booking.Reservation, booking.AccessKey, error) {
	k, err := liveKey(ctx, q, key)
	if errors.Is(err, ErrNoKey) {
		return booking.Reservation{}, k, ErrNoReservation
	}
	if err != nil {
		return booking.Reservation{}, k, err
	}
	r, err := oneReservation(ctx, q, `where r.id = $1 and r.state = 'DONE' and not r.keys_blocked`, k.Reservation)
	return r, k, err
}

const selectKey = `
	select k.id, k.reservation_id, k.kind, coalesce(k.label, '') as label, k.sealed, k.created_by, k.created_at, k.revoked_at,
	       coalesce(k.revoked_as, '') as revoked_as,
	       (select max(d.created_at) from door_request d where d.reservation_id = k.reservation_id and d.key_hash = k.hash) as last_used_at
	from access_key k `

func scanKey(row pgx.CollectableRow) (k booking.AccessKey, err error) {
	var revoked, used *time.Time
	err = row.Scan(&k.ID, &k.Reservation, &k.Kind, &k.Label, &k.Sealed, &k.CreatedBy, &k.CreatedAt, &revoked, &k.RevokedAs, &used)
	k.RevokedAt, k.LastUsedAt = value(revoked), value(used)
	return k, err
}

func liveKey(ctx context.Context, q Querier, key uuid.UUID) (booking.AccessKey, error) {
	rows, err := q.Query(ctx, selectKey+`where k.hash = $1 and k.revoked_at is null`, HashKey(key))
	if err != nil {
		return booking.AccessKey{}, err
	}
	k, err := pgx.CollectExactlyOneRow(rows, scanKey)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, ErrNoKey
	}
	return k, err
}

// KeysOf returns the keys of a reservation, oldest first, revoked ones included.
func KeysOf(ctx context.Context, q Querier, id booking.ReservationID) ([]booking.AccessKey, error) {
	rows, err := q.Query(ctx, selectKey+`where k.reservation_id = $1 order by k.id`, id)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanKey)
}

// PutOwnerKey gives a reservation a new owner's key and revokes the previous one for a reason; with KeyReplaced and
// KeyCorrected it revokes the companions' keys, too. The caller holds the lock of the reservation.
func PutOwnerKey(ctx context.Context, tx pgx.Tx, id booking.ReservationID, key NewKey, reason, by string) error {
	batch := &pgx.Batch{}
	if reason != KeyRotated {
		batch.Queue(`
			update access_key set revoked_at = clock_timestamp(), revoked_as = $2
			where reservation_id = $1 and kind = 'companion' and revoked_at is null`, id, KeyRevoked)
	}
	batch.Queue(`
		update access_key set revoked_at = clock_timestamp(), revoked_as = $2
		where reservation_id = $1 and kind = 'owner' and revoked_at is null`, id, reason)
	batch.Queue(`
		insert into access_key (reservation_id, hash, sealed, kind, created_by, created_at)
		values ($1, $2, $3, 'owner', $4, clock_timestamp())`, id, HashKey(key.Key), key.Sealed, by)
	batch.Queue(`update reservation set doorlock_key = key_text($2) where id = $1 and doorlock_key is distinct from key_text($2)`, id, key.Key)
	return tx.SendBatch(ctx, batch).Close()
}

// InsertCompanion stores a companion's key and returns it. The caller holds the lock of the reservation.
func InsertCompanion(ctx context.Context, tx pgx.Tx, id booking.ReservationID, key NewKey, label, by string) (k booking.AccessKey, err error) {
	k = booking.AccessKey{Reservation: id, Kind: booking.CompanionKey, Label: label, Sealed: key.Sealed, CreatedBy: by}
	err = tx.QueryRow(ctx, `
		insert into access_key (reservation_id, hash, sealed, kind, label, created_by, created_at)
		values ($1, $2, $3, 'companion', $4, $5, clock_timestamp()) returning id, created_at`,
		id, HashKey(key.Key), key.Sealed, label, by).Scan(&k.ID, &k.CreatedAt)
	return k, err
}

// RevokeCompanion revokes a companion's key, or returns ErrNoKey.
func RevokeCompanion(ctx context.Context, tx pgx.Tx, id booking.ReservationID, key int64) error {
	tag, err := tx.Exec(ctx, `
		update access_key set revoked_at = clock_timestamp(), revoked_as = $3
		where id = $2 and reservation_id = $1 and kind = 'companion' and revoked_at is null`, id, key, KeyRevoked)
	if err == nil && tag.RowsAffected() == 0 {
		return ErrNoKey
	}
	return err
}

// UnsealedKey is a key that was taken over in plain text.
type UnsealedKey struct {
	ID   int64
	Text string
}

// UnsealedKeys returns keys that a program of the last release has written.
func UnsealedKeys(ctx context.Context, q Querier, limit int) ([]UnsealedKey, error) {
	rows, err := q.Query(ctx, `
		select k.id, p.key::text from access_key k join reservation r on r.id = k.reservation_id, lateral (
			select key from (
				select r.doorlock_key union all select r.blocked_key
				union all select f.revoked_key from refund f where f.reservation_id = r.id
			) plain (key) where sha256(convert_to(key::text, 'UTF8')) = k.hash limit 1) p
		where k.sealed is null order by k.id limit $1`, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[UnsealedKey])
}

// StaysWithoutKeyText returns reservations with a key whose text was lost with the encryption key (ForgetLost).
func StaysWithoutKeyText(ctx context.Context, q Querier, now time.Time, limit int) ([]booking.ReservationID, error) {
	rows, err := q.Query(ctx, `
		select r.id from access_key k join reservation r on r.id = k.reservation_id
		where k.sealed is null and k.kind = 'owner' and k.revoked_at is null and r.doorlock_key is null
		  and r.state = 'DONE' and not r.keys_blocked and `+stayEnd+` > $1
		order by k.id limit $2`, now, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[booking.ReservationID])
}

// SealKey stores the sealed text of a key that was taken over.
func SealKey(ctx context.Context, q Querier, id int64, sealed []byte) error {
	_, err := q.Exec(ctx, `update access_key set sealed = $2 where id = $1 and sealed is null`, id, sealed)
	return err
}

// ForgetKeyTexts deletes the plain text of sealed keys once no program of the last release needs it, and returns how many
// rows had one. A blocked key is kept until it is unblocked.
func ForgetKeyTexts(ctx context.Context, q Querier, limit int) (n int64, err error) {
	for _, sql := range []string{
		`update reservation set doorlock_key = null where id in (
			select r.id from reservation r
			where r.doorlock_key is not null and now() >= (select until from key_text) and exists (
				select from access_key k where k.reservation_id = r.id and k.sealed is not null
				  and k.hash = sha256(convert_to(r.doorlock_key::text, 'UTF8')))
			limit $1 for update of r skip locked)`,
		`update refund set revoked_key = null, key_revoked = true where id in (
			select f.id from refund f
			where f.revoked_key is not null and now() >= (select until from key_text) and (
				f.state in ('COMPLETED', 'REFUSED') or exists (
				select from access_key k where k.reservation_id = f.reservation_id and k.sealed is not null
				  and k.hash = sha256(convert_to(f.revoked_key::text, 'UTF8'))))
			limit $1 for update of f skip locked)`,
	} {
		tag, err := q.Exec(ctx, sql, limit)
		if err != nil {
			return n, err
		}
		n += tag.RowsAffected()
	}
	return n, nil
}
