package console

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

type settingsVersion struct {
	Version   uint64  `json:"version"`
	State     string  `json:"state"`
	Detail    *string `json:"detail"`
	StateAt   string  `json:"stateAt"`
	CreatedBy string  `json:"createdBy"`
	CreatedAt string  `json:"createdAt"`
}

func wireAgentSettings(s device.Settings) settingsVersion {
	return settingsVersion{s.Version, s.State, wire.Nullable(s.Detail), *wire.Instant(s.StateAt), s.CreatedBy, *wire.Instant(s.CreatedAt)}
}

// ListAgentSettings serves GET /v2/admin/agents/{username}/settings: the versions of an agent's settings, the newest first, and what the
// agent has reported about them.
func (c *Console) ListAgentSettings(w http.ResponseWriter, r *http.Request) error {
	username, _, err := c.agent(r)
	if err != nil {
		return err
	}
	found, err := c.Devices.ListSettings(r.Context(), username)
	if err != nil {
		return err
	}
	versions := make([]settingsVersion, 0, len(found))
	for _, s := range found {
		versions = append(versions, wireAgentSettings(s))
	}
	report, err := c.Devices.SettingsReport(r.Context(), username)
	if err != nil {
		return err
	}
	var trial *uint64
	if report != nil && report.Trial != 0 {
		trial = &report.Trial
	}
	return wire.WriteData(w, struct {
		Supported bool              `json:"supported"`
		Trial     *uint64           `json:"trial"`
		Versions  []settingsVersion `json:"versions"`
	}{report != nil, trial, versions})
}

// ShowAgentSettings serves GET /v2/admin/agents/{username}/settings/{version}.
func (c *Console) ShowAgentSettings(w http.ResponseWriter, r *http.Request) error {
	username, _, err := c.agent(r)
	if err != nil {
		return err
	}
	version, err := strconv.ParseUint(chi.URLParam(r, "version"), 10, 63)
	if err != nil || version == 0 {
		return device.ErrNoSettings
	}
	found, err := c.Devices.ShowSettings(r.Context(), username, version)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		settingsVersion
		Settings string `json:"settings"`
	}{wireAgentSettings(found), found.Text})
}

// ChangeAgentSettings serves PUT /v2/admin/agents/{username}/settings: adds a version, which is sent to the agent.
func (c *Console) ChangeAgentSettings(w http.ResponseWriter, r *http.Request) error {
	username, _, err := c.agent(r)
	if err != nil {
		return err
	}
	var body struct {
		Settings *string `json:"settings"`
		Base     *uint64 `json:"base"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if wire.Blank(body.Settings) {
		return wire.Missing("settings")
	}
	if body.Base == nil {
		return wire.Missing("base")
	}
	version, err := c.Devices.ChangeSettings(r.Context(), username, body.Base, *body.Settings, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]any{"version": version})
}
