package httpapi

import (
	"crypto/ed25519"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/protocol"
)

// exchangeToken handles POST /v2/agent/enroll: a machine exchanges its enrolment token for the credential of a branch's
// agent, and may name its public key: it then connects with the key pair. Only this response contains the password.
func (a *API) exchangeToken(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Token     *string `json:"token"`
		PublicKey *string `json:"publicKey"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	token, err := wire.Text("token", body.Token, 100)
	if err != nil {
		return err
	}
	var key ed25519.PublicKey
	if body.PublicKey != nil {
		if key, err = protocol.ParseKey(*body.PublicKey); err != nil {
			return wire.Malformed("publicKey")
		}
	}
	c, err := a.Backoffice.EnrollAgent(r.Context(), token, key)
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
