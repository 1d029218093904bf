package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// maxTokenName is the longest name of a token.
const maxTokenName = 50

// wireToken is a token without its secret.
type wireToken struct {
	ID         string     `json:"id"`
	Name       string     `json:"name"`
	Scopes     []string   `json:"scopes"`
	Branches   []string   `json:"branches"`
	CreatedBy  string     `json:"createdBy"`
	CreatedAt  time.Time  `json:"createdAt"`
	LastUsedAt *time.Time `json:"lastUsedAt"`
	ExpiresAt  *time.Time `json:"expiresAt"`
}

func (c *Console) tokens(r *http.Request) ([]wireToken, error) {
	found, err := c.Account.Tokens(r.Context())
	list := make([]wireToken, 0, len(found))
	for _, t := range found {
		list = append(list, wireToken{strconv.FormatInt(t.ID, 10), t.Name, t.Scopes, t.Branches, t.CreatedBy, t.CreatedAt, t.LastUsedAt, t.ExpiresAt})
	}
	return list, err
}

// ListTokens serves GET /v2/admin/tokens. Only the headquarters manages tokens.
func (c *Console) ListTokens(w http.ResponseWriter, r *http.Request) error {
	list, err := c.tokens(r)
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]any{"tokens": list})
}

// ShowToken serves GET /v2/admin/tokens/{id}.
func (c *Console) ShowToken(w http.ResponseWriter, r *http.Request) error {
	list, err := c.tokens(r)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(t wireToken) bool { return t.ID == chi.URLParam(r, "id") })
	if i < 0 {
		return account.ErrNoToken
	}
	return wire.WriteData(w, list[i])
}

// AddToken serves POST /v2/admin/tokens. Its answer is the only one that contains the token.
func (c *Console) AddToken(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name      *string         `json:"name"`
		Scopes    []account.Scope `json:"scopes"`
		Branches  []string        `json:"branches"`
		ExpiresAt *string         `json:"expiresAt"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	name, err := wire.Text("name", body.Name, maxTokenName)
	if err != nil {
		return err
	}
	if strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return wire.Malformed("name") // it names the actor in the audit log
	}
	token := account.NewToken{Name: name, Scopes: body.Scopes, Branches: body.Branches}
	if body.ExpiresAt != nil {
		expiry, err := time.Parse(time.RFC3339, *body.ExpiresAt)
		if err != nil || expiry.UTC().Year() > 9999 { // JSON has no later year, so the list of tokens would fail
			return wire.Malformed("expiresAt")
		}
		token.ExpiresAt = &expiry
	}
	id, secret, err := c.Account.AddToken(r.Context(), token, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]string{"id": strconv.FormatInt(id, 10), "token": secret})
}

// RemoveToken serves DELETE /v2/admin/tokens/{id}: the token is rejected from the next request on.
func (c *Console) RemoveToken(w http.ResponseWriter, r *http.Request) error {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		return account.ErrNoToken
	}
	if err := c.Account.RemoveToken(r.Context(), id, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
