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

// ErrNoEntity is returned for an unknown code of a legal entity.
var ErrNoEntity = errors.New("postgres: no such legal entity")

// LegalEntity is a legal entity that sells at some branches, with its keys at the payment provider.
type LegalEntity struct {
	Code      string
	Facts     []byte // JSON, as those of the company
	ClientKey string
	WidgetKey []byte // sealed
	APIKey    []byte // sealed
	UpdatedAt time.Time
	Branches  []string // codes of the branches at which it sells; not stored by PutLegalEntity
}

const selectEntity = `
	select e.code, e.facts, e.client_key, e.widget_key, e.api_key, e.updated_at,
	       coalesce((select array_agg(b.code order by b.code) from branch b where b.legal_entity = e.code), '{}')
	from legal_entity e `

// LegalEntities returns all legal entities by code.
func LegalEntities(ctx context.Context, q Querier) ([]LegalEntity, error) {
	rows, err := q.Query(ctx, selectEntity+`where $1 order by e.code`, true)
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

// LegalEntityCodes returns the codes of all legal entities.
func LegalEntityCodes(ctx context.Context, q Querier) ([]string, error) {
	rows, err := q.Query(ctx, `select code from legal_entity where $1 order by code`, true)
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

// SetBranchEntity sets the legal entity that sells at a branch from now on; empty: that of the settings. It returns ErrNoEntity
// for an unknown one.
func SetBranchEntity(ctx context.Context, tx pgx.Tx, branch booking.BranchID, code string) error {
	if code != "" {
		if _, err := LegalEntityOf(ctx, tx, code); err != nil {
			return err
		}
	}
	_, err := tx.Exec(ctx, `update branch set legal_entity = $2 where id = $1`, branch, null(code))
	return err
}
