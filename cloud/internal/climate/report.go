package climate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Announcement is news of whether the agent of a branch is there.
type Announcement struct {
	Branch string
	Online bool
	Status *protocol.Status // what it said about itself; nil: it was seen to come or go
}

// Announced takes which agents came or went, and what they say about themselves. Of several news of a branch the last
// counts. That an agent says it is offline counts for nothing, the broker knows better: a will can be late.
func (s *Service) Announced(ctx context.Context, announced []Announcement) error {
	news := latest(announced)
	if len(news) == 0 {
		return nil
	}
	// Agents repeat their status every minute, and most of the time nothing is new.
	changed, err := postgres.TouchAgents(ctx, s.DB.Pool, news, s.now())
	if err != nil {
		return fmt.Errorf("climate: presence: %w", err)
	}
	if len(changed) == 0 {
		return nil
	}
	news = slices.DeleteFunc(news, func(n postgres.AgentNews) bool { return !slices.Contains(changed, n.Branch) })
	var options []postgres.Option
	for _, n := range news {
		s.logReport(n)
		options = append(options, leaves(n.Branch, n.Report.Inventory.AirConditioners)...)
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.PutAgents(ctx, tx, news, options, s.now())
	})
	if err != nil {
		return fmt.Errorf("climate: inventory: %w", err)
	}
	return nil
}

// latest makes one of all news of a branch.
func latest(announced []Announcement) (news []postgres.AgentNews) {
	place := make(map[string]int, len(announced))
	for _, a := range announced {
		if a.Status != nil && !a.Online {
			continue
		}
		at, seen := place[a.Branch]
		if !seen {
			at = len(news)
			place[a.Branch] = at
			news = append(news, postgres.AgentNews{Branch: a.Branch})
		}
		news[at].Online = a.Online
		if a.Status != nil {
			news[at].Report = &postgres.AgentReport{Version: a.Status.AgentVersion, Inventory: *a.Status.Inventory,
				SelfTest: a.Status.SelfTest, StartedAt: a.Status.StartedAt.UTC().Truncate(time.Microsecond)}
		}
	}
	return news
}

func (s *Service) logReport(n postgres.AgentNews) {
	has := n.Report.Inventory
	s.Log.Info("climate: agent announced itself", "branch", n.Branch, "version", n.Report.Version,
		"doors", len(has.Doors), "air_conditioners", len(has.AirConditioners), "sensors", len(has.Sensors))
	for _, test := range n.Report.SelfTest {
		if !test.OK {
			s.Log.Warn("climate: agent found a fault", "branch", n.Branch, "test", test.Name, "detail", test.Detail)
		}
	}
}

// leaves are the options that can be sent.
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

// Telemetry takes readings and door events.
func (s *Service) Telemetry(ctx context.Context, told []postgres.Telemetry) error {
	for _, t := range told {
		for _, e := range t.Events {
			if e.Kind == protocol.EventRelayError || e.Kind == protocol.EventWasEnergized {
				s.Log.Warn("climate: door fault", "branch", t.Branch, "device", e.Device, "kind", string(e.Kind), "detail", e.Detail)
			}
		}
	}
	return postgres.InsertTelemetry(ctx, s.DB.Pool, told, s.now())
}

// Commanded takes an agent's answer to a command.
func (s *Service) Commanded(_ context.Context, branch string, result protocol.ClimateResult) error {
	s.answer(question{branch, result.RequestID}, result)
	return nil
}

// Measured takes an agent's answer to a read.
func (s *Service) Measured(_ context.Context, branch string, readings protocol.SensorsReadings) error {
	s.answer(question{branch, readings.RequestID}, readings)
	return nil
}
