package console

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// ShowConfirmation is GET /v2/admin/account/confirmation: whether sensitive operations need a proof of the identity, and
// which one.
func (c *Console) ShowConfirmation(w http.ResponseWriter, r *http.Request) error {
	confirmed, err := c.Sessions.Confirmed(r)
	if err != nil {
		return err
	}
	secondFactor, err := c.Backoffice.HasSecondStep(r.Context(), wire.Principal(r).AdminLoginID)
	if err != nil {
		return err
	}
	method := "password"
	if secondFactor {
		method = "code"
	}
	return wire.WriteData(w, struct {
		Confirmed bool   `json:"confirmed"`
		Method    string `json:"method"`
	}{confirmed, method})
}

// ConfirmIdentity is POST /v2/admin/account/confirmation: the password, or a code of the second factor if there is one.
func (c *Console) ConfirmIdentity(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Password *string `json:"password"`
		Code     *string `json:"code"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	me := wire.Principal(r).AdminLoginID
	secondFactor, err := c.Backoffice.HasSecondStep(r.Context(), me)
	if err != nil {
		return err
	}
	if secondFactor {
		code, err := wire.OptionalText("code", body.Code, account.MaxSecondFactor)
		if err != nil {
			return err
		}
		if err := c.Account.SecondFactor(r.Context(), me, code); err != nil {
			return err
		}
	} else {
		given, err := password("password", body.Password)
		if err != nil {
			return err
		}
		if err := c.Account.ConfirmPassword(r.Context(), me, given, "", client(r)); err != nil {
			return err
		}
	}
	if err := c.Sessions.Confirm(r); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
