package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// AuditEntry is one line of the audit log: who did what to what, from where.
type AuditEntry struct {
	Actor     string            // admin:<login id>, customer:<reservation>, discord:<id>, system, cli:<user>
	BranchID  *booking.BranchID // nil: concerns no branch, or Branch says which
	Branch    string            // its code, where the id is not at hand
	Action    string            // door.unlock, reservation.cancel, pin.reveal, admin.login, …
	Target    string
	Detail    any // encoded as JSON; nil: nothing
	Address   string
	RequestID string
}

// AppendAudit writes an entry, in the transaction of what it tells of. It is the one place that writes
// the audit log. Nothing secret may be in Detail.
func AppendAudit(ctx context.Context, q Querier, e AuditEntry) error {
	detail := []byte("{}")
	if e.Detail != nil {
		var err error
		if detail, err = json.Marshal(e.Detail); err != nil {
			return fmt.Errorf("audit %s: %w", e.Action, err)
		}
	}
	_, err := q.Exec(ctx, `
		insert into audit (actor, branch_id, action, target, detail, address, request_id)
		values ($1, coalesce($2, (select id from branch where code = $8)), $3, $4, $5, $6, $7)`,
		e.Actor, e.BranchID, e.Action, e.Target, json.RawMessage(detail), e.Address, e.RequestID, e.Branch)
	return err
}
