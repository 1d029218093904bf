package climate

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Presence takes that the agent of a branch came or went.
func (s *Service) Presence(ctx context.Context, branch string, online bool) error {
	return postgres.SetAgentOnline(ctx, s.DB.Pool, branch, online, s.now())
}

// Status takes what an agent says about itself. That it is offline is known better from Presence: a will can be late.
func (s *Service) Status(ctx context.Context, branch string, status protocol.Status) error {
	if status.State != protocol.Online {
		return nil
	}
	report := postgres.AgentReport{Version: status.AgentVersion, Inventory: *status.Inventory,
		StartedAt: status.StartedAt.UTC().Truncate(time.Microsecond)}
	// Agents repeat their status every minute, and most of the time nothing is new.
	same, err := postgres.TouchAgent(ctx, s.DB.Pool, branch, report, s.now())
	if err != nil || same {
		return err
	}
	s.logStatus(branch, status)
	options := leaves(branch, report.Inventory.AirConditioners)
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.PutAgent(ctx, tx, branch, report, options, now); err != nil {
			return err
		}
		return postgres.SetSelfTest(ctx, tx, branch, status.SelfTest)
	})
	if err != nil {
		return fmt.Errorf("climate: inventory: %w", err)
	}
	return nil
}

func (s *Service) logStatus(branch string, status protocol.Status) {
	s.Log.Info("climate: agent announced itself", "branch", branch, "version", status.AgentVersion,
		"doors", len(status.Inventory.Doors), "air_conditioners", len(status.Inventory.AirConditioners),
		"sensors", len(status.Inventory.Sensors))
	for _, test := range status.SelfTest {
		if !test.OK {
			s.Log.Warn("climate: agent found a fault", "branch", branch, "test", test.Name, "detail", test.Detail)
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
func (s *Service) Telemetry(ctx context.Context, branch string, t protocol.Telemetry) error {
	for _, e := range t.Events {
		if e.Kind == protocol.EventRelayError || e.Kind == protocol.EventWasEnergized {
			s.Log.Warn("climate: door fault", "branch", branch, "device", e.Device, "kind", string(e.Kind), "detail", e.Detail)
		}
	}
	return postgres.InsertTelemetry(ctx, s.DB.Pool, branch, t, s.now())
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
