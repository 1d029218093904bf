package httpapi

import (
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

type wireLegalText struct {
	Ko string `json:"ko"`
	En string `json:"en"`
}

// showLegal serves GET /v2/legal?version= (public): the terms and the privacy policy of a version, or of the current one, in HTML
// without scripts.
//
//	{version, effectiveFrom (date), current, terms: {ko, en}, privacy: {ko, en}, versions, the newest first}
func (a *API) showLegal(w http.ResponseWriter, r *http.Request) error {
	version, err := wire.OptionalText("version", new(r.URL.Query().Get("version")), 20)
	if err != nil {
		return err
	}
	text, err := a.Company.Text(r.Context(), version)
	if err != nil {
		return err
	}
	versions, err := a.Company.Versions(r.Context())
	if err != nil {
		return err
	}
	now := a.Company.Current(r.Context())
	ko, en := now.Names()
	page := func(markdown, other, brand string) string {
		if markdown == "" {
			markdown = other
		}
		rendered, failed := company.HTML(markdown, now.Company, brand)
		if failed != nil {
			err = failed
		}
		return rendered
	}
	terms := wireLegalText{page(text.TermsKo, "", ko), page(text.TermsEn, text.TermsKo, en)}
	privacy := wireLegalText{page(text.PrivacyKo, "", ko), page(text.PrivacyEn, text.PrivacyKo, en)}
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Version       string        `json:"version"`
		EffectiveFrom string        `json:"effectiveFrom"`
		Current       bool          `json:"current"`
		Terms         wireLegalText `json:"terms"`
		Privacy       wireLegalText `json:"privacy"`
		Versions      []string      `json:"versions"`
	}{text.Version, text.EffectiveFrom(), text.Version == versions[0], terms, privacy, versions})
}
