// Package rollout updates the agents of all branches in waves, or changes their settings. An agent that does worse with the new version stops the
// rollout, and every agent that has the new version returns to the previous one.
//
//	waiting ─► asked ─► healthy        connected with the new version, and no self-test worse, for the settle time
//	             └────► failed         rolled back by the Pi itself, or worse, or not installed in time: stops the rollout
//	stop: asked, healthy ─► reverting ─► reverted
//	resume: reverted ─► waiting; failed ─► skipped
//	skip the offline agents: waiting ─► skipped
package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

const (
	// DefaultSettle is how long a new version is watched before it counts as healthy. The trial on the Pi takes two to five minutes.
	DefaultSettle = 5 * time.Minute
	// MinSettle and MaxSettle bound it.
	MinSettle, MaxSettle = 5 * time.Second, time.Hour

	interval     = 3 * time.Second
	fetchTimeout = 20 * time.Second
	maxManifest  = 64 << 10
	// maxFailures is the share of the asked agents, in percent, that may fail after the first wave.
	maxFailures = 5
)

// DefaultWaves are the percentages of the agents in each wave.
var DefaultWaves = []int{1, 10, 100}

// Errors of rollouts.
var (
	// ErrOpen and ErrNone are those of package postgres.
	ErrOpen, ErrNone = postgres.ErrRolloutOpen, postgres.ErrNoRollout
	// ErrNoPackage is returned if the packages of a version cannot be fetched.
	ErrNoPackage = errors.New("rollout: no packages of that version")
	// ErrUnchanged is returned if a change of settings changes those of no agent.
	ErrUnchanged = errors.New("rollout: the settings of no agent change")
	// ErrInvalid is returned for a version, waves, a settle time or settings that are not valid.
	ErrInvalid = errors.New("rollout: invalid version, waves or settle time")
)

// Service rolls out versions. DB, Log and Packages are required; Send is set before Run.
type Service struct {
	DB       *postgres.DB
	Log      *slog.Logger
	Packages string // address of the folder with the packages and their manifests; see manifest
	Send     func(to protocol.Peer, m protocol.Message) error
}

// manifest fetches the signed packages of a version from yeolda-agent_VERSION.json: a protocol.Update whose addresses are
// relative to the manifest. The agents verify the signatures, with a key that the cloud does not have.
func (s *Service) manifest(ctx context.Context, version string) ([]protocol.Package, error) {
	base, err := url.Parse(s.Packages)
	if err != nil || base.Host == "" {
		return nil, fmt.Errorf("%w: YEOLDA_AGENT_PACKAGES is not an address", ErrNoPackage)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	address := base.JoinPath("yeolda-agent_" + version + ".json")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPackage, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxManifest))
	if err != nil || response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%w: %s returned %s", ErrNoPackage, address.Host, response.Status)
	}
	var m protocol.Update
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoPackage, err)
	}
	for i, p := range m.Packages {
		relative, err := url.Parse(p.URL)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoPackage, err)
		}
		m.Packages[i].URL = address.ResolveReference(relative).String()
	}
	if err := m.Validate(); err != nil || m.Version != version {
		return nil, fmt.Errorf("%w: the manifest is not valid: %w", ErrNoPackage, err)
	}
	return m.Packages, nil
}

// packages fetches the packages of a version, and those of the agents' present versions for the way back.
func (s *Service) packages(ctx context.Context, version string) (map[string][]protocol.Package, error) {
	packages := make(map[string][]protocol.Package)
	var err error
	if packages[version], err = s.manifest(ctx, version); err != nil {
		return nil, err
	}
	present, err := postgres.AgentCredentials(ctx, s.DB.Pool)
	if err != nil {
		return nil, fmt.Errorf("rollout: %w", err)
	}
	for _, a := range present {
		if _, known := packages[a.Version]; known || a.State() != "active" || !protocol.ValidVersion(a.Version) {
			continue
		}
		if packages[a.Version], err = s.manifest(ctx, a.Version); err != nil {
			s.Log.Warn("rollout: agents cannot return to their present version", "version", a.Version, "error", err)
			delete(packages, a.Version)
		}
	}
	return packages, nil
}

