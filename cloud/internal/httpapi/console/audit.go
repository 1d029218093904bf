package console

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// ListAudit is GET /v2/admin/branches/{branch}/audit?action=&actor=&from=&to=&before=&limit=, newest entry first. The head
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
	rows, err := c.Backoffice.Audit(r.Context(), audit.Filter{
		Branch: branch.Code, Global: wire.Principal(r).Role == account.HQ, Before: before, Limit: limit,
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
		entries = append(entries, entry{strconv.FormatInt(e.ID, 10), *wire.Instant(e.At), e.Actor, e.Action, e.Target, e.Detail, e.Address, e.RequestID})
	}
	return wire.WriteData(w, map[string]any{"entries": entries})
}
