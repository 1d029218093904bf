package device

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Announcement is a change of an agent's presence, or a status message.
type Announcement struct {
	Agent  protocol.Agent
	Online bool
	Status *protocol.Status // nil: the broker saw the agent connect or disconnect
}

// Announced stores presence and status messages. If several concern one agent, the last one wins. Offline statuses are
// ignored: a will can arrive after the agent has reconnected, and the broker reports presence itself.
//
// Of each credential the last report is kept. Only that of the active agent describes the branch.
func (s *Service) Announced(ctx context.Context, announced []Announcement) error {
	updates := latest(announced)
	if len(updates) == 0 {
		return nil
	}
	seen, err := postgres.SeeAgents(ctx, s.DB.Pool, updates, s.now())
	if err != nil {
		return fmt.Errorf("device: record presence: %w", err)
	}
	active := make(map[protocol.Agent]bool, len(seen))
	var standby []string // with a new report
	for _, a := range seen {
		active[a.Agent] = a.Active
		if a.NextKeys != nil && a.Agent.Username != "" && s.OfferKeys != nil {
			s.OfferKeys(a.Agent, *a.NextKeys)
		}
		if a.Brokers != nil && a.Agent.Username != "" {
			s.sendBrokers(ctx, a)
		}
		reported := slices.ContainsFunc(updates, func(u postgres.AgentUpdate) bool { return u.Agent == a.Agent && u.Report != nil })
		if !a.Active && reported {
			standby = append(standby, a.Username)
		}
	}
	if err := s.update(ctx, slices.DeleteFunc(updates, func(u postgres.AgentUpdate) bool { return !active[u.Agent] })); err != nil {
		return err
	}
	if err := s.putContacts(ctx, announced, active); err != nil {
		return err
	}
	return s.activateNew(ctx, standby)
}

// putContacts stores the levels of door contacts that active agents report.
func (s *Service) putContacts(ctx context.Context, announced []Announcement, active map[protocol.Agent]bool) error {
	var contacts []postgres.Contact
	for _, a := range announced {
		if a.Status == nil || !active[a.Agent] {
			continue
		}
		for _, c := range a.Status.Contacts {
			if contact := (postgres.Contact{Branch: a.Agent.Branch, Contact: c}); contact.Settled() {
				contacts = append(contacts, contact)
			}
		}
	}
	if len(contacts) == 0 {
		return nil
	}
	if err := postgres.PutContacts(ctx, s.DB.Pool, contacts, s.now()); err != nil {
		return fmt.Errorf("device: store contacts: %w", err)
	}
	return nil
}

// update stores the presence and the reports of active agents as those of their branches.
func (s *Service) update(ctx context.Context, updates []postgres.AgentUpdate) error {
	if len(updates) == 0 {
		return nil
	}
	// Agents repeat their status every minute, and it has rarely changed.
	changed, err := postgres.TouchAgents(ctx, s.DB.Pool, updates, s.now())
	if err != nil {
		return fmt.Errorf("device: update presence: %w", err)
	}
	updates = slices.DeleteFunc(updates, func(u postgres.AgentUpdate) bool { return !slices.Contains(changed, u.Agent.Branch) })
	if len(updates) == 0 {
		return nil
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return s.putReports(ctx, tx, updates) })
	if err != nil {
		return fmt.Errorf("device: store inventory: %w", err)
	}
	return nil
}

func (s *Service) putReports(ctx context.Context, tx pgx.Tx, updates []postgres.AgentUpdate) error {
	var options []postgres.Option
	for _, u := range updates {
		s.logReport(u)
		options = append(options, leaves(u.Agent.Branch, u.Report.Inventory.AirConditioners)...)
	}
	return postgres.PutAgents(ctx, tx, updates, options, s.now())
}

// latest merges announcements into one update per agent.
func latest(announced []Announcement) (updates []postgres.AgentUpdate) {
	index := make(map[protocol.Agent]int, len(announced))
	for _, a := range announced {
		if a.Status != nil && !a.Online {
			continue
		}
		at, seen := index[a.Agent]
		if !seen {
			at = len(updates)
			index[a.Agent] = at
			updates = append(updates, postgres.AgentUpdate{Agent: a.Agent})
		}
		updates[at].Online = a.Online
		if a.Status != nil {
			updates[at].Report = &postgres.AgentReport{Version: a.Status.AgentVersion, Inventory: *a.Status.Inventory,
				SelfTest: a.Status.SelfTest, KeyEpoch: a.Status.KeyEpoch, BrokerEpoch: a.Status.BrokerEpoch, Update: a.Status.Update, Settings: a.Status.Settings,
				Diagnostics: a.Status.Diagnostics, StartedAt: a.Status.StartedAt.UTC().Truncate(time.Microsecond)}
			if passes := a.Status.Passes; passes != nil {
				updates[at].Report.PassClock = passes.Clock
			}
		}
	}
	return updates
}

func (s *Service) logReport(u postgres.AgentUpdate) {
	inventory := u.Report.Inventory
	s.Log.Info("device: agent reported its inventory", "branch", u.Agent.Branch, "username", u.Agent.Username, "version", u.Report.Version,
		"doors", len(inventory.Doors), "air_conditioners", len(inventory.AirConditioners), "sensors", len(inventory.Sensors))
	for _, test := range u.Report.SelfTest {
		if !test.OK {
			s.Log.Warn("device: self-test failed", "branch", u.Agent.Branch, "test", test.Name, "detail", test.Detail)
		}
	}
}

// leaves returns the options that correspond to an infrared code.
func leaves(branch string, units []protocol.AirConditioner) (options []postgres.Option) {
	for _, u := range units {
		var walk func(path []string, of []protocol.Option)
		walk = func(path []string, of []protocol.Option) {
			for _, o := range of {
				below := append(path[:len(path):len(path)], o.Name)
				if len(o.Children) > 0 {
					walk(below, o.Children)
					continue
				}
				options = append(options, postgres.Option{ID: protocol.LeafID(branch, u.Name, below...), Branch: branch,
					Unit: u.Name, Path: below})
			}
		}
		walk(nil, u.Options)
	}
	return options
}

// Telemetry stores the sensor readings and door events of active agents.
func (s *Service) Telemetry(ctx context.Context, messages []postgres.Telemetry) error {
	agents := make([]protocol.Agent, len(messages))
	for i, m := range messages {
		agents[i] = m.Agent
	}
	active, err := postgres.ActiveAgents(ctx, s.DB.Pool, agents)
	if err != nil {
		return fmt.Errorf("device: find active agents: %w", err)
	}
	messages = slices.DeleteFunc(slices.Clone(messages), func(m postgres.Telemetry) bool { return !active[m.Agent] })
	for i, m := range messages {
		messages[i].Events = slices.DeleteFunc(slices.Clone(m.Events), func(e protocol.Event) bool { return !e.Kind.Known() })
		for _, e := range m.Events {
			if e.Kind == protocol.EventRelayError || e.Kind == protocol.EventWasEnergized {
				s.Log.Warn("device: door fault", "branch", m.Agent.Branch, "device", e.Device, "kind", string(e.Kind), "detail", e.Detail)
			}
		}
	}
	if err := postgres.InsertTelemetry(ctx, s.DB.Pool, messages, s.now()); err != nil {
		return fmt.Errorf("device: store telemetry: %w", err)
	}
	return nil
}
