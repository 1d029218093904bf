package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// EntityKeyPurpose is the purpose under which the secret keys of legal entities are sealed.
const EntityKeyPurpose = "legal-entity-key"

// ErrNoEntity is returned for an unknown code of a legal entity, ErrEntityRetired for one that is retired.
var (
	ErrNoEntity      = errors.New("postgres: no such legal entity")
	ErrEntityRetired = errors.New("postgres: the legal entity is retired")
)

// LegalEntity is a legal entity that sells at some branches, with its keys at the payment provider.
type LegalEntity struct {
	Code      string
	Facts     []byte // JSON, as those of the company
	ClientKey string
	WidgetKey []byte // sealed
	APIKey    []byte // sealed
	UpdatedAt time.Time
	Branches  []string   // codes of the branches at which it sells; not stored by PutLegalEntity
	RetiredAt *time.Time // nil: in use; not stored by PutLegalEntity
}

const selectEntity = `
	select e.code, e.facts, e.client_key, e.widget_key, e.api_key, e.updated_at,
	       coalesce((select array_agg(b.code order by b.code) from branch b where b.legal_entity = e.code), '{}'), e.retired_at
	from legal_entity e `

// LegalEntities returns all legal entities by code.
func LegalEntities(ctx context.Context, q Querier) ([]LegalEntity, error) {
	rows, err := q.Query(ctx, selectEntity+`order by e.code`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[LegalEntity])
}

// LegalEntityOf returns a legal entity, or ErrNoEntity.
func LegalEntityOf(ctx context.Context, q Querier, code string) (LegalEntity, error) {
	rows, err := q.Query(ctx, selectEntity+`where e.code = $1`, code)
	if err != nil {
		return LegalEntity{}, err
	}
	e, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[LegalEntity])
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoEntity
	}
	return e, err
}

// LegalEntityCodes returns the codes of the legal entities, or of those that are retired.
func LegalEntityCodes(ctx context.Context, q Querier, retired bool) ([]string, error) {
	rows, err := q.Query(ctx, `select code from legal_entity where not $1 or retired_at is not null order by code`, retired)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// LockLegalEntities lets one transaction at a time add or change a legal entity.
func LockLegalEntities(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `lock table legal_entity in share row exclusive mode`)
	return err
}

// PutLegalEntity adds a legal entity or replaces the one with its code.
func PutLegalEntity(ctx context.Context, tx pgx.Tx, e LegalEntity) error {
	_, err := tx.Exec(ctx, `
		insert into legal_entity (code, facts, client_key, widget_key, api_key, updated_at) values ($1, $2, $3, $4, $5, $6)
		on conflict (code) do update set facts = excluded.facts, client_key = excluded.client_key, widget_key = excluded.widget_key,
		    api_key = excluded.api_key, updated_at = excluded.updated_at`,
		e.Code, e.Facts, e.ClientKey, e.WidgetKey, e.APIKey, e.UpdatedAt)
	return err
}

// UseEntity locks a legal entity against its retirement until the transaction ends. It returns ErrNoEntity for an unknown one, and
// ErrEntityRetired.
func UseEntity(ctx context.Context, tx pgx.Tx, code string) error {
	var retired bool
	err := tx.QueryRow(ctx, `select retired_at is not null from legal_entity where code = $1 for share`, code).Scan(&retired)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNoEntity
	case err == nil && retired:
		return ErrEntityRetired
	}
	return err
}

// RetireLegalEntity retires a legal entity at a time, or takes it back into use (nil), and reports whether it was not so before. It returns
// ErrNoEntity. The caller checks its use afterwards, see LegalEntityOpen: while the transaction lasts, none can begin.
func RetireLegalEntity(ctx context.Context, tx pgx.Tx, code string, at *time.Time) (changed bool, err error) {
	tag, err := tx.Exec(ctx, `update legal_entity set retired_at = $2 where code = $1 and (retired_at is null) <> ($2::timestamptz is null)`, code, at)
	if err != nil || tag.RowsAffected() > 0 {
		return err == nil, err
	}
	_, err = LegalEntityOf(ctx, tx, code)
	return false, err
}

// LegalEntityOpen reports whether money of a legal entity may still move: a payment or a refund is open, or a discrepancy about one.
func LegalEntityOpen(ctx context.Context, q Querier, code string, now time.Time) (open bool, err error) {
	err = q.QueryRow(ctx, `
		select exists (select from reservation r where r.legal_entity = $1 and (r.state in ('CONFIRMING', 'WAITING_FOR_DEPOSIT', 'CANCELING')
		           or r.keys_blocked or r.state = 'HOLD' and r.order_id is not null and r.expires_at > $2))
		    or exists (select from refund f join reservation r on r.id = f.reservation_id
		               where r.legal_entity = $1 and f.state in ('REQUESTED', 'PENDING', 'FAILED'))
		    or exists (select from reconciliation_difference d left join reservation r on r.id = discrepancy_reservation(d.order_id)
		               where d.resolved_at is null and d.kind <> 'provider-key' and (r.legal_entity = $1 or d.key_set in ('widget:' || $1, 'api:' || $1)))`,
		code, now).Scan(&open)
	return open, err
}

// SettleProviderKeys closes the discrepancies about keys of a legal entity that the provider rejects.
func SettleProviderKeys(ctx context.Context, tx pgx.Tx, code, resolution, by string, now time.Time) error {
	_, err := tx.Exec(ctx, `
		update reconciliation_difference d set resolved_at = $4, resolution = $2, resolved_by = $3
		where resolved_at is null and kind = 'provider-key'
		  and exists (select from reservation r where r.id = discrepancy_reservation(d.order_id) and r.legal_entity = $1)`, code, resolution, by, now)
	return err
}

// SetBranchEntity sets the legal entity that sells at a branch from now on; empty: that of the settings. Errors are those of UseEntity.
func SetBranchEntity(ctx context.Context, tx pgx.Tx, branch booking.BranchID, code string) error {
	if code != "" {
		if err := UseEntity(ctx, tx, code); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `update branch set legal_entity = $2 where id = $1`, branch, null(code))
	return err
}
