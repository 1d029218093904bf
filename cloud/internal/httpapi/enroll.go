package httpapi

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// exchangeToken handles POST /v2/agent/enroll: a machine exchanges its enrolment token for the credential of a branch's
// agent. Only this response contains the password.
func (a *API) exchangeToken(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Token *string `json:"token"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	token, err := wire.Text("token", body.Token, 100)
	if err != nil {
		return err
	}
	c, err := a.Backoffice.EnrollAgent(r.Context(), token)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return wire.WriteData(w, struct {
		Branch          string   `json:"branch"`
		Username        string   `json:"username"`
		Password        string   `json:"password"`
		GrantPublicKeys []string `json:"grantPublicKeys"`
	}{c.Branch, c.Username, c.Password, c.GrantPublicKeys})
}
