package httpapi

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Longest credentials that are looked at.
const (
	maxLoginID  = 100
	maxPassword = 256
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
	id, err := wire.Text("id", body.ID, maxLoginID)
	if err != nil {
		return err
	}
	if body.Password == nil || *body.Password == "" {
		return wire.Missing("password")
	}
	if len([]rune(*body.Password)) > maxPassword {
		return wire.TooLong("password", maxPassword)
	}
	principal, err := a.Account.LoginAdministrator(r.Context(), id, *body.Password, a.client(r))
	if err != nil {
		return err
	}
	code, err := wire.OptionalText("code", body.Code, 10)
	if err != nil {
		return err
	}
	if err := a.Account.SecondFactor(r.Context(), principal.AdminLoginID, code); err != nil {
		return err
	}
	err = postgres.AppendAudit(r.Context(), a.DB.Pool, audit.Entry{
		Actor: principal.Actor(), Action: "administrator.login", Target: principal.AdminLoginID,
	})
	if err != nil {
		return err
	}
	if err := a.startSession(w, r, principal, adminSessionTTL); err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		AdminLoginID string   `json:"adminLoginId"`
		BranchList   []string `json:"branchList"`
	}{principal.AdminLoginID, principal.Branches})
}
