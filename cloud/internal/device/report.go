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

// Announcement is a change of a branch's presence, or a status message of its agent.
type Announcement struct {
	Branch string
	Online bool
	Status *protocol.Status // nil: the broker saw the agent connect or disconnect
}

// Announced stores presence and status messages. If several concern one branch, the last one wins. Offline statuses are
// ignored: a will can arrive after the agent has reconnected, and the broker reports presence itself.
func (s *Service) Announced(ctx context.Context, announced []Announcement) error {
	updates := latest(announced)
	if len(updates) == 0 {
		return nil
	}
	// Agents repeat their status every minute, and it has rarely changed.
	changed, err := postgres.TouchAgents(ctx, s.DB.Pool, updates, s.now())
	if err != nil {
		return fmt.Errorf("device: update presence: %w", err)
	}
	if len(changed) == 0 {
		return nil
	}
	updates = slices.DeleteFunc(updates, func(u postgres.AgentUpdate) bool { return !slices.Contains(changed, u.Branch) })
	var options []postgres.Option
	for _, u := range updates {
		s.logReport(u)
		options = append(options, leaves(u.Branch, u.Report.Inventory.AirConditioners)...)
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.PutAgents(ctx, tx, updates, options, s.now())
	})
	if err != nil {
		return fmt.Errorf("device: store inventory: %w", err)
	}
	return nil
}

// latest merges announcements into one update per branch.
func latest(announced []Announcement) (updates []postgres.AgentUpdate) {
	index := make(map[string]int, len(announced))
	for _, a := range announced {
		if a.Status != nil && !a.Online {
			continue
		}
		at, seen := index[a.Branch]
		if !seen {
			at = len(updates)
			index[a.Branch] = at
			updates = append(updates, postgres.AgentUpdate{Branch: a.Branch})
		}
		updates[at].Online = a.Online
		if a.Status != nil {
			updates[at].Report = &postgres.AgentReport{Version: a.Status.AgentVersion, Inventory: *a.Status.Inventory,
				SelfTest: a.Status.SelfTest, StartedAt: a.Status.StartedAt.UTC().Truncate(time.Microsecond)}
		}
	}
	return updates
}

func (s *Service) logReport(u postgres.AgentUpdate) {
	inventory := u.Report.Inventory
	s.Log.Info("device: agent reported its inventory", "branch", u.Branch, "version", u.Report.Version,
		"doors", len(inventory.Doors), "air_conditioners", len(inventory.AirConditioners), "sensors", len(inventory.Sensors))
	for _, test := range u.Report.SelfTest {
		if !test.OK {
			s.Log.Warn("device: self-test failed", "branch", u.Branch, "test", test.Name, "detail", test.Detail)
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

// Telemetry stores sensor readings and door events.
func (s *Service) Telemetry(ctx context.Context, messages []postgres.Telemetry) error {
	for _, t := range messages {
		for _, e := range t.Events {
			if e.Kind == protocol.EventRelayError || e.Kind == protocol.EventWasEnergized {
				s.Log.Warn("device: door fault", "branch", t.Branch, "device", e.Device, "kind", string(e.Kind), "detail", e.Detail)
			}
		}
	}
	if err := postgres.InsertTelemetry(ctx, s.DB.Pool, messages, s.now()); err != nil {
		return fmt.Errorf("device: store telemetry: %w", err)
	}
	return nil
}
