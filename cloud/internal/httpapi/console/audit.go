package console

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// ListAudit serves GET /v2/admin/branches/{branch}/audit?action=&actor=&from=&to=&before=&limit=, newest entry first. The head
// quarters also receives entries that concern no branch.
func (c *Console) ListAudit(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	before, limit, err := wire.Page(r)
	if err != nil {
		return err
	}
	from, until, err := days(r, branch.Zone)
	if err != nil {
		return err
	}
	rows, err := c.Backoffice.Audit(r.Context(), audit.Filter{
		Branch: branch.Code, Global: wire.Principal(r).Role == account.HQ, From: from, Until: until, Before: before, Limit: limit,
		Actions: r.URL.Query().Get("action"), Actor: r.URL.Query().Get("actor"),
	})
	if err != nil {
		return err
	}
	type entry struct {
		ID        string          `json:"id"`
		At        string          `json:"at"`
		Actor     string          `json:"actor"`
		Action    string          `json:"action"`
		Target    string          `json:"target"`
		Detail    json.RawMessage `json:"detail"`
		Address   string          `json:"address"`
		RequestID string          `json:"requestId"`
	}
	entries := make([]entry, 0, len(rows))
	for _, e := range rows {
		if wire.Principal(r).Role == account.Viewer {
			// With the id of a door request, a result can be read.
			e.RequestID, e.Detail = "", audit.WithoutRequestID(e.Detail)
		}
		entries = append(entries, entry{strconv.FormatInt(e.ID, 10), *wire.Instant(e.At), e.Actor, e.Action, e.Target, e.Detail, e.Address, e.RequestID})
	}
	return wire.WriteData(w, map[string]any{"entries": entries})
}

// days reads the optional days from and to of the query, both included, as moments.
func days(r *http.Request, zone *time.Location) (from, until time.Time, err error) {
	for _, field := range []struct {
		name string
		to   *time.Time
		days int
	}{{"from", &from, 0}, {"to", &until, 1}} {
		text := r.URL.Query().Get(field.name)
		if text == "" {
			continue
		}
		day, ok := wire.Day(text)
		if !ok {
			return from, until, wire.Malformed(field.name)
		}
		*field.to = day.AddDays(field.days).At(0, zone)
	}
	return from, until, nil
}
