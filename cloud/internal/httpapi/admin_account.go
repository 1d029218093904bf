package httpapi

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// loginAdmin is POST /admin/login.
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
	}{principal.AdminLoginID, principal.Branches})
}
