package httpapi

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/franchise"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// inquireFranchise serves POST /franchise/inquiries.
func (a *API) inquireFranchise(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name           *string `json:"name"`
		MobileNum      *string `json:"mobileNum"`
		Email          *string `json:"email"`
		Region         *string `json:"region"`
		Message        *string `json:"message"`
		PrivacyConsent *bool   `json:"privacyConsent"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	var (
		inquiry franchise.Inquiry
		err     error
	)
	if inquiry.Name, err = wire.Text("name", body.Name, 50); err != nil {
		return err
	}
	if inquiry.Mobile, err = wire.Mobile("mobileNum", body.MobileNum, true); err != nil {
		return err
	}
	if inquiry.Email, err = wire.Email("email", body.Email); err != nil {
		return err
	}
	if inquiry.Email == "" {
		return wire.Missing("email")
	}
	if inquiry.Region, err = wire.Text("region", body.Region, 100); err != nil {
		return err
	}
	if inquiry.Message, err = wire.Text("message", body.Message, 2000); err != nil {
		return err
	}
	switch {
	case body.PrivacyConsent == nil:
		return wire.Missing("privacyConsent")
	case !*body.PrivacyConsent:
		return wire.UnknownValue("privacyConsent")
	}
	if err := a.Franchise.Inquire(r.Context(), inquiry, a.client(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
