package console

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// ErrOwnRights is returned when administrators try to reduce their own rights.
var ErrOwnRights = errors.New("console: administrators cannot reduce their own rights")

// ListAdministrators serves GET /v2/admin/administrators. Only the headquarters manages administrators.
func (c *Console) ListAdministrators(w http.ResponseWriter, r *http.Request) error {
	found, err := c.Backoffice.Administrators(r.Context())
	if err != nil {
		return err
	}
	type item struct {
		ID       string   `json:"id"`
		Role     string   `json:"role"`
		Branches []string `json:"branches"`
		Disabled bool     `json:"disabled"`
		Demo     bool     `json:"demo"`
		TOTP     bool     `json:"totp"`
		Sessions int      `json:"sessions"`
	}
	list := make([]item, 0, len(found))
	for _, s := range found {
		list = append(list, item{s.LoginID, s.Role, s.Branches, s.Disabled, s.Demo, s.SecondStep, s.Sessions})
	}
	return wire.WriteData(w, map[string]any{"administrators": list})
}

// AddAdministrator serves POST /v2/admin/administrators.
func (c *Console) AddAdministrator(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		ID       *string  `json:"id"`
		Password *string  `json:"password"`
		Role     *string  `json:"role"`
		Branches []string `json:"branches"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	id, err := wire.Text("id", body.ID, account.MaxLoginID)
	if err != nil {
		return err
	}
	secret, err := password("password", body.Password)
	if err != nil {
		return err
	}
	role, err := wire.Text("role", body.Role, 20)
	if err != nil {
		return err
	}
	err = c.Account.AddAdministrator(r.Context(), account.NewAdministrator{LoginID: id, Password: secret, Role: account.Role(role), Branches: body.Branches}, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// ChangeAdministrator serves PUT /v2/admin/administrators/{id}: role and branches. The headquarters' own role is protected.
func (c *Console) ChangeAdministrator(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Role     *string  `json:"role"`
		Branches []string `json:"branches"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	role, err := wire.Text("role", body.Role, 20)
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if id == wire.Principal(r).AdminLoginID && account.Role(role) != account.HQ {
		return ErrOwnRights
	}
	if err := c.Account.ChangeRights(r.Context(), id, account.Role(role), body.Branches, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// SwitchAdministrator serves PATCH /v2/admin/administrators/{id}: {disabled}.
func (c *Console) SwitchAdministrator(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Disabled *bool `json:"disabled"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.Disabled == nil {
		return wire.Missing("disabled")
	}
	id := chi.URLParam(r, "id")
	if id == wire.Principal(r).AdminLoginID {
		return ErrOwnRights
	}
	change := c.Account.EnableAdministrator
	if *body.Disabled {
		change = c.Account.DisableAdministrator
	}
	if err := change(r.Context(), id, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// ResetPassword serves POST /v2/admin/administrators/{id}/password.
func (c *Console) ResetPassword(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Password *string `json:"password"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	secret, err := password("password", body.Password)
	if err != nil {
		return err
	}
	if err := c.Account.SetPassword(r.Context(), chi.URLParam(r, "id"), secret, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// RemoveTOTP serves DELETE /v2/admin/administrators/{id}/totp, for an administrator who lost the authenticator.
func (c *Console) RemoveTOTP(w http.ResponseWriter, r *http.Request) error {
	if err := c.Account.RemoveSecondFactor(r.Context(), chi.URLParam(r, "id"), actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// EndSessions serves DELETE /v2/admin/administrators/{id}/sessions.
func (c *Console) EndSessions(w http.ResponseWriter, r *http.Request) error {
	if err := c.Account.EndSessions(r.Context(), chi.URLParam(r, "id"), actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
