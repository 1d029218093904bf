package postgres

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/protocol"
)

// AgentUpdate is the latest state of an agent.
type AgentUpdate struct {
	Agent  protocol.Agent
	Online bool
	Report *AgentReport // nil: the agent only connected or disconnected
}

// AgentReport describes an agent and its devices.
type AgentReport struct {
	Version     string                   `json:"version"`
	StartedAt   time.Time                `json:"startedAt"` // by the agent's clock
	Inventory   protocol.Inventory       `json:"inventory"`
	SelfTest    []protocol.SelfTest      `json:"selfTest"`
	KeyEpoch    uint64                   `json:"keyEpoch"`              // of the grant keys in use
	BrokerEpoch *uint64                  `json:"brokerEpoch,omitempty"` // of the list of brokers in use; nil: the agent takes none
	Update      *protocol.UpdateStatus   `json:"update,omitempty"`      // nil: none
	Settings    *protocol.SettingsStatus `json:"settings,omitempty"`    // nil: the agent takes none from the cloud

	Diagnostics *protocol.DiagnosticsStatus `json:"diagnostics,omitempty"` // nil: the agent has none

	PassClock protocol.ClockState `json:"passClock,omitempty"` // empty: the agent judges no passes
}

// Option is a leaf of an air conditioner's option tree.
type Option struct {
	ID     string   `json:"id"`
	Branch string   `json:"branch"` // code
	Unit   string   `json:"unit"`
	Path   []string `json:"path"`
}

// TouchAgents records whether the active agents of branches are connected, if their reports are unchanged or missing.
// updates has each branch at most once. It returns the branches with a new report, for PutAgents. If a branch has no report
// yet, an agent that disconnects does not add one.
func TouchAgents(ctx context.Context, q Querier, updates []AgentUpdate, now time.Time) (changed []string, err error) {
	c, err := columnsOf(updates)
	if err != nil {
		return nil, err
	}
	// Rows are locked in the order of their branches, because another replica may update the same ones.
	rows, err := q.Query(ctx, `
		with news as (
			select * from unnest($1::text[], $2::boolean[], $3::text[], $4::timestamptz[], $5::text[], $7::text[])
				n (code, online, version, started_at, inventory, self_test)
		), known as (
			select i.branch_id, n.code, n.online,
				n.version is null or (i.version, i.started_at, i.inventory, i.self_test) = (n.version, n.started_at, n.inventory::jsonb, n.self_test::jsonb) as same
			from news n join branch b on b.code = n.code join agent_inventory i on i.branch_id = b.id
			order by i.branch_id for no key update of i
		), touched as (
			update agent_inventory i set online = k.online, seen_at = case when k.online then $6 else i.seen_at end,
				presence_since = case when i.online <> k.online then $6 else i.presence_since end
			from known k where i.branch_id = k.branch_id and k.same
			returning k.code
		)
		select n.code from news n join branch b on b.code = n.code
		where n.version is not null and n.code not in (select code from touched)`,
		c.branches, c.online, c.versions, c.startedAt, c.inventories, now, c.selfTests)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// PutAgents stores the reports of active agents, and replaces the options of their air conditioners and the sensors of climate
// policies. Each update has a report.
func PutAgents(ctx context.Context, tx pgx.Tx, updates []AgentUpdate, options []Option, now time.Time) error {
	c, err := columnsOf(updates)
	if err != nil {
		return err
	}
	ids := make([]string, len(options))
	for i, o := range options {
		ids[i] = o.ID
	}
	leaves, err := json.Marshal(append([]Option{}, options...)) // [], never null
	if err != nil {
		return err
	}
	batch := new(pgx.Batch)
	batch.Queue(`
		insert into agent_inventory (branch_id, version, started_at, seen_at, online, inventory, self_test, presence_since)
		select b.id, n.version, n.started_at, $7, n.online, n.inventory::jsonb, n.self_test::jsonb, $7
		from unnest($1::text[], $2::boolean[], $3::text[], $4::timestamptz[], $5::text[], $6::text[])
			n (code, online, version, started_at, inventory, self_test)
		join branch b on b.code = n.code
		order by b.id
		on conflict (branch_id) do update set version = excluded.version, started_at = excluded.started_at,
			seen_at = excluded.seen_at, online = excluded.online, inventory = excluded.inventory, self_test = excluded.self_test,
			presence_since = case when agent_inventory.online <> excluded.online then $7 else agent_inventory.presence_since end`,
		c.branches, c.online, c.versions, c.startedAt, c.inventories, c.selfTests, now)
	batch.Queue(`
		delete from airconditioner_option o using branch b
		where b.id = o.branch_id and b.code = any ($1) and o.id <> all ($2)`, c.branches, ids)
	// An id is a hash over branch, unit and path, so an existing row has the same three.
	batch.Queue(`
		insert into airconditioner_option (id, branch_id, unit, path)
		select o.id, b.id, o.unit, array(select jsonb_array_elements_text(o.path))
		from jsonb_to_recordset($1::jsonb) o (id text, branch text, unit text, path jsonb) join branch b on b.code = o.branch
		order by o.id
		on conflict do nothing`, string(leaves))
	batch.Queue(`
		update climate_policy p set sensor = n.sensor
		from (select m.id, `+sensorOfRoom+` as sensor from room m join branch b on b.id = m.branch_id where b.code = any ($1)) n
		where n.id = p.room_id and p.sensor is distinct from n.sensor`, c.branches)
	return tx.SendBatch(ctx, batch).Close()
}

// agentColumns are updates as arguments for unnest.
type agentColumns struct {
	branches    []string
	online      []bool
	versions    []*string
	startedAt   []*time.Time
	inventories []*string
	selfTests   []*string
}

func columnsOf(updates []AgentUpdate) (c agentColumns, err error) {
	for _, u := range updates {
		var version, inventory, selfTest *string
		var startedAt *time.Time
		if r := u.Report; r != nil {
			encoded, err := json.Marshal(r.Inventory)
			if err != nil {
				return c, err
			}
			tests, err := json.Marshal(append([]protocol.SelfTest{}, r.SelfTest...)) // [], never null
			if err != nil {
				return c, err
			}
			version, startedAt, inventory, selfTest = &r.Version, &r.StartedAt, new(string(encoded)), new(string(tests))
		}
		c.branches, c.online, c.versions = append(c.branches, u.Agent.Branch), append(c.online, u.Online), append(c.versions, version)
		c.startedAt, c.inventories, c.selfTests = append(c.startedAt, startedAt), append(c.inventories, inventory), append(c.selfTests, selfTest)
	}
	return c, nil
}
