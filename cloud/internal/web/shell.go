package web

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/company"
)

// screens lists the addresses of the customers' site that src/customer.ts alone renders. The first screens are in screen.go.
var screens = []string{
	"/shell", "/b/{branch}/{date}/{room}/{times}",
	"/book/contact", paymentPath, "/book/confirm", "/book/fail", "/book/receipt",
	"/login", "/my", "/my/{id}/cancel", "/refund/{token}", "/terms", "/privacy", "/franchise",
}

// paymentPath is the only document in which the payment provider's script may run.
const paymentPath = "/book/pay"

//go:embed src/template/shell.html
var shellHTML string

func parseShell() (*template.Template, error) {
	icons, err := readIcons(sources())
	if err != nil {
		return nil, err
	}
	return template.New("shell").Funcs(functions(icons)).Parse(shellHTML)
}

type shellData struct {
	speech

	Title, Description string
	Screen             *screenView // nil: only the browser code renders the screen

	Company  company.Facts
	Brand    brandView
	Style    string
	Script   string
	Preloads []string
}

func (s *site) serveShell(w http.ResponseWriter, r *http.Request) { s.writeShell(w, r, http.StatusOK) }

// serveMissing responds 404 with the shell, which renders a screen for unknown addresses.
func (s *site) serveMissing(w http.ResponseWriter, r *http.Request) {
	s.writeShell(w, r, http.StatusNotFound)
}

func (s *site) writeShell(w http.ResponseWriter, r *http.Request, status int) {
	policy := s.policy.page
	if r.URL.Path == paymentPath {
		policy = s.policy.payment
	}
	s.writeDocument(w, r, s.shell, s.shellOf(w, r), policy, status)
}

// shellOf returns the shell in the language of the request.
func (s *site) shellOf(w http.ResponseWriter, r *http.Request) shellData {
	if r.URL.Path != paymentPath {
		w.Header().Set("Permissions-Policy", permissions+", geolocation=(self)") // for the nearest branches
	}
	now := s.Company(r.Context())
	lang := languageOf(w, r)
	brand := viewOf(now)
	name := brand.Ko
	if lang == "en" {
		name = brand.En
	}
	speech := speech{lang, s.texts[lang], name}
	return shellData{
		speech: speech, Title: name, Description: speech.say("homeAbout"),
		Company:  now.Company,
		Brand:    brand,
		Style:    s.pages.entry["styles/customer.css"],
		Script:   s.pages.entry["customer.ts"],
		Preloads: s.pages.needs["customer.ts"],
	}
}

// writeDocument renders a document and sends it.
func (s *site) writeDocument(w http.ResponseWriter, r *http.Request, document *template.Template, data shellData, policy string, status int) {
	var page bytes.Buffer
	if err := document.Execute(&page, data); err != nil {
		s.fail(w, r, document.Name(), err)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", policy)
	header.Set("Cache-Control", "no-cache")
	header.Set("Vary", "Accept-Encoding, Accept-Language, Cookie")
	writeZipped(w, r, status, page.Bytes(), zip(page.Bytes()))
}

// fail logs an unexpected error and responds 500.
func (s *site) fail(w http.ResponseWriter, r *http.Request, page string, err error) {
	s.Log.ErrorContext(r.Context(), "page failed", "page", page, "error", err)
	http.Error(w, "일시적인 오류가 발생했습니다. 잠시 후 다시 시도해 주세요.", http.StatusInternalServerError)
}
