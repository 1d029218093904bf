package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/yeolda/yeolda/cloud/internal/audit"
)

// AppendAudit writes an entry in the transaction of the change that it records. No other function writes the audit log;
// [DB.ChainAudit] links the entry into the chain.
func AppendAudit(ctx context.Context, q Querier, e audit.Entry) error {
	detail := []byte("{}")
	if e.Detail != nil {
		var err error
		if detail, err = json.Marshal(e.Detail); err != nil {
			return fmt.Errorf("audit %s: %w", e.Action, err)
		}
	}
	from := audit.OriginOf(ctx)
	_, err := q.Exec(ctx, `
		insert into audit (actor, branch_id, action, target, detail, address, request_id)
		values ($1, coalesce($2::integer, (select id from branch where code = $8)), $3, $4, $5, $6, $7)`,
		e.Actor, e.BranchID, e.Action, e.Target, json.RawMessage(detail), cmp.Or(e.Address, from.Address), cmp.Or(e.RequestID, from.RequestID), e.Branch)
	return err
}

// AuditRow is an entry as it is shown.
type AuditRow struct {
	ID        int64
	At        time.Time
	Actor     string
	Action    string
	Target    string
	Detail    json.RawMessage
	Address   string
	RequestID string
}

// AuditFilter says which entries are wanted. Empty fields want all.
type AuditFilter struct {
	Branch  string // code; entries that concern no branch are shown with Global
	Global  bool   // with those that concern no branch
	Actions string // the part before the dot: door, reservation, …
	Actor   string // as it is, or without admin:
	Before  int64  // id; 0: the newest
	Limit   int
}

// AuditRows returns the newest entries that pass a filter.
func AuditRows(ctx context.Context, q Querier, f AuditFilter) ([]AuditRow, error) {
	rows, err := q.Query(ctx, `
		select a.id, a.at, a.actor, a.action, a.target, a.detail, a.address, a.request_id
		from audit a left join branch b on b.id = a.branch_id
		where (b.code = $1 or $2 and a.branch_id is null) and ($3 = '' or a.action like $3 || '.%')
		  and ($4 = '' or a.actor = $4 or a.actor = 'admin:' || $4) and ($5 = 0 or a.id < $5)
		order by a.id desc limit $6`, f.Branch, f.Global, f.Actions, f.Actor, f.Before, f.Limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[AuditRow])
}
