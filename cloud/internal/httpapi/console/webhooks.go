package console

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/events"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// maxWebhookURL is the longest address of a receiver.
const maxWebhookURL = 500

// ListWebhooks serves GET /v2/admin/webhooks. Only the headquarters manages webhooks.
func (c *Console) ListWebhooks(w http.ResponseWriter, r *http.Request) error {
	found, err := c.Webhooks.List(r.Context())
	if err != nil {
		return err
	}
	type item struct {
		ID           string     `json:"id"`
		URL          string     `json:"url"`
		Types        []string   `json:"types"`
		Branches     []string   `json:"branches"`
		Enabled      bool       `json:"enabled"`
		CreatedBy    string     `json:"createdBy"`
		CreatedAt    time.Time  `json:"createdAt"`
		FailingSince *time.Time `json:"failingSince"`
		DisabledAt   *time.Time `json:"disabledAt"`
		Pending      int        `json:"pending"`
		DeliveredAt  *time.Time `json:"deliveredAt"`
	}
	list := make([]item, 0, len(found))
	for _, h := range found {
		list = append(list, item{
			strconv.FormatInt(h.ID, 10), h.URL, h.Types, h.Branches, h.Enabled, h.CreatedBy, h.CreatedAt, h.FailingSince, h.DisabledAt, h.Pending, h.DeliveredAt,
		})
	}
	return wire.WriteData(w, map[string]any{"webhooks": list})
}

// AddWebhook serves POST /v2/admin/webhooks. Its answer is the only one that contains the signing secret.
func (c *Console) AddWebhook(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		URL      *string  `json:"url"`
		Types    []string `json:"types"`
		Branches []string `json:"branches"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	address, err := wire.Text("url", body.URL, maxWebhookURL)
	if err != nil {
		return err
	}
	id, secret, err := c.Webhooks.Add(r.Context(), events.NewWebhook{URL: address, Types: body.Types, Branches: body.Branches}, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]string{"id": strconv.FormatInt(id, 10), "secret": secret})
}

// SwitchWebhook serves PATCH /v2/admin/webhooks/{id}: {enabled}.
func (c *Console) SwitchWebhook(w http.ResponseWriter, r *http.Request) error {
	enabled, err := wire.DecodeEnabled(r)
	if err != nil {
		return err
	}
	id, err := c.ownWebhook(r)
	if err != nil {
		return err
	}
	if err := c.Webhooks.Enable(r.Context(), id, enabled, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// RemoveWebhook serves DELETE /v2/admin/webhooks/{id}.
func (c *Console) RemoveWebhook(w http.ResponseWriter, r *http.Request) error {
	id, err := c.ownWebhook(r)
	if err != nil {
		return err
	}
	if err := c.Webhooks.Remove(r.Context(), id, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// ReplayWebhook serves POST /v2/admin/webhooks/{id}/replay: {after}, the id of an event, as text or as a number.
func (c *Console) ReplayWebhook(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		After json.RawMessage `json:"after"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if len(body.After) == 0 || string(body.After) == "null" {
		return wire.Missing("after")
	}
	after, err := strconv.ParseInt(strings.Trim(string(body.After), `"`), 10, 64)
	if err != nil || after < 0 {
		return wire.Malformed("after")
	}
	id, err := c.ownWebhook(r)
	if err != nil {
		return err
	}
	if err := c.Webhooks.Replay(r.Context(), id, after, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// ListDeliveries serves GET /v2/admin/webhooks/{id}/deliveries?before=&limit=.
func (c *Console) ListDeliveries(w http.ResponseWriter, r *http.Request) error {
	before, limit, err := wire.Page(r)
	if err != nil {
		return err
	}
	id, err := webhookID(r)
	if err != nil {
		return err
	}
	found, err := c.Webhooks.Deliveries(r.Context(), id, before, limit)
	if err != nil {
		return err
	}
	type item struct {
		Event       string     `json:"event"`
		Type        string     `json:"type"`
		Subject     string     `json:"subject"`
		State       string     `json:"state"`
		Attempts    int        `json:"attempts"`
		NextAt      *time.Time `json:"nextAt"`
		LastAt      *time.Time `json:"lastAt"`
		Status      *int       `json:"status"`
		Error       *string    `json:"error"`
		DeliveredAt *time.Time `json:"deliveredAt"`
	}
	list := make([]item, 0, len(found))
	for _, d := range found {
		i := item{strconv.FormatInt(d.Place, 10), d.Type, d.Subject, "delivered", d.Attempts, nil, d.LastAt, d.Status, d.Error, d.DeliveredAt}
		if d.DeliveredAt == nil {
			i.State, i.NextAt = "pending", &d.NextAt
		}
		list = append(list, i)
	}
	return wire.WriteData(w, map[string]any{"deliveries": list})
}

// ownWebhook returns the webhook that a request may change. A token without the scope book changes only what it has added.
func (c *Console) ownWebhook(r *http.Request) (int64, error) {
	id, err := webhookID(r)
	if p := wire.Principal(r); err == nil && !p.Has(account.ScopeBook) {
		err = c.Webhooks.AddedBy(r.Context(), id, p.Actor())
	}
	return id, err
}

func webhookID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		return 0, events.ErrNoWebhook
	}
	return id, nil
}
