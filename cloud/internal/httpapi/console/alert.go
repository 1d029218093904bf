package console

import (
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

type wireAlert struct {
	ID             string  `json:"id"`
	Kind           string  `json:"kind"`
	Branch         string  `json:"branch"` // empty: all branches
	Subject        string  `json:"subject"`
	Since          string  `json:"since"`
	NotifiedAt     *string `json:"notifiedAt"`
	AcknowledgedBy *string `json:"acknowledgedBy"`
	AcknowledgedAt *string `json:"acknowledgedAt"`
	EndedAt        *string `json:"endedAt"`
}

func toWireAlert(a alert.Alert) wireAlert {
	return wireAlert{
		ID: strconv.FormatInt(a.ID, 10), Kind: a.Kind, Branch: a.Branch, Subject: a.Subject, Since: *wire.Instant(a.Since),
		NotifiedAt: moment(a.NotifiedAt), AcknowledgedBy: a.AcknowledgedBy, AcknowledgedAt: moment(a.AcknowledgedAt), EndedAt: moment(a.EndedAt),
	}
}

// ListAlerts serves GET /v2/admin/alerts?branch=&state=open|all&cursor=&limit=, newest first: those of the administrator's
// branches, for the headquarters also those of all branches.
func (c *Console) ListAlerts(w http.ResponseWriter, r *http.Request) error {
	branches, err := c.Reach(r)
	if err != nil {
		return err
	}
	filter := alert.Filter{Branches: branches}
	switch r.URL.Query().Get("state") {
	case "", "open":
		filter.Open = true
	case "all":
	default:
		return wire.UnknownValue("state")
	}
	if filter.Before, filter.Limit, err = pageAfter(r); err != nil {
		return err
	}
	limit := filter.Limit
	filter.Limit++ // one more shows whether there is a next page
	found, err := c.Backoffice.Alerts.List(r.Context(), filter)
	if err != nil {
		return err
	}
	var next *string
	if len(found) > limit {
		found = found[:limit]
		next = wire.Nullable(strconv.FormatInt(found[limit-1].ID, 10))
	}
	list := make([]wireAlert, 0, len(found))
	for _, a := range found {
		list = append(list, toWireAlert(a))
	}
	return wire.WriteData(w, struct {
		Alerts []wireAlert `json:"alerts"`
		Next   *string     `json:"next"`
	}{list, next})
}

// Reach returns the branches of a query: the one that it names, or all that the administrator reaches; nil: every branch.
func (c *Console) Reach(r *http.Request) ([]string, error) {
	p := wire.Principal(r)
	if code := r.URL.Query().Get("branch"); code != "" {
		if err := wire.Scope(r, code); err != nil {
			return nil, err
		}
		branch, err := c.Backoffice.Branch(r.Context(), code)
		return []string{branch.Code}, err
	}
	return p.Reach(), nil
}

// pageAfter reads cursor, the id of the last item of the previous page, and limit.
func pageAfter(r *http.Request) (after int64, limit int, err error) {
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		if after, err = strconv.ParseInt(cursor, 10, 64); err != nil || after < 1 {
			return 0, 0, wire.Malformed("cursor")
		}
	}
	limit, err = wire.PageLimit(r)
	return after, limit, err
}

// AcknowledgeAlert serves POST /v2/admin/alerts/{id}/acknowledge: the administrator takes care of it. The first one is kept.
func (c *Console) AcknowledgeAlert(w http.ResponseWriter, r *http.Request) error {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		return alert.ErrNoAlert
	}
	a, err := c.Backoffice.Alerts.ByID(r.Context(), id)
	if err != nil {
		return err
	}
	if err := wire.Scope(r, a.Branch); err != nil {
		return err
	}
	if err := c.Backoffice.Alerts.Acknowledge(r.Context(), a, wire.Principal(r).AdminLoginID, actor(r)); err != nil {
		return err
	}
	if a, err = c.Backoffice.Alerts.ByID(r.Context(), id); err != nil {
		return err
	}
	return wire.WriteData(w, toWireAlert(a))
}

// ShowAlertContacts serves GET /v2/admin/alert-contacts: the contacts of the headquarters.
func (c *Console) ShowAlertContacts(w http.ResponseWriter, r *http.Request) error {
	contacts, err := c.alertContacts(r, "")
	if err != nil {
		return err
	}
	return wire.WriteData(w, map[string]any{"alertContacts": contacts})
}

// ChangeAlertContacts serves PUT /v2/admin/alert-contacts.
func (c *Console) ChangeAlertContacts(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		AlertContacts *[]alert.Contact `json:"alertContacts"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.AlertContacts == nil {
		return wire.Missing("alertContacts")
	}
	if err := c.Backoffice.ChangeAlertContacts(r.Context(), *body.AlertContacts, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
