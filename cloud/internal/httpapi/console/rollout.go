package console

import (
	"errors"
	"net/http"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/rollout"
)

// StartRollout serves POST /v2/admin/agents/rollout: the agents install a version in waves, or use changed settings.
func (c *Console) StartRollout(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Version       *string `json:"version"`
		Waves         []int   `json:"waves"`
		SettleSeconds *int    `json:"settleSeconds"`
		Change        *struct {
			Agents []string `json:"agents"`
			Old    string   `json:"old"`
			New    string   `json:"new"`
		} `json:"change"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	settle := rollout.DefaultSettle
	if body.SettleSeconds != nil {
		settle = time.Duration(*body.SettleSeconds) * time.Second
	}
	by := actor(r)
	if change := body.Change; change != nil {
		if body.Version != nil {
			return &wire.FieldError{Field: "change", Problem: "값은 version과 함께 보낼 수 없습니다."}
		}
		if err := c.Rollouts.StartSettings(r.Context(), rollout.Change(*change), body.Waves, settle, by); err != nil {
			return err
		}
		return c.ShowRollout(w, r)
	}
	version, err := wire.Text("version", body.Version, 64)
	if err != nil {
		return err
	}
	if err := c.Rollouts.Start(r.Context(), version, body.Waves, settle, by); err != nil {
		return err
	}
	return c.ShowRollout(w, r)
}

// StopRollout serves DELETE /v2/admin/agents/rollout: the updated agents return to the previous version.
func (c *Console) StopRollout(w http.ResponseWriter, r *http.Request) error {
	if err := c.Rollouts.Stop(r.Context(), actor(r)); err != nil {
		return err
	}
	return c.ShowRollout(w, r)
}

// ResumeRollout serves POST /v2/admin/agents/rollout/resume: the stopped rollout continues at its wave.
func (c *Console) ResumeRollout(w http.ResponseWriter, r *http.Request) error {
	if err := c.Rollouts.Resume(r.Context(), actor(r)); err != nil {
		return err
	}
	return c.ShowRollout(w, r)
}

// SkipOffline serves POST /v2/admin/agents/rollout/skip-offline: the open rollout does not wait for the agents that are not connected.
func (c *Console) SkipOffline(w http.ResponseWriter, r *http.Request) error {
	if err := c.Rollouts.SkipOffline(r.Context(), actor(r)); err != nil {
		return err
	}
	return c.ShowRollout(w, r)
}

type rolloutAgent struct {
	Username string  `json:"username"`
	Branch   string  `json:"branch"`
	Wave     int     `json:"wave"`
	State    string  `json:"state"`
	Online   bool    `json:"online"`
	Version  *string `json:"version"`
	Detail   *string `json:"detail"`
}

type rolloutState struct {
	Kind          string         `json:"kind"`
	Version       string         `json:"version"`
	Waves         []int          `json:"waves"`
	Wave          int            `json:"wave"`
	SettleSeconds int            `json:"settleSeconds"`
	State         string         `json:"state"`
	Reason        *string        `json:"reason"`
	CreatedBy     string         `json:"createdBy"`
	CreatedAt     string         `json:"createdAt"`
	EndedAt       *string        `json:"endedAt"`
	Agents        []rolloutAgent `json:"agents"`
}

// ShowRollout serves GET /v2/admin/agents/rollout: the last rollout, or null.
func (c *Console) ShowRollout(w http.ResponseWriter, r *http.Request) error {
	last, err := c.Rollouts.Last(r.Context())
	if errors.Is(err, rollout.ErrNone) {
		return wire.WriteData(w, map[string]any{"rollout": nil})
	}
	if err != nil {
		return err
	}
	agents := []rolloutAgent{}
	for _, m := range last.Members {
		agents = append(agents, rolloutAgent{m.Username, m.Branch, m.Wave, m.State, m.Online, wire.Nullable(m.Version), wire.Nullable(m.Detail)})
	}
	return wire.WriteData(w, map[string]any{"rollout": rolloutState{
		Kind: last.Kind, Version: last.Version, Waves: last.Waves, Wave: last.Wave, SettleSeconds: int(last.Settle.Seconds()), State: last.State,
		Reason: wire.Nullable(last.Reason), CreatedBy: last.CreatedBy, CreatedAt: *wire.Instant(last.CreatedAt),
		EndedAt: wire.Instant(last.EndedAt), Agents: agents,
	}})
}