// Start begins a rollout. No waves and no settle time stand for the defaults. It returns ErrInvalid, ErrNoPackage or
// postgres.ErrRolloutOpen.
func (s *Service) Start(ctx context.Context, version string, waves []int, settle time.Duration, actor string) error {
	waves, settle = withDefaults(waves, settle)
	if !protocol.ValidVersion(version) || !valid(waves) || settle < MinSettle || settle > MaxSettle {
		return ErrInvalid
	}
	packages, err := s.packages(ctx, version)
	if err != nil {
		return err
	}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r := postgres.Rollout{Kind: postgres.RolloutPackage, Version: version, Waves: waves, Settle: settle, Packages: packages, CreatedBy: actor}
		if err := postgres.InsertRollout(ctx, tx, r, now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Action: "agent.rollout", Target: version})
	})
	if err != nil {
		return fmt.Errorf("rollout: start: %w", err)
	}
	return nil
}

func withDefaults(waves []int, settle time.Duration) ([]int, time.Duration) {
	if len(waves) == 0 {
		waves = DefaultWaves
	}
	if settle == 0 {
		settle = DefaultSettle
	}
	return waves, settle
}

// valid reports whether waves rise to 100 percent.
func valid(waves []int) bool {
	last := 0
	for _, w := range waves {
		if w <= last || w > 100 {
			return false
		}
		last = w
	}
	return last == 100 && len(waves) <= 10
}

// Last returns the last rollout. It returns postgres.ErrNoRollout if there was none.
func (s *Service) Last(ctx context.Context) (postgres.Rollout, error) {
	return postgres.LastRollout(ctx, s.DB.Pool)
}

// Stop ends the open rollout and returns the updated agents to their versions before. It changes nothing if they return already, so the
// reason of the first stop stays. It returns postgres.ErrNoRollout.
func (s *Service) Stop(ctx context.Context, actor string) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockLastRollout(ctx, tx) // waits for a step
		if err != nil {
			return err
		}
		if !r.EndedAt.IsZero() {
			return ErrNone
		}
		if r.State == goingBack {
			return nil
		}
		revert(&r, "stopped by "+actor, now)
		if err := addSettings(ctx, tx, &r, now); err != nil {
			return err
		}
		if err := postgres.PutRollout(ctx, tx, r); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Action: "agent.rollout-stop", Target: r.Version})
	})
	if err != nil {
		return fmt.Errorf("rollout: stop: %w", err)
	}
	return nil
}

// SkipOffline leaves out the agents that are not connected and wait for the version, so that the open rollout ends without them
// (docs/specification.md, Agent protocol 33). It returns postgres.ErrNoRollout, also while a stopped rollout goes back.
func (s *Service) SkipOffline(ctx context.Context, actor string) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		r, err := postgres.LockLastRollout(ctx, tx) // waits for a step
		if err != nil {
			return err
		}
		if r.State != running {
			return ErrNone
		}
		names := skipOffline(&r)
		if len(names) == 0 {
			return nil
		}
		if err := postgres.PutRollout(ctx, tx, r); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: actor, Action: "agent.rollout-skip", Target: r.Version, Detail: map[string]any{"agents": names}})
	})
	if err != nil {
		return fmt.Errorf("rollout: skip offline agents: %w", err)
	}
	return nil
}

// Run continues the open rollout until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.Step(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error("rollout: not continued", "error", err)
		}
	}
}

// Step judges the agents of the open rollout once, and asks those whose turn it is. Replicas take turns.
func (s *Service) Step(ctx context.Context) error {
	var r postgres.Rollout
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
		if r, err = postgres.LockRollout(ctx, tx); err != nil {
			return err
		}
		advance(&r, now)
		if err := addSettings(ctx, tx, &r, now); err != nil {
			return err
		}
		return postgres.PutRollout(ctx, tx, r)
	})
	if errors.Is(err, postgres.ErrNoRollout) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("rollout: %w", err)
	}
	var failures []error // one agent that cannot be reached does not keep the others waiting
	for _, m := range r.Members {
		version := wanted(r, m)
		packages := r.Packages[version]
		if version == "" || len(packages) == 0 || !m.Online || m.Version == version {
			continue
		}
		to := protocol.Peer{Agent: protocol.Agent{Branch: m.Branch, Username: m.Username}}
		update := protocol.Update{Version: version, Packages: packages, Rollout: uint64(r.ID)} //nolint:gosec // from a sequence
		if err := s.Send(to, update); err != nil {
			failures = append(failures, fmt.Errorf("rollout: ask %s: %w", m.Username, err))
		}
	}
	return errors.Join(failures...)
}

// wanted returns the version that an agent is asked to install, or "".
func wanted(r postgres.Rollout, m postgres.RolloutMember) string {
	switch m.State {
	case asked:
		return r.Version
	case reverting:
		return m.BeforeVersion
	}
	return ""
}
