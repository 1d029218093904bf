package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/protocol"
)

// connectedWithin is how recently another credential of the branch must have been online to keep a new one from becoming
// active automatically.
const connectedWithin = 10 * time.Minute

// ConnectedAgent returns the user name of the active agent of a branch if it is among online, the user names of the branch's
// connected agents. Otherwise ok is false.
func ConnectedAgent(ctx context.Context, q Querier, branch string, online []string) (username string, ok bool, err error) {
	if len(online) == 0 {
		return "", false, nil
	}
	var connected *string
	err = q.QueryRow(ctx, `select `+connectedAgent+` from branch b, (select $2::text[] as online) o where b.code = $1`,
		branch, online).Scan(&connected)
	if errors.Is(err, pgx.ErrNoRows) || err == nil && connected == nil {
		return "", false, nil
	}
	return value(connected), connected != nil, err
}

// SeenAgent is a credential whose presence was recorded.
type SeenAgent struct {
	Agent    protocol.Agent // as in the update
	Username string         // of the credential
	Active   bool
	NextKeys *protocol.KeyList    // the key list to apply next; nil: none
	Brokers  *protocol.BrokerList // without its signature, if the agent does not use it yet; nil: none
	KeyEpoch uint64               // of the grant keys that the agent trusts
}

// SeeAgents records presence and reports of agents, for each credential. It returns the credentials found. Revoked
// credentials are omitted, and so are agents without a user name in a branch with several credentials.
func SeeAgents(ctx context.Context, q Querier, updates []AgentUpdate, now time.Time) ([]SeenAgent, error) {
	reports := make([]*string, len(updates))
	for i, u := range updates {
		if u.Report == nil {
			continue
		}
		text, err := json.Marshal(u.Report)
		if err != nil {
			return nil, err
		}
		reports[i] = new(string(text))
	}
	// Rows are locked in the order of their user names, because another replica may update the same ones.
	rows, err := q.Query(ctx, `
		with target as (
			select a.username, u.code, u.username as given, u.online, u.report::jsonb as report
			from unnest($1::text[], $2::text[], $3::boolean[], $4::text[]) u (code, username, online, report)
			join branch b on b.code = u.code join agent_credential a on a.branch_id = b.id and a.revoked_at is null
			 and (a.username = u.username or u.username = '' and not exists (
				select from agent_credential other
				where other.branch_id = a.branch_id and other.revoked_at is null and other.username <> a.username))
			order by a.username for no key update of a
		)
		update agent_credential a
		set online = t.online, seen_at = case when t.online or a.online then $5 else a.seen_at end,
		    report = coalesce(nullif(t.report, a.report), a.report),
		    key_epoch = case when t.report is null then a.key_epoch
		        else greatest(a.issued_epoch, least((t.report ->> 'keyEpoch')::numeric, (select coalesce(max(epoch), 0) from grant_key_list))) end
		from target t where a.username = t.username
		returning t.code, t.given, a.username, a.active,
		    (select to_jsonb(l) from grant_key_list l where t.online and l.epoch = a.key_epoch + 1),
		    (select to_jsonb(l) from broker_list l where t.online and l.epoch > (t.report ->> 'brokerEpoch')::numeric order by l.epoch desc limit 1), a.key_epoch`,
		array(updates, func(u AgentUpdate) string { return u.Agent.Branch }),
		array(updates, func(u AgentUpdate) string { return u.Agent.Username }),
		array(updates, func(u AgentUpdate) bool { return u.Online }), reports, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s SeenAgent, err error) {
		var next []byte
		if err = row.Scan(&s.Agent.Branch, &s.Agent.Username, &s.Username, &s.Active, &next, &s.Brokers, &s.KeyEpoch); err != nil {
			return s, err
		}
		s.NextKeys, err = nextKeys(next)
		return s, err
	})
}

// ActiveAgents returns the agents that are the active ones of their branches.
func ActiveAgents(ctx context.Context, q Querier, agents []protocol.Agent) (map[protocol.Agent]bool, error) {
	rows, err := q.Query(ctx, `
		select distinct s.code, s.username from unnest($1::text[], $2::text[]) s (code, username) join branch b on b.code = s.code
		where `+activeAgent("b.id", "s.username"),
		array(agents, func(a protocol.Agent) string { return a.Branch }),
		array(agents, func(a protocol.Agent) string { return a.Username }))
	if err != nil {
		return nil, err
	}
	active := make(map[protocol.Agent]bool, len(agents))
	var a protocol.Agent
	_, err = pgx.ForEachRow(rows, []any{&a.Branch, &a.Username}, func() error {
		active[a] = true
		return nil
	})
	return active, err
}

