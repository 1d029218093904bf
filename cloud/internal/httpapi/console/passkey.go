package console

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

type passkeyItem struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	CreatedAt  string  `json:"createdAt"`
	LastUsedAt *string `json:"lastUsedAt"`
}

// passkeys returns the own passkeys.
func (c *Console) passkeys(r *http.Request) ([]passkeyItem, error) {
	found, err := c.Account.Passkeys(r.Context(), wire.Principal(r).AdminLoginID)
	if err != nil {
		return nil, err
	}
	items := make([]passkeyItem, 0, len(found))
	for _, p := range found {
		item := passkeyItem{ID: strconv.FormatInt(p.ID, 10), Name: p.Name, CreatedAt: p.CreatedAt.UTC().Format(time.RFC3339)}
		if p.LastUsedAt != nil {
			item.LastUsedAt = wire.Instant(*p.LastUsedAt)
		}
		items = append(items, item)
	}
	return items, nil
}

// BeginPasskey serves POST /v2/admin/account/passkeys/options: in exchange for the password, and the second factor if there is
// one, the options with which the browser makes a passkey.
func (c *Console) BeginPasskey(w http.ResponseWriter, r *http.Request) error {
	if err := c.confirmBody(r); err != nil {
		return err
	}
	options, err := c.Account.BeginPasskey(r.Context(), wire.Principal(r).AdminLoginID)
	if err != nil {
		return err
	}
	return wire.WriteData(w, options)
}

// AddPasskey serves POST /v2/admin/account/passkeys: the passkey that the browser made. Its options prove that the password was
// given.
func (c *Console) AddPasskey(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name       *string         `json:"name"`
		Credential json.RawMessage `json:"credential"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	name, err := wire.Text("name", body.Name, account.MaxPasskeyName)
	if err != nil {
		return err
	}
	if len(body.Credential) == 0 {
		return wire.Missing("credential")
	}
	id, err := c.Account.AddPasskey(r.Context(), wire.Principal(r).AdminLoginID, name, body.Credential, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		ID string `json:"id"`
	}{strconv.FormatInt(id, 10)})
}

// RemovePasskey serves DELETE /v2/admin/account/passkeys/{id}. It requires the password, and the second factor: a code, or the use
// of a passkey in the last minutes.
func (c *Console) RemovePasskey(w http.ResponseWriter, r *http.Request) error {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		return account.ErrNoPasskey
	}
	if err := c.confirmBody(r); err != nil {
		return err
	}
	if err := c.Account.RemovePasskey(r.Context(), wire.Principal(r).AdminLoginID, id, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
