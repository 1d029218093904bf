package console

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// password reads a password from a body. Whether it is strong enough is checked by package account.
func password(field string, value *string) (string, error) {
	if value == nil || *value == "" {
		return "", wire.Missing(field)
	}
	if len([]rune(*value)) > account.MaxPassword {
		return "", wire.TooLong(field, account.MaxPassword)
	}
	return *value, nil
}

// ShowAccount serves GET /v2/admin/account: the administrator's own second step and sessions.
func (c *Console) ShowAccount(w http.ResponseWriter, r *http.Request) error {
	me := wire.Principal(r).AdminLoginID
	secondStep, err := c.Backoffice.SecondStep(r.Context(), me)
	if err != nil {
		return err
	}
	passkeys, err := c.passkeys(r)
	if err != nil {
		return err
	}
	found, err := c.Backoffice.Sessions(r.Context(), me)
	if err != nil {
		return err
	}
	current, err := c.Sessions.ID(r)
	if err != nil {
		return err
	}
	type item struct {
		ID        string  `json:"id"`
		StartedAt *string `json:"startedAt"`
		Address   *string `json:"address"`
		Agent     *string `json:"agent"`
		ExpiresAt string  `json:"expiresAt"`
		Current   bool    `json:"current"`
	}
	sessions := make([]item, 0, len(found))
	for _, s := range found {
		sessions = append(sessions, item{s.ID, s.StartedAt, s.Address, s.Agent, *wire.Instant(s.ExpiresAt), s.ID == current})
	}
	return wire.WriteData(w, struct {
		TOTP              bool          `json:"totp"`
		PasskeysAvailable bool          `json:"passkeysAvailable"`
		Passkeys          []passkeyItem `json:"passkeys"`
		Sessions          []item        `json:"sessions"`
	}{len(secondStep.Secret) > 0, c.Account.RelyingParty != nil, passkeys, sessions})
}

// ChangePassword serves POST /v2/admin/account/password. All other sessions of the administrator end.
func (c *Console) ChangePassword(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Password    *string `json:"password"`
		NewPassword *string `json:"newPassword"`
		Code        *string `json:"code"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	old, err := password("password", body.Password)
	if err != nil {
		return err
	}
	next, err := password("newPassword", body.NewPassword)
	if err != nil {
		return err
	}
	me, err := c.confirm(r, old, body.Code)
	if err != nil {
		return err
	}
	if me, err = c.Account.ChangePassword(r.Context(), me, next); err != nil {
		return err
	}
	if err := c.Sessions.Start(w, r, me, session.AdministratorTTL); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// BeginTOTP serves POST /v2/admin/account/totp: in exchange for the password, a new secret for an authenticator app.
func (c *Console) BeginTOTP(w http.ResponseWriter, r *http.Request) error {
	if err := c.confirmBody(r); err != nil {
		return err
	}
	secret, address, err := c.Account.NewSecondStep(r.Context(), wire.Principal(r).AdminLoginID)
	if err != nil {
		return err
	}
	picture, err := wire.QR(address)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Secret string `json:"secret"`
		URL    string `json:"url"`
		QR     string `json:"qr"`
	}{secret, address, picture})
}

// confirmBody is confirm with the body {password, code} of a request.
func (c *Console) confirmBody(r *http.Request) error {
	var body struct {
		Password *string `json:"password"`
		Code     *string `json:"code"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	given, err := password("password", body.Password)
	if err != nil {
		return err
	}
	_, err = c.confirm(r, given, body.Code)
	return err
}

// confirm checks the password and, if there is one, the second factor of the administrator who is logged in. A passkey that was
// used in the last minutes is the second factor.
func (c *Console) confirm(r *http.Request, password string, code *string) (account.Principal, error) {
	given, err := wire.OptionalText("code", code, account.MaxSecondFactor)
	if err != nil {
		return account.Principal{}, err
	}
	passkey, err := c.Sessions.UsedPasskey(r)
	if err != nil {
		return account.Principal{}, err
	}
	return c.Account.ConfirmPassword(r.Context(), wire.Principal(r).AdminLoginID, password, given, client(r), passkey)
}

// NewRecoveryCodes serves POST /v2/admin/account/recovery-codes: codes that replace the second factor once each.
func (c *Console) NewRecoveryCodes(w http.ResponseWriter, r *http.Request) error {
	if err := c.confirmBody(r); err != nil {
		return err
	}
	codes, err := c.Account.NewRecoveryCodes(r.Context(), wire.Principal(r).AdminLoginID, actor(r))
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Codes []string `json:"codes"`
	}{codes})
}

// totpCode reads {code}.
func totpCode(r *http.Request) (string, error) {
	var body struct {
		Code *string `json:"code"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return "", err
	}
	return wire.Text("code", body.Code, account.MaxSecondFactor)
}

// ConfirmTOTP serves PUT /v2/admin/account/totp.
func (c *Console) ConfirmTOTP(w http.ResponseWriter, r *http.Request) error {
	code, err := totpCode(r)
	if err != nil {
		return err
	}
	if err := c.Account.ConfirmSecondStep(r.Context(), wire.Principal(r).AdminLoginID, code, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// EndTOTP serves DELETE /v2/admin/account/totp. It requires a code, so that an unattended browser is not enough.
func (c *Console) EndTOTP(w http.ResponseWriter, r *http.Request) error {
	code, err := totpCode(r)
	if err != nil {
		return err
	}
	me := wire.Principal(r)
	if err := c.Account.SecondFactor(r.Context(), me.AdminLoginID, code); err != nil {
		return err
	}
	if err := c.Account.RemoveSecondStep(r.Context(), me.AdminLoginID, me.Actor()); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// EndOwnSession serves DELETE /v2/admin/account/sessions/{session}.
func (c *Console) EndOwnSession(w http.ResponseWriter, r *http.Request) error {
	if err := c.Backoffice.EndSession(r.Context(), wire.Principal(r).AdminLoginID, chi.URLParam(r, "session"), actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
