package httpapi

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// password reads a password of a body; whether it is good enough is for the account to say.
func password(field string, value *string) (string, error) {
	if value == nil || *value == "" {
		return "", wire.Missing(field)
	}
	if len([]rune(*value)) > maxPassword {
		return "", wire.TooLong(field, maxPassword)
	}
	return *value, nil
}

// showAccount is GET /v2/admin/account: the administrator's own second step and sessions.
func (a *API) showAccount(w http.ResponseWriter, r *http.Request) error {
	me := wire.Principal(r).AdminLoginID
	step, err := postgres.SecondStepOf(r.Context(), a.DB.Pool, me)
	if err != nil {
		return err
	}
	found, err := postgres.AdministratorSessions(r.Context(), a.DB.Pool, me, a.Now())
	if err != nil {
		return err
	}
	ctx, err := a.loadSession(r)
	if err != nil {
		return err
	}
	current := a.Sessions.GetString(ctx, attrSessionID) //nolint:contextcheck // ctx is the request's, with the session
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
		TOTP     bool   `json:"totp"`
		Sessions []item `json:"sessions"`
	}{len(step.Secret) > 0, sessions})
}

// changePassword is POST /v2/admin/account/password. Every other session ends.
func (a *API) changePassword(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Password    *string `json:"password"`
		NewPassword *string `json:"newPassword"`
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
	me := wire.Principal(r)
	if _, err := a.Account.LoginAdministrator(r.Context(), me.AdminLoginID, old, a.client(r)); err != nil {
		return err
	}
	if err := a.Account.SetPassword(r.Context(), me.AdminLoginID, next, me.Actor()); err != nil {
		return err
	}
	if err := a.startSession(w, r, me, adminSessionTTL); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// beginTOTP is POST /v2/admin/account/totp: with the password, a secret for an authenticator.
func (a *API) beginTOTP(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Password *string `json:"password"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	given, err := password("password", body.Password)
	if err != nil {
		return err
	}
	me := wire.Principal(r).AdminLoginID
	if _, err := a.Account.LoginAdministrator(r.Context(), me, given, a.client(r)); err != nil {
		return err
	}
	secret, address, err := a.Account.NewSecondStep(r.Context(), me)
	if err != nil {
		return err
	}
	picture, err := qrRows(address)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return wire.WriteData(w, struct {
		Secret string `json:"secret"`
		URL    string `json:"url"`
		QR     string `json:"qr"`
	}{secret, address, picture})
}

// totpCode reads {code}.
func totpCode(r *http.Request) (string, error) {
	var body struct {
		Code *string `json:"code"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return "", err
	}
	return wire.Text("code", body.Code, 10)
}

// confirmTOTP is PUT /v2/admin/account/totp.
func (a *API) confirmTOTP(w http.ResponseWriter, r *http.Request) error {
	code, err := totpCode(r)
	if err != nil {
		return err
	}
	if err := a.Account.ConfirmSecondStep(r.Context(), wire.Principal(r).AdminLoginID, code, wire.Principal(r).Actor()); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// endTOTP is DELETE /v2/admin/account/totp. It takes a code: an open browser is not enough.
func (a *API) endTOTP(w http.ResponseWriter, r *http.Request) error {
	code, err := totpCode(r)
	if err != nil {
		return err
	}
	me := wire.Principal(r)
	if err := a.Account.SecondFactor(r.Context(), me.AdminLoginID, code); err != nil {
		return err
	}
	if err := a.Account.RemoveSecondStep(r.Context(), me.AdminLoginID, me.Actor()); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// endOwnSession is DELETE /v2/admin/account/sessions/{session}.
func (a *API) endOwnSession(w http.ResponseWriter, r *http.Request) error {
	me := wire.Principal(r).AdminLoginID
	ended, err := postgres.EndAdministratorSession(r.Context(), a.DB.Pool, me, chi.URLParam(r, "session"))
	if err != nil {
		return err
	}
	if !ended {
		return errNoSuchSession
	}
	return a.done(w, r, "", "administrator.sessions-end", me, nil)
}

// noteSession puts into a session what its list shows of it.
func (a *API) noteSession(r *http.Request) map[string]string {
	agent := r.UserAgent()
	if len(agent) > 200 {
		agent = agent[:200]
	}
	return map[string]string{"startedAt": a.Now().UTC().Format(time.RFC3339), "address": a.client(r), "agent": agent}
}
