package console

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

type wireEntity struct {
	Entity    string        `json:"entity"`
	Company   company.Facts `json:"company"`
	ClientKey string        `json:"clientKey"`
	Branches  []string      `json:"branches"`
	UpdatedAt *string       `json:"updatedAt"`
	RetiredAt *string       `json:"retiredAt"` // null: in use
}

// ListEntities serves GET /v2/admin/entities: the legal entities beside that of the settings. Secret keys are never read back:
//
//	{entities: [{entity, company, clientKey, branches, updatedAt, retiredAt}]}
func (c *Console) ListEntities(w http.ResponseWriter, r *http.Request) error {
	entities, err := c.Entities.List(r.Context())
	if err != nil {
		return err
	}
	list := make([]wireEntity, 0, len(entities))
	for _, e := range entities {
		list = append(list, wireEntity{e.Code, e.Facts, e.ClientKey, e.Branches, wire.Instant(e.UpdatedAt), wire.Instant(e.RetiredAt)})
	}
	return wire.WriteData(w, map[string]any{"entities": list})
}

// PutEntity serves PUT /v2/admin/entities/{entity}: {company, clientKey, widgetSecretKey?, apiSecretKey?}. It adds a legal entity
// or replaces its facts and client key; an absent secret key stays as it is.
func (c *Console) PutEntity(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Company         *company.Facts `json:"company"`
		ClientKey       *string        `json:"clientKey"`
		WidgetSecretKey *string        `json:"widgetSecretKey"`
		APISecretKey    *string        `json:"apiSecretKey"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.Company == nil {
		return wire.Missing("company")
	}
	change := company.EntityChange{Code: chi.URLParam(r, "entity"), Facts: *body.Company}
	var err error
	if change.ClientKey, err = wire.Text("clientKey", body.ClientKey, company.MaxKey); err != nil {
		return err
	}
	if change.WidgetSecretKey, err = wire.OptionalText("widgetSecretKey", body.WidgetSecretKey, company.MaxKey); err != nil {
		return err
	}
	if change.APISecretKey, err = wire.OptionalText("apiSecretKey", body.APISecretKey, company.MaxKey); err != nil {
		return err
	}
	if err := c.Entities.Put(r.Context(), change, actor(r)); err != nil {
		return err
	}
	return c.ListEntities(w, r)
}

// SwitchEntity serves PATCH /v2/admin/entities/{entity}: {enabled}. It retires a legal entity, or takes it back into use.
func (c *Console) SwitchEntity(w http.ResponseWriter, r *http.Request) error {
	enabled, err := wire.DecodeEnabled(r)
	if err != nil {
		return err
	}
	if err := c.Entities.Retire(r.Context(), chi.URLParam(r, "entity"), !enabled, actor(r)); err != nil {
		return err
	}
	return c.ListEntities(w, r)
}

// AssignEntity serves PUT /v2/admin/branches/{branch}/entity: {entity}. The entity sells at the branch from now on; null: that of
// the settings.
func (c *Console) AssignEntity(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	var body struct {
		Entity optional[*string] `json:"entity"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if !body.Entity.given {
		return wire.Missing("entity")
	}
	code := ""
	if given := body.Entity.value; given != nil {
		if code, err = wire.Text("entity", given, company.MaxKey); err != nil {
			return err
		}
	}
	if err := c.Entities.Assign(r.Context(), branch, code, actor(r)); err != nil {
		return err
	}
	return c.ListEntities(w, r)
}