// NewAgents returns the user names that become active automatically: credentials that are connected and were never active,
// whose report has every door of the branch without a failed self-test, in branches in which no other credential was online
// within connectedWithin. The machine that a credential replaces does not count: it may just have failed. Neither does one on standby
// then: the operator has named the machine that is to be replaced.
func NewAgents(ctx context.Context, tx pgx.Tx, usernames []string, now time.Time) ([]string, error) {
	rows, err := tx.Query(ctx, `
		select a.username from agent_credential a join branch b on b.id = a.branch_id
		where a.username = any ($1) and a.online and not a.active and a.activated_at is null and a.revoked_at is null
		  and not exists (
			select from agent_credential other
			where other.branch_id = a.branch_id and other.username <> a.username and other.username is distinct from a.replaces
			  and other.seen_at > $2 and (a.replaces is null or other.active))
		  and not exists (
			select from (
				select unnest(b.front_doors) as device
				union all select 'room_' || m.no from room m where m.branch_id = b.id and m.lock <> 'none'
			) door
			where not exists (
				select from jsonb_path_query(a.report, '$.inventory.doors[*]') has where has ->> 'device' = door.device)
			   or exists (
				select from jsonb_path_query(a.report, '$.selfTest[*]') test
				where test ->> 'name' = 'relay ' || door.device and not (test ->> 'ok')::boolean))
		order by a.username for no key update of b`, usernames, now.Add(-connectedWithin))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// ActivateAgent makes a credential the active one of its branch, and returns its branch and last report. The report is nil
// if the agent never connected. It returns ErrNoAgent for an unknown or revoked credential.
func ActivateAgent(ctx context.Context, tx pgx.Tx, username string, now time.Time) (u AgentUpdate, err error) {
	var branchID int
	var report []byte
	err = tx.QueryRow(ctx, `
		select b.id, b.code, a.online, a.report from agent_credential a join branch b on b.id = a.branch_id
		where a.username = $1 and a.revoked_at is null for no key update of b`, username).
		Scan(&branchID, &u.Agent.Branch, &u.Online, &report)
	if errors.Is(err, pgx.ErrNoRows) {
		return u, ErrNoAgent
	}
	if err != nil {
		return u, err
	}
	u.Agent.Username = username
	batch := new(pgx.Batch)
	batch.Queue(`update agent_credential set active = false where branch_id = $1 and active and username <> $2`, branchID, username)
	batch.Queue(`update agent_credential set active = true, activated_at = $2 where username = $1`, username, now)
	batch.Queue(`update agent_inventory set online = $2, presence_since = case when online <> $2 then $3 else presence_since end where branch_id = $1`,
		branchID, u.Online, now)
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return u, err
	}
	if report != nil {
		u.Report = new(AgentReport)
		err = json.Unmarshal(report, u.Report)
	}
	return u, err
}

// ReplacedAgent returns the credential that an activated one replaces, if it is not revoked yet; empty: none.
func ReplacedAgent(ctx context.Context, tx pgx.Tx, username string) (replaced string, err error) {
	err = tx.QueryRow(ctx, `
		select old.username from agent_credential a join agent_credential old on old.username = a.replaces
		where a.username = $1 and old.branch_id = a.branch_id and old.revoked_at is null for no key update of old`, username).Scan(&replaced)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return replaced, err
}

// TakenOver records that another machine connected with a credential while its agent was connected, and opens an alert.
func TakenOver(ctx context.Context, tx pgx.Tx, agent protocol.Agent, now time.Time) error {
	batch := new(pgx.Batch)
	batch.Queue(`update agent_credential set takeovers = takeovers + 1, taken_over_at = $2 where username = $1`, agent.Username, now)
	batch.Queue(`select alert_open('agent-takeover', $1, $2, $3)`, agent.Branch, agent.Username, now)
	return tx.SendBatch(ctx, batch).Close()
}

// EndTakeovers ends the alerts of credentials that no other machine has used since a time.
func EndTakeovers(ctx context.Context, q Querier, since, now time.Time) error {
	_, err := q.Exec(ctx, `
		update alert set ended_at = $2 where kind = 'agent-takeover' and ended_at is null
		  and not exists (select from agent_credential a where a.username = subject and a.revoked_at is null and a.taken_over_at > $1)`,
		since, now)
	return err
}
