package console

import (
	"net/http"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// ShowProof serves GET /v2/admin/proof?since=: the rules, checked now. Without since all rows are examined.
func (c *Console) ShowProof(w http.ResponseWriter, r *http.Request) error {
	var since time.Time
	if text := r.URL.Query().Get("since"); text != "" {
		var err error
		if since, err = time.Parse(time.RFC3339, text); err != nil {
			return wire.Malformed("since")
		}
	}
	signed, err := c.Proofs.Run(r.Context(), since)
	if err != nil {
		return err
	}
	return wire.WriteData(w, signed)
}

// ListProofs serves GET /v2/admin/proofs: the stored nightly proofs, newest first.
func (c *Console) ListProofs(w http.ResponseWriter, r *http.Request) error {
	kept, err := c.Proofs.Kept(r.Context())
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]any{"proofs": kept})
}
