package console

import (
	"encoding/base64"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// ShowCompany serves GET /v2/admin/company: how the operator looks to guests, and which facts are missing.
func (c *Console) ShowCompany(w http.ResponseWriter, r *http.Request) error {
	now, err := c.Company.Read(r.Context())
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		company.Profile
		Logo         *string  `json:"logo"` // address
		Missing      []string `json:"missing"`
		LegalVersion string   `json:"legalVersion"`
	}{now.Profile, now.LogoAddress(), now.Company.Missing(), now.Version})
}

// ChangeCompany serves PUT /v2/admin/company. An absent field becomes empty.
func (c *Console) ChangeCompany(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Company *company.Facts `json:"company"`
		Brand   *company.Brand `json:"brand"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.Company == nil {
		return wire.Missing("company")
	}
	if body.Brand == nil {
		return wire.Missing("brand")
	}
	if err := c.Company.Change(r.Context(), company.Profile{Company: *body.Company, Brand: *body.Brand}, actor(r)); err != nil {
		return err
	}
	return c.ShowCompany(w, r)
}

// PutLogo serves PUT /v2/admin/company/logo with the picture in base64.
func (c *Console) PutLogo(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Data *string `json:"data"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	if body.Data == nil {
		return wire.Missing("data")
	}
	picture, err := base64.StdEncoding.DecodeString(*body.Data)
	if err != nil {
		return wire.Malformed("data")
	}
	if err := c.Company.PutLogo(r.Context(), picture, actor(r)); err != nil {
		return err
	}
	return c.ShowCompany(w, r)
}

// RemoveLogo serves DELETE /v2/admin/company/logo.
func (c *Console) RemoveLogo(w http.ResponseWriter, r *http.Request) error {
	if err := c.Company.RemoveLogo(r.Context(), actor(r)); err != nil {
		return err
	}
	return c.ShowCompany(w, r)
}

type wireText struct {
	Version   string  `json:"version"`
	CreatedAt *string `json:"createdAt"`
	CreatedBy string  `json:"createdBy"` // empty: shipped
	TermsKo   string  `json:"termsKo"`
	TermsEn   string  `json:"termsEn"`
	PrivacyKo string  `json:"privacyKo"`
	PrivacyEn string  `json:"privacyEn"`
}

// ListTexts serves GET /v2/admin/company/texts: all versions of the terms and the privacy policy in Markdown, the current one first.
func (c *Console) ListTexts(w http.ResponseWriter, r *http.Request) error {
	texts, err := c.Company.Texts(r.Context())
	if err != nil {
		return err
	}
	list := make([]wireText, 0, len(texts))
	for _, t := range texts {
		list = append(list, wireText{t.Version, wire.Instant(t.CreatedAt), t.CreatedBy, t.TermsKo, t.TermsEn, t.PrivacyKo, t.PrivacyEn})
	}
	return wire.WriteData(w, map[string]any{"texts": list})
}

// AddText serves POST /v2/admin/company/texts: a new version, which is the current one from now on.
func (c *Console) AddText(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Version   *string `json:"version"`
		TermsKo   *string `json:"termsKo"`
		TermsEn   *string `json:"termsEn"`
		PrivacyKo *string `json:"privacyKo"`
		PrivacyEn *string `json:"privacyEn"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	var text company.Text
	var err error
	if text.Version, err = wire.Text("version", body.Version, 20); err != nil {
		return err
	}
	for _, one := range []struct {
		name  string
		given *string
		into  *string
	}{{"termsKo", body.TermsKo, &text.TermsKo}, {"termsEn", body.TermsEn, &text.TermsEn}, {"privacyKo", body.PrivacyKo, &text.PrivacyKo}, {"privacyEn", body.PrivacyEn, &text.PrivacyEn}} {
		if *one.into, err = wire.OptionalText(one.name, one.given, company.MaxText); err != nil {
			return err
		}
	}
	if err := c.Company.AddText(r.Context(), text, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}
