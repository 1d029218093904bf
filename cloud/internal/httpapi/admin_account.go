package httpapi

import (
	"encoding/json"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// loginAdmin serves POST /admin/login.
func (a *API) loginAdmin(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		ID       *string `json:"id"`
		Password *string `json:"password"`
		Code     *string `json:"code"` // an addition: of the authenticator, where one is set up
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	id, err := wire.Text("id", body.ID, account.MaxLoginID)
	if err != nil {
		return err
	}
	if body.Password == nil || *body.Password == "" {
		return wire.Missing("password")
	}
	if len([]rune(*body.Password)) > account.MaxPassword {
		return wire.TooLong("password", account.MaxPassword)
	}
	principal, err := a.Account.LoginAdministrator(r.Context(), account.PasswordAttempt{
		LoginID: id, Password: *body.Password, Client: a.client(r), Device: account.Device(cookieValue(r, adminDeviceCookie)),
	})
	if err != nil {
		return err
	}
	code, err := wire.OptionalText("code", body.Code, account.MaxSecondFactor)
	if err != nil {
		return err
	}
	if err := a.Account.SecondFactor(r.Context(), principal.AdminLoginID, code); err != nil {
		return err
	}
	return a.startAdmin(w, r, principal)
}

// beginPasskeyLogin serves POST /v2/admin/passkeys/options.
func (a *API) beginPasskeyLogin(w http.ResponseWriter, r *http.Request) error {
	options, err := a.Account.BeginPasskeyLogin(r.Context(), a.client(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, options)
}

// loginWithPasskey serves POST /v2/admin/passkeys/login.
func (a *API) loginWithPasskey(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Credential json.RawMessage `json:"credential"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if len(body.Credential) == 0 {
		return wire.Missing("credential")
	}
	principal, err := a.Account.LoginWithPasskey(r.Context(), a.client(r), body.Credential)
	if err != nil {
		return err
	}
	return a.startAdmin(w, r, principal)
}

// startAdmin starts the session of an administrator.
func (a *API) startAdmin(w http.ResponseWriter, r *http.Request, principal account.Principal) error {
	branches, err := a.Account.BranchList(r.Context(), principal)
	if err != nil {
		return err
	}
	if err := a.Backoffice.LoggedIn(r.Context(), principal.AdminLoginID, principal.Actor()); err != nil {
		return err
	}
	if err := a.Sessions.Start(w, r, principal, session.AdministratorTTL); err != nil {
		return err
	}
	a.setDevice(w, adminDeviceCookie, account.AdministratorSubject(principal.AdminLoginID))
	return wire.WriteData(w, struct {
		AdminLoginID string   `json:"adminLoginId"`
		BranchList   []string `json:"branchList"`
	}{principal.AdminLoginID, branches})
}
