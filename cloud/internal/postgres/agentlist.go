package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// AgentCredential is a credential as listed for operators.
type AgentCredential struct {
	Username    string
	Branch      string // code
	Demo        bool
	CreatedAt   time.Time
	RevokedAt   time.Time // zero: not revoked
	Active      bool      // otherwise standby, unless revoked
	Online      bool
	SeenAt      time.Time // zero: never connected
	Version     string    // of the agent, from its last report
	Takeovers   int       // number of times another machine connected with this credential
	TakenOverAt time.Time // the last time; zero: never
	KeyEpoch    uint64    // of the grant keys in use
	KeyPair     bool      // the agent connects with a key pair, not with a password
	Rotating    bool      // new secrets are awaited
	RotatedAt   time.Time // zero: never
}

// State returns active, standby or revoked.
func (a AgentCredential) State() string {
	switch {
	case !a.RevokedAt.IsZero():
		return "revoked"
	case a.Active:
		return "active"
	}
	return "standby"
}

// AgentCredentials returns all credentials by branch and user name.
func AgentCredentials(ctx context.Context, q Querier) ([]AgentCredential, error) {
	rows, err := q.Query(ctx, `
		select c.username, b.code, c.demo, c.created_at, c.revoked_at, c.active and c.revoked_at is null, c.online, c.seen_at,
		       coalesce(c.report ->> 'version', ''), c.takeovers, c.taken_over_at,
		       c.key_epoch, c.public_key is not null, c.rotation is not null and c.revoked_at is null, c.rotated_at
		from agent_credential c join branch b on b.id = c.branch_id order by b.id, c.username`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a AgentCredential, err error) {
		var revoked, seen, takenOver, rotated *time.Time
		err = row.Scan(&a.Username, &a.Branch, &a.Demo, &a.CreatedAt, &revoked, &a.Active, &a.Online, &seen, &a.Version,
			&a.Takeovers, &takenOver, &a.KeyEpoch, &a.KeyPair, &a.Rotating, &rotated)
		a.RevokedAt, a.SeenAt, a.TakenOverAt, a.RotatedAt = value(revoked), value(seen), value(takenOver), value(rotated)
		return a, err
	})
}
