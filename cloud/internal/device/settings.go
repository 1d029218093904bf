package device

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// ErrSettings is returned for settings that no agent would read. Mistakes in their content are found by the agent.
var ErrSettings = errors.New("device: invalid settings")

// Errors of settings; see package postgres.
var (
	ErrSettingsChanged = postgres.ErrSettingsChanged
	ErrNoSettings      = postgres.ErrNoSettings
)

const (
	// settingsInterval is how often settings are sent until the agent has answered.
	settingsInterval = 2 * time.Second
	// byAgent precedes the user name of an agent as the author of settings that were edited on the machine.
	byAgent = "agent:"
	// fileInterval limits how often an agent may add versions.
	fileInterval = 30 * time.Second
)

// ChangeSettings adds the next version of the settings of an agent and returns its number. The agent receives it as soon as it is
// connected. base is the last version known to the actor; nil: any. It returns ErrSettings, ErrSettingsChanged or
// postgres.ErrNoAgent.
func (s *Service) ChangeSettings(ctx context.Context, username string, base *uint64, text, actor string) (version uint64, err error) {
	if err := protocol.CheckSettings(text); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		version, err = addSettings(ctx, tx, postgres.NewSettings{Username: username, Base: base, Text: text, By: actor}, now)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("device: change the settings of %s: %w", username, err)
	}
	return version, nil
}

// addSettings adds the next version of the settings of an agent, with its audit entry.
func addSettings(ctx context.Context, tx pgx.Tx, n postgres.NewSettings, now time.Time) (uint64, error) {
	branch, err := postgres.BranchOfAgent(ctx, tx, n.Username)
	if err != nil {
		return 0, err
	}
	version, err := postgres.InsertSettings(ctx, tx, n, now)
	if err != nil {
		return 0, err
	}
	return version, postgres.AppendAudit(ctx, tx, audit.Entry{
		Actor: n.By, Branch: branch, Action: "agent.settings", Target: n.Username, Detail: map[string]any{"version": version},
	})
}

// SettingsFile stores settings that were edited on the machine as the next version, unless the agent does not have the last one yet:
// that one counts, because it was made later or is still on its way.
func (s *Service) SettingsFile(ctx context.Context, from protocol.Agent, m protocol.SettingsFile) error {
	author := byAgent + from.Username
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		last, err := postgres.SettingsVersion(ctx, tx, from.Username, 0)
		if err == nil && last.CreatedBy == author && now.Sub(last.CreatedAt) < fileInterval {
			return nil // it repeats its file
		}
		_, err = addSettings(ctx, tx, postgres.NewSettings{Username: from.Username, Base: &m.Base, Text: m.Text, By: author}, now)
		return err
	})
	if errors.Is(err, ErrSettingsChanged) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("device: store the settings of %s: %w", from.Username, err)
	}
	return nil
}

// StepSettings sends the settings that agents have not answered, and stores the answers.
func (s *Service) StepSettings(ctx context.Context) error {
	if s.Send == nil || s.SigningKey == nil {
		return nil
	}
	var open []postgres.OpenSettings
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
		if open, err = postgres.LockOpenSettings(ctx, tx); err != nil {
			return err
		}
		for _, o := range open {
			if err := s.endSettings(ctx, tx, o, now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("device: settings: %w", err)
	}
	var failures []error // one agent that cannot be reached does not keep the others waiting
	for _, o := range open {
		if !o.Online || o.Status == nil || o.Status.Highest >= o.Version {
			continue
		}
		key, err := s.SigningKey(ctx, o.KeyEpoch)
		if err == nil {
			err = s.Send(protocol.Peer{Agent: o.Agent}, protocol.Settings{Version: o.Version, Text: o.Text}.Sign(key, o.Agent))
		}
		if err != nil {
			failures = append(failures, fmt.Errorf("device: send settings to %s: %w", o.Agent.Username, err))
		}
	}
	return errors.Join(failures...)
}

// settingsActions are the actions of the audit log, by the state that an agent has reported.
var settingsActions = map[string]string{
	postgres.SettingsInUse:      "agent.settings-in-use",
	postgres.SettingsRefused:    "agent.settings-refused",
	postgres.SettingsRolledBack: "agent.settings-rolled-back",
}

// endSettings stores the answer of an agent, if there is one.
func (s *Service) endSettings(ctx context.Context, tx pgx.Tx, o postgres.OpenSettings, now time.Time) error {
	state, detail := settingsAnswer(o)
	if state == "" {
		return nil
	}
	s.Log.Info("device: settings", "branch", o.Agent.Branch, "username", o.Agent.Username, "version", o.Version, "state", state, "detail", detail)
	if err := postgres.EndSettings(ctx, tx, o.Agent.Username, o.Version, state, detail, now); err != nil {
		return err
	}
	return postgres.AppendAudit(ctx, tx, audit.Entry{
		Actor: "system", Branch: o.Agent.Branch, Action: settingsActions[state], Target: o.Agent.Username, Detail: map[string]any{"version": o.Version},
	})
}

func settingsAnswer(o postgres.OpenSettings) (state, detail string) {
	switch {
	case o.Status == nil:
		return "", ""
	case o.Status.Version == o.Version:
		return postgres.SettingsInUse, ""
	case o.Status.Ended != nil && o.Status.Ended.Version == o.Version:
		return string(o.Status.Ended.State), o.Status.Ended.Detail
	}
	return "", ""
}

// Settings is a version of the settings of an agent.
type Settings = postgres.AgentSettings

// ListSettings returns the versions of the settings of an agent without their texts, the newest first.
func (s *Service) ListSettings(ctx context.Context, username string) ([]Settings, error) {
	return postgres.SettingsOf(ctx, s.DB.Pool, username)
}

// SettingsReport returns what an agent has reported about its settings last; nil: nothing yet, or it takes none. It returns
// postgres.ErrNoAgent.
func (s *Service) SettingsReport(ctx context.Context, username string) (*protocol.SettingsStatus, error) {
	return postgres.SettingsReport(ctx, s.DB.Pool, username)
}

// ShowSettings returns a version of the settings of an agent; 0: the last one. It returns ErrNoSettings.
func (s *Service) ShowSettings(ctx context.Context, username string, version uint64) (Settings, error) {
	return postgres.SettingsVersion(ctx, s.DB.Pool, username, version)
}
