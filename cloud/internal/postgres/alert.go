package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// ErrNoAlert is returned when there is no alert with that id.
var ErrNoAlert = errors.New("postgres: no such alert")

// Alert is a condition that an administrator must know about.
type Alert struct {
	ID             int64
	Kind           string
	Branch         string // code; empty: all branches
	Subject        string // what it is about, such as a door's device
	Since          time.Time
	NotifiedAt     *time.Time // when its beginning was announced to a contact
	AcknowledgedBy *string
	AcknowledgedAt *time.Time
	EndedAt        *time.Time
}

const selectAlert = `select id, kind, branch, subject, since, notified_at, acknowledged_by, acknowledged_at, ended_at from alert `

// AlertFilter selects alerts.
type AlertFilter struct {
	Branches []string // codes; empty string: alerts of all branches; nil: any
	Open     bool     // only those that have not ended
	Before   int64    // only those with a smaller id; 0: any
	Limit    int
}

// Alerts returns alerts, newest first.
func Alerts(ctx context.Context, q Querier, f AlertFilter) ([]Alert, error) {
	rows, err := q.Query(ctx, selectAlert+`
		where ($1::text[] is null or branch = any($1)) and (not $2 or ended_at is null) and ($3::bigint = 0 or id < $3)
		order by id desc limit $4`, f.Branches, f.Open, f.Before, f.Limit)
	if err != nil {
		return nil, fmt.Errorf("alerts: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[Alert])
}

// AlertByID returns an alert, or ErrNoAlert.
func AlertByID(ctx context.Context, q Querier, id int64) (Alert, error) {
	rows, err := q.Query(ctx, selectAlert+`where id = $1`, id)
	if err != nil {
		return Alert{}, fmt.Errorf("alert %d: %w", id, err)
	}
	a, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Alert])
	if errors.Is(err, pgx.ErrNoRows) {
		return a, ErrNoAlert
	}
	return a, err
}

// AcknowledgeAlert records the administrator who takes care of an alert. It reports false if another one did so before.
func AcknowledgeAlert(ctx context.Context, q Querier, id int64, by string, now time.Time) (bool, error) {
	tag, err := q.Exec(ctx, `
		update alert set acknowledged_by = $2, acknowledged_at = $3 where id = $1 and acknowledged_by is null`, id, by, now)
	return tag.RowsAffected() == 1, err
}

// OpenAlert opens an alert unless one is open for the same kind, branch and subject. An alert that returns before its end was
// announced is the same incident.
func OpenAlert(ctx context.Context, q Querier, kind, branch, subject string, since time.Time) error {
	_, err := q.Exec(ctx, `select alert_open($1, $2, $3, $4)`, kind, branch, subject, since)
	return err
}

// EndAlert ends the open alert of a kind, branch and subject, if there is one.
func EndAlert(ctx context.Context, q Querier, kind, branch, subject string, at time.Time) error {
	_, err := q.Exec(ctx, `select alert_end($1, $2, $3, $4)`, kind, branch, subject, at)
	return err
}

// AlertContacts returns the sealed recipients of alerts, by branch code; those of the headquarters have the empty code.
func AlertContacts(ctx context.Context, q Querier, branches []string) (map[string][]byte, error) {
	rows, err := q.Query(ctx, `select branch, contacts from alert_contact where branch = any($1)`, branches)
	if err != nil {
		return nil, fmt.Errorf("alert contacts: %w", err)
	}
	found := map[string][]byte{}
	_, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (struct{}, error) {
		var branch string
		var sealed []byte
		err := row.Scan(&branch, &sealed)
		found[branch] = sealed
		return struct{}{}, err
	})
	return found, err
}

// PutAlertContacts stores the sealed recipients of a branch, or of the headquarters.
func PutAlertContacts(ctx context.Context, q Querier, branch string, sealed []byte) error {
	_, err := q.Exec(ctx, `
		insert into alert_contact (branch, contacts) values ($1, $2)
		on conflict (branch) do update set contacts = excluded.contacts`, branch, sealed)
	return err
}

// Incident is an alert that is not closed: it is open, or its end has not been announced.
type Incident struct {
	Alert
	BranchID booking.BranchID // 0: all branches
	Name     string           // of the branch, in Korean; empty for all branches
	Zone     string           // time zone of the branch; empty for all branches
	Told     [][]byte         // contacts that know of its beginning and not of its end
	Knew     [][]byte         // contacts that have received its beginning
	Amount   int              // branches offline at the moment, for an alert of all branches; those with an alert of their own aside
}

// Incidents returns the incidents about which a message may be due, oldest first: alerts that were not announced, that have
// ended, or that began or were announced after since.
func Incidents(ctx context.Context, q Querier, since time.Time) ([]Incident, error) {
	rows, err := q.Query(ctx, `
		select a.id, a.kind, a.branch, a.subject, a.since, a.notified_at, a.acknowledged_by, a.acknowledged_at, a.ended_at,
		       coalesce(b.id, 0), coalesce(b.name_ko, ''), coalesce(b.time_zone, ''),
		       array(select n.contact from alert_notice n where n.alert_id = a.id and n.ended_at is null),
		       array(select n.contact from alert_notice n where n.alert_id = a.id),
		       case when a.branch = '' and a.kind = 'branch-offline' then (
				select count(*) from agent_inventory i join branch ib on ib.id = i.branch_id where not i.online and not exists (
					select from alert o where o.kind = a.kind and o.branch = ib.code and o.ended_at is null)) else 0 end
		from alert a left join branch b on b.code = a.branch
		where a.closed_at is null and (a.notified_at is null or a.ended_at is not null or greatest(a.since, a.notified_at) > $1)
		order by a.id`, since)
	if err != nil {
		return nil, fmt.Errorf("incidents: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (i Incident, err error) {
		err = row.Scan(&i.ID, &i.Kind, &i.Branch, &i.Subject, &i.Since, &i.NotifiedAt, &i.AcknowledgedBy, &i.AcknowledgedAt, &i.EndedAt,
			&i.BranchID, &i.Name, &i.Zone, &i.Told, &i.Knew, &i.Amount)
		return i, err
	})
}

// NoteAlertBegin records that an alert's beginning was announced, and to which contacts. It fails if one of them has
// received it before.
func NoteAlertBegin(ctx context.Context, tx pgx.Tx, id int64, contacts [][]byte, now time.Time) error {
	batch := new(pgx.Batch)
	batch.Queue(`update alert set notified_at = coalesce(notified_at, $2) where id = $1`, id, now)
	batch.Queue(`insert into alert_notice (alert_id, contact, began_at) select $1, contact, $3 from unnest($2::bytea[]) contact`, id, contacts, now)
	return tx.SendBatch(ctx, batch).Close()
}

// CloseAlert closes an alert: its end is announced in tx. It reports false if the alert has returned or is closed already, and
// for a branch that has been lost again since settled, although not for long enough to be an alert.
func CloseAlert(ctx context.Context, tx pgx.Tx, id int64, settled, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		update alert a set closed_at = $2 where id = $1 and ended_at is not null and closed_at is null
		  and not (kind = 'branch-offline' and exists (
			select from agent_inventory i join branch b on b.id = i.branch_id
			where b.code = a.branch and (not i.online or i.presence_since > $3)))`, id, now, settled)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	_, err = tx.Exec(ctx, `update alert_notice set ended_at = $2 where alert_id = $1 and ended_at is null`, id, now)
	return true, err
}
