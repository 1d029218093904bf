package httpapi

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/franchise"
)

// inquireFranchise is POST /franchise/inquiries (decisions.md 12).
func (a *API) inquireFranchise(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name           *string `json:"name"`
		MobileNum      *string `json:"mobileNum"`
		Email          *string `json:"email"`
		Region         *string `json:"region"`
		Message        *string `json:"message"`
		PrivacyConsent *bool   `json:"privacyConsent"`
	}
	if err := decode(r, &body); err != nil {
		return err
	}
	var (
		inquiry franchise.Inquiry
		err     error
	)
	if inquiry.Name, err = text("name", body.Name, 50); err != nil {
		return err
	}
	if inquiry.Mobile, err = mobile("mobileNum", body.MobileNum, true); err != nil {
		return err
	}
	if inquiry.Email, err = email("email", body.Email); err != nil {
		return err
	}
	if inquiry.Email == "" {
		return missing("email")
	}
	if inquiry.Region, err = text("region", body.Region, 100); err != nil {
		return err
	}
	if inquiry.Message, err = text("message", body.Message, 2000); err != nil {
		return err
	}
	switch {
	case body.PrivacyConsent == nil:
		return missing("privacyConsent")
	case !*body.PrivacyConsent:
		return unknownValue("privacyConsent")
	}
	if err := a.Franchise.Inquire(r.Context(), inquiry, a.client(r)); err != nil {
		return err
	}
	return writeData(w, nil)
}
