package web

import (
	"bytes"
	"encoding/json"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/company"
)

// brandView is what every page shows of the brand.
type brandView struct {
	Ko, En string
	Logo   string // address; empty: the shipped mark
	Style  string // address of a style sheet with the colour; empty: the shipped colour
}

func viewOf(now company.Snapshot) (v brandView) {
	v.Ko, v.En = now.Names()
	if logo := now.LogoAddress(); logo != nil {
		v.Logo = *logo
	}
	if now.Brand.Color != "" {
		v.Style = "/brand.css?v=" + now.Brand.Color[1:]
	}
	return v
}

// serveLogo serves the company's logo. Its address contains the version, so browsers may keep it.
func (s *site) serveLogo(w http.ResponseWriter, r *http.Request) {
	logo := s.Company(r.Context()).Logo
	if logo == nil {
		s.serveMissing(w, r)
		return
	}
	s.serveVersion(w, r, logo.Version(), logo.Type, logo.Data)
}

// serveBrandStyle serves the CSS variables of the company's colour.
func (s *site) serveBrandStyle(w http.ResponseWriter, r *http.Request) {
	brand := s.Company(r.Context()).Brand
	version := ""
	if brand.Color != "" {
		version = brand.Color[1:]
	}
	s.serveVersion(w, r, version, mediaTypes[".css"], []byte(brand.Style()))
}

// serveVersion sends a file that browsers may keep if they asked for its present version.
func (s *site) serveVersion(w http.ResponseWriter, r *http.Request, version, mediaType string, body []byte) {
	header := w.Header()
	header.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == version {
		header.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	header.Set("Content-Security-Policy", "default-src 'none'")
	header.Set("Content-Type", mediaType)
	writeZipped(w, r, http.StatusOK, body, body)
}

// serveManifest serves the description of the site for home screens, with the company's name.
func (s *site) serveManifest(w http.ResponseWriter, r *http.Request) {
	name, _ := s.Company(r.Context()).Names()
	quoted, err := json.Marshal(name)
	if err != nil {
		s.fail(w, r, "manifest", err)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	newAsset("manifest.webmanifest", bytes.ReplaceAll(manifest, []byte(`"열다"`), quoted)).serve(w, r)
}
