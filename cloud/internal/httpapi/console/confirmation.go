package console

import (
	"encoding/json"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// ShowConfirmation serves GET /v2/admin/account/confirmation: whether sensitive operations need a proof of the identity, and
// which one.
func (c *Console) ShowConfirmation(w http.ResponseWriter, r *http.Request) error {
	confirmed, err := c.Sessions.Confirmed(r)
	if err != nil {
		return err
	}
	factor, err := c.Backoffice.SecondStep(r.Context(), wire.Principal(r).AdminLoginID)
	if err != nil {
		return err
	}
	method := "password"
	if factor.On() {
		method = "code"
	}
	return wire.WriteData(w, struct {
		Confirmed bool   `json:"confirmed"`
		Method    string `json:"method"`
		Passkey   bool   `json:"passkey"`
	}{confirmed, method, factor.Passkey && c.Account.RelyingParty != nil})
}

// ConfirmIdentity serves POST /v2/admin/account/confirmation: a passkey, a code of the second factor, or the password of an
// administrator without one.
func (c *Console) ConfirmIdentity(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Password   *string         `json:"password"`
		Code       *string         `json:"code"`
		Credential json.RawMessage `json:"credential"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	me, passkey := wire.Principal(r).AdminLoginID, len(body.Credential) > 0
	factor, err := c.Backoffice.SecondStep(r.Context(), me)
	if err != nil {
		return err
	}
	switch {
	case passkey:
		p, err := c.Account.LoginWithPasskey(r.Context(), client(r), body.Credential)
		if err != nil {
			return err
		}
		if p.AdminLoginID != me {
			return account.ErrPasskey
		}
	case factor.On():
		code, err := wire.OptionalText("code", body.Code, account.MaxSecondFactor)
		if err != nil {
			return err
		}
		if err := c.Account.SecondFactor(r.Context(), me, code); err != nil {
			return err
		}
	default:
		given, err := password("password", body.Password)
		if err != nil {
			return err
		}
		if _, err := c.Account.ConfirmPassword(r.Context(), me, given, "", client(r), false); err != nil {
			return err
		}
	}
	if err := c.Sessions.Confirm(r, passkey); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
