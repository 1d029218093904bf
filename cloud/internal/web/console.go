package web

import (
	_ "embed"
	"html/template"
	"net/http"
)

//go:embed src/template/console.html
var consoleHTML string

func parseConsole() (*template.Template, error) {
	return template.New("console").Parse(consoleHTML)
}

// serveConsole serves the single document of the administrators' console, whose screens are in src/console.ts. It loads
// no third-party code, so it gets the strictest policy.
func (s *site) serveConsole(w http.ResponseWriter, r *http.Request) {
	s.writeDocument(w, r, s.console, shellData{
		Brand:    viewOf(s.Company(r.Context())),
		Style:    s.pages.entry["styles/console.css"],
		Script:   s.pages.entry["console.ts"],
		Preloads: s.pages.needs["console.ts"],
	}, s.policy.page, http.StatusOK)
}
