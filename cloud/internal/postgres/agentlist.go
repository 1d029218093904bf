package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// AgentCredentialState is an agent's credential as an operator sees it.
type AgentCredentialState struct {
	Username     string
	Branch       string // code
	Demo         bool
	CreatedAt    time.Time
	RevokedAt    time.Time // zero: not revoked
	BranchOnline bool      // some agent of the branch is connected
	BranchSeenAt time.Time // zero: never
}

// AgentCredentials returns all credentials by branch and user name.
func AgentCredentials(ctx context.Context, q Querier) ([]AgentCredentialState, error) {
	rows, err := q.Query(ctx, `
		select c.username, b.code, c.demo, c.created_at, c.revoked_at, coalesce(i.online, false), i.seen_at
		from agent_credential c join branch b on b.id = c.branch_id left join agent_inventory i on i.branch_id = b.id
		where $1 order by b.id, c.username`, true)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a AgentCredentialState, err error) {
		var revoked, seen *time.Time
		err = row.Scan(&a.Username, &a.Branch, &a.Demo, &a.CreatedAt, &revoked, &a.BranchOnline, &seen)
		a.RevokedAt, a.BranchSeenAt = value(revoked), value(seen)
		return a, err
	})
}
