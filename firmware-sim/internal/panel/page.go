package panel

import (
	"embed"
	"net/http"

	"github.com/go-chi/chi/v5"
)

//go:embed page
var files embed.FS

// policy allows the page its own files and its own socket only, and the stage beside it to show it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"

// page serves the live page.
func page(r chi.Router) {
	serve := func(name, contentType string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Security-Policy", policy)
			h.Set("Content-Type", contentType)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "no-referrer")
			h.Set("Cache-Control", "no-cache")
			http.ServeFileFS(w, r, files, "page/"+name)
		}
	}
	r.Get("/", serve("panel.html", "text/html; charset=utf-8"))
	r.Get("/panel.css", serve("panel.css", "text/css; charset=utf-8"))
	r.Get("/icon.svg", serve("icon.svg", "image/svg+xml"))
	for _, script := range []string{"panel.js", "draw.js", "words.js"} {
		r.Get("/"+script, serve(script, "text/javascript; charset=utf-8"))
	}
}
