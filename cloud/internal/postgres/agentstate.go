package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/protocol"
)

// AgentCondition is the last known state of a branch's agent. It is zero if the branch never had an agent.
type AgentCondition struct {
	Online      bool
	SeenAt      time.Time
	StartedAt   time.Time // the agent's clock
	Version     string
	Inventory   protocol.Inventory
	SelfTest    []protocol.SelfTest
	ClockOffset *time.Duration // the agent's clock minus ours; nil: unknown
}

// AgentOf returns the last known state of the agent of a branch.
func AgentOf(ctx context.Context, q Querier, branch booking.BranchID) (s AgentCondition, err error) {
	var inventory, tests []byte
	var offset *int64
	err = q.QueryRow(ctx, `
		select online, seen_at, started_at, version, inventory, self_test, clock_offset_ms from agent_inventory where branch_id = $1`, branch,
	).Scan(&s.Online, &s.SeenAt, &s.StartedAt, &s.Version, &inventory, &tests, &offset)
	if errors.Is(err, pgx.ErrNoRows) {
		return AgentCondition{}, nil
	}
	if err != nil {
		return s, err
	}
	if offset != nil {
		ahead := time.Duration(*offset) * time.Millisecond
		s.ClockOffset = &ahead
	}
	return s, errors.Join(json.Unmarshal(inventory, &s.Inventory), json.Unmarshal(tests, &s.SelfTest))
}

// clockGrain is the smallest change of a clock offset that is stored.
const clockGrain = 500 // ms

// queueClockOffsets stores the offsets of the agents' clocks.
func queueClockOffsets(batch *pgx.Batch, told []Telemetry, now time.Time) {
	batch.Queue(`
		update agent_inventory i set clock_offset_ms = t.ahead
		from unnest($1::text[], $2::bigint[]) as t (code, ahead) join branch b on b.code = t.code
		where i.branch_id = b.id and (i.clock_offset_ms is null or abs(i.clock_offset_ms - t.ahead) > $3)`,
		array(told, func(t Telemetry) string { return t.Agent.Branch }),
		array(told, func(t Telemetry) int64 { return t.At.Add(t.Age()).Sub(now).Milliseconds() }), clockGrain)
}

// BranchOfAgent returns the code of the branch of a credential, or ErrNoAgent.
func BranchOfAgent(ctx context.Context, q Querier, username string) (branch string, err error) {
	err = q.QueryRow(ctx, `select b.code from agent_credential c join branch b on b.id = c.branch_id where c.username = $1`, username).Scan(&branch)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", ErrNoAgent
	}
	return branch, err
}
