package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErasureAction is the action of audit entries about an erased person. Their target is the pseudonym of the person.
const ErasureAction = "personal.erase"

// Erasures returns the pseudonyms of all persons who were erased, or are to be erased again.
func Erasures(ctx context.Context, q Querier) ([]string, error) {
	rows, err := q.Query(ctx, `select target from audit where action = $1 union select person from erasure_pending order by 1`, ErasureAction)
	if err != nil {
		return nil, fmt.Errorf("list erasures: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// PutPendingErasures stores the pseudonyms of persons who are to be erased again.
func PutPendingErasures(ctx context.Context, q Querier, persons []string) error {
	_, err := q.Exec(ctx, `insert into erasure_pending select distinct unnest($1::text[]) on conflict do nothing`, persons)
	if err != nil {
		return fmt.Errorf("store erasures: %w", err)
	}
	return nil
}

// PendingErasures returns the pseudonyms of persons who are to be erased again.
func PendingErasures(ctx context.Context, q Querier) ([]string, error) {
	rows, err := q.Query(ctx, `select person from erasure_pending order by 1`)
	if err != nil {
		return nil, fmt.Errorf("read erasures: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// EndErasures removes pseudonyms of persons who were erased again.
func EndErasures(ctx context.Context, q Querier, persons []string) error {
	_, err := q.Exec(ctx, `delete from erasure_pending where person = any($1)`, persons)
	if err != nil {
		return fmt.Errorf("end erasures: %w", err)
	}
	return nil
}

// ErasureDue reports whether a run of the erasure erases a contact with the pseudonym person: the service has not erased it since the
// last restore, or a reservation is over. Runs in between would delete the sessions and blocks of a guest whose stay is to come.
func ErasureDue(ctx context.Context, q Querier, contact, person string, now time.Time) (due bool, err error) {
	err = q.QueryRow(ctx, `
		select not exists (select from audit where actor = 'system' and action = $3 and target = $4
				and at >= coalesce((select max(begun_at) from rebuild), '-infinity'))
			or not exists (select from reservation r where r.mobile_key = $2 or r.email_key = $2)
			or exists (select from reservation r where `+over+` and (r.mobile_key = $2 or r.email_key = $2))`,
		now, contact, ErasureAction, person).Scan(&due)
	if err != nil {
		return false, fmt.Errorf("find erasures that are due: %w", err)
	}
	return due, nil
}

// Contacts returns every phone number and e-mail address of a guest, as Erase takes them.
func Contacts(ctx context.Context, q Querier) ([]string, error) {
	rows, err := q.Query(ctx, `
		select contact from (
			select mobile_key as contact from reservation union select email_key from reservation union select mobile_key from compensation
			union select mobile_key from guest_note union select mobile_key from guest_block
			union select `+phoneKey("mobile")+` from partner_booking
			union select login_id from login_code union select data ->> 'loginId' from session
			union select `+phoneKey("to_mobile")+` from message union select lower(trim(to_email)) from message
			union select `+phoneKey("mobile")+` from franchise_inquiry union select lower(trim(email)) from franchise_inquiry) c
		where contact <> ''`)
	if err != nil {
		return nil, fmt.Errorf("list contacts: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
