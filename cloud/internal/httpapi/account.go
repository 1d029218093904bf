package httpapi

import (
	"crypto/rand"
	"errors"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// customerBody identifies a customer in both login requests.
type customerBody struct {
	Type *string `json:"type"`
	ID   *string `json:"id"`
}

func (b customerBody) customer() (account.Customer, error) {
	loginType, err := wire.Text("type", b.Type, 20)
	if err != nil {
		return account.Customer{}, err
	}
	switch booking.LoginType(loginType) {
	case booking.LoginMobile:
		id, err := wire.Mobile("id", b.ID, true)
		return account.NewCustomer(booking.LoginMobile, id), err
	case booking.LoginEmail:
		id, err := wire.Email("id", b.ID)
		if err == nil && id == "" {
			err = wire.Missing("id")
		}
		return account.NewCustomer(booking.LoginEmail, id), err
	}
	return account.Customer{}, wire.UnknownValue("type")
}

// sendLoginCode serves POST /account/code.
func (a *API) sendLoginCode(w http.ResponseWriter, r *http.Request) error {
	var body customerBody
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	customer, err := body.customer()
	if err != nil {
		return err
	}
	browser := a.browser(r)
	if browser.Secret == "" {
		browser.Secret = rand.Text()
	}
	if err := a.Account.SendCode(r.Context(), customer, browser, wire.Language(r)); err != nil {
		return err
	}
	a.Sessions.SetCookie(w, browserCookie, browser.Secret, browserTTL)
	return wire.WriteData(w, nil)
}

// loginCustomer serves POST /account/login. It answers with the customer's payments.
func (a *API) loginCustomer(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		customerBody
		Code *string `json:"code"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	customer, err := body.customer()
	if err != nil {
		return err
	}
	code, err := wire.Text("code", body.Code, 20)
	if err != nil {
		return err
	}
	if err := a.Account.CheckCode(r.Context(), customer, a.browser(r), code); err != nil {
		return err
	}
	// The list is read before the session starts: if it fails, the client is not logged in.
	payments, err := a.paymentRecords(r.Context(), customer.Type, customer.ID)
	if err != nil {
		return err
	}
	principal := account.Principal{LoginType: customer.Type, LoginID: customer.ID}
	if err := a.Sessions.Start(w, r, principal, a.CustomerTTL); err != nil {
		return err
	}
	a.setDevice(w, deviceCookie, customer.Subject())
	return wire.WriteData(w, payments)
}

// logoutCustomer serves POST /account/logout. It removes the cookie of a completed purchase, too, because that cookie shows the key; a hold
// stays.
func (a *API) logoutCustomer(w http.ResponseWriter, r *http.Request) error {
	if token := holdToken(r, customerHoldCookie); token != "" {
		bought, err := a.Reserve.ByToken(r.Context(), token)
		switch {
		case err == nil && bought.Method != "":
			a.setHoldCookie(w, customerHoldCookie, "", 0)
		case err != nil && !errors.Is(err, reserve.ErrHoldExpired):
			return err
		}
	}
	return a.logout(w, r)
}

// logout serves POST /admin/logout, and the end of any session. It succeeds without a session too.
func (a *API) logout(w http.ResponseWriter, r *http.Request) error {
	if err := a.Sessions.End(w, r); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// whoAmI serves GET /v2/me, an addition: the session as pages need it.
func (a *API) whoAmI(w http.ResponseWriter, r *http.Request) error {
	p := wire.Principal(r)
	branches, err := a.Account.BranchList(r.Context(), p)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		LoginType    string   `json:"loginType"`
		LoginID      *string  `json:"loginId"`
		AdminLoginID *string  `json:"adminLoginId"`
		Role         *string  `json:"role"`
		BranchList   []string `json:"branchList"`
	}{string(p.LoginType), wire.Nullable(p.LoginID), wire.Nullable(p.AdminLoginID), wire.Nullable(string(p.Role)), branches})
}
