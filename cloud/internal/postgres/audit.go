package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
)

// AppendAudit writes an entry in the transaction of the change that it records. No other function writes the audit log;
// [DB.ChainAudit] links the entry into the chain.
func AppendAudit(ctx context.Context, q Querier, e audit.Entry) error {
	detail, err := e.SafeDetail()
	if err != nil {
		return fmt.Errorf("audit %s: %w", e.Action, err)
	}
	from := audit.OriginOf(ctx)
	address := cmp.Or(e.Address, from.Address)
	if e.ByGuest() {
		address = "" // an entry cannot be removed, and a guest's address is personal data
	}
	_, err = q.Exec(ctx, `
		insert into audit (actor, branch_id, action, target, detail, address, request_id)
		values ($1, coalesce($2::integer, (select id from branch where code = $8)), $3, $4, $5, $6, $7)`,
		e.Actor, e.BranchID, e.Action, e.Target, detail, address, cmp.Or(e.RequestID, from.RequestID), e.Branch)
	return err
}

// AuditRows returns the newest entries that pass a filter. The links of rows are among them only if asked for.
func AuditRows(ctx context.Context, q Querier, f audit.Filter) ([]audit.Row, error) {
	rows, err := q.Query(ctx, `
		select a.id, a.at, a.actor, a.action, a.target, a.detail, a.address, a.request_id
		from audit a left join branch b on b.id = a.branch_id
		where (b.code = $1 or $2 and a.branch_id is null) and ($3 = '' or a.action like $3 || '.%')
		  and ($4 = '' or strpos(lower(a.actor), lower($4)) > 0) and ($5::bigint = 0 or a.id < $5)
		  and (a.action <> '`+linkAction+`' or $3 = 'audit') and ($7::timestamptz is null or a.at >= $7) and ($8::timestamptz is null or a.at < $8)
		order by a.id desc limit $6`, f.Branch, f.Global, f.Actions, f.Actor, f.Before, f.Limit, null(f.From), null(f.Until))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[audit.Row])
}
