package rollout

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// settingsName is the version of a rollout of settings: what its agents use instead of a numbered version of their own.
const settingsName = "settings"

// Change is a change of the settings of agents: a text is replaced wherever it occurs. It concerns the active agents whose settings
// contain it.
type Change struct {
	Agents   []string // user names; none: all
	Old, New string
}

// StartSettings begins a rollout of changed settings. Each agent also tries them by itself, and returns to the previous ones if it does not
// reach the service with them. It returns ErrInvalid, ErrUnchanged or postgres.ErrRolloutOpen.
func (s *Service) StartSettings(ctx context.Context, change Change, waves []int, settle time.Duration, actor string) error {
	waves, settle = withDefaults(waves, settle)
	if change.Old == "" || !valid(waves) || settle < MinSettle || settle > MaxSettle {
		return ErrInvalid
	}
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r := postgres.Rollout{Kind: postgres.RolloutSettings, Version: settingsName, Waves: waves, Settle: settle, CreatedBy: actor,
			Change: &postgres.SettingsChange{Old: change.Old, New: change.New}}
		texts, err := postgres.SettingsOfAll(ctx, tx)
		if err != nil {
			return err
		}
		for username, text := range texts {
			changed := strings.ReplaceAll(text, change.Old, change.New)
			if changed == text || len(change.Agents) > 0 && !slices.Contains(change.Agents, username) {
				continue
			}
			if err := protocol.CheckSettings(changed); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrInvalid, username, err)
			}
			r.Members = append(r.Members, postgres.RolloutMember{Username: username, Settings: changed})
		}
		if len(r.Members) == 0 {
			return ErrUnchanged
		}
		if err := postgres.InsertRollout(ctx, tx, r, now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Action: "agent.settings-rollout", Target: settingsName,
			Detail: map[string]any{"old": change.Old, "new": change.New, "agents": len(r.Members)}})
	})
	if err != nil {
		return fmt.Errorf("rollout: start: %w", err)
	}
	return nil
}

// addSettings makes the versions of settings that agents are now to use: those of the rollout, or the previous ones once more. Package device
// sends them.
func addSettings(ctx context.Context, tx pgx.Tx, r *postgres.Rollout, now time.Time) error {
	if r.Kind != postgres.RolloutSettings {
		return nil
	}
	for i := range r.Members {
		m := &r.Members[i]
		var err error
		switch {
		case m.State == asked && m.Goal == 0:
			err = addChanged(ctx, tx, r, m, now)
		case m.State == reverting && m.Back == 0:
			m.Back, err = addBefore(ctx, tx, r, m, now)
		}
		if errors.Is(err, postgres.ErrNoAgent) || errors.Is(err, postgres.ErrNoSettings) {
			m.Detail = "the agent is revoked, or its settings before are not in the service"
			if m.State == asked {
				m.State = skipped
			} else {
				m.State = unreverted
			}
		} else if err != nil {
			return fmt.Errorf("settings of %s: %w", m.Username, err)
		}
	}
	return nil
}

// addChanged makes the changed version of the settings that an agent uses. They may have changed since the rollout was begun.
func addChanged(ctx context.Context, tx pgx.Tx, r *postgres.Rollout, m *postgres.RolloutMember, now time.Time) (err error) {
	text := m.Settings
	if r.Change != nil {
		present, err := before(ctx, tx, m)
		if err != nil {
			return err
		}
		text = strings.ReplaceAll(present, r.Change.Old, r.Change.New)
		if text == present {
			m.State, m.Detail, m.BeforeVersion = healthy, "its settings do not contain the text", ""
			return nil
		}
		if err := protocol.CheckSettings(text); err != nil {
			m.State, m.Detail, m.Failure = failed, err.Error(), err.Error()
			return nil
		}
	}
	m.Goal, err = postgres.InsertSettings(ctx, tx, postgres.NewSettings{Username: m.Username, Text: text, By: r.CreatedBy}, now)
	return err
}

func addBefore(ctx context.Context, tx pgx.Tx, r *postgres.Rollout, m *postgres.RolloutMember, now time.Time) (uint64, error) {
	text, err := before(ctx, tx, m)
	if err != nil {
		return 0, err
	}
	return postgres.InsertSettings(ctx, tx, postgres.NewSettings{Username: m.Username, Text: text, By: r.CreatedBy}, now)
}

// before returns the settings that an agent used when it was asked. It returns ErrNoSettings if they are not in the service.
func before(ctx context.Context, tx pgx.Tx, m *postgres.RolloutMember) (string, error) {
	number, err := strconv.ParseUint(m.BeforeVersion, 10, 64)
	if err != nil || number == 0 {
		return "", postgres.ErrNoSettings
	}
	found, err := postgres.SettingsVersion(ctx, tx, m.Username, number)
	return found.Text, err
}
