package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/swaggest/swgui"
	"github.com/swaggest/swgui/v5emb"

	"github.com/yeolda/yeolda/cloud"
)

// openAPI serves GET /openapi.yaml: the description of the interface.
func (a *API) openAPI(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, "openapi.yaml", time.Time{}, bytes.NewReader(cloud.OpenAPI))
	return nil
}

// DocsPath is where [Docs] is mounted.
const DocsPath = "/docs"

// referencePath shows openapi.yaml.
const referencePath = DocsPath + "/api"

// Docs serves the chapters for integrators, of which the first is at [DocsPath] itself, and a page that shows openapi.yaml and
// sends requests from it. All of its files are part of this program.
func Docs() (http.Handler, error) {
	chapters, err := Chapters()
	if err != nil {
		return nil, err
	}
	page := v5emb.NewHandlerWithConfig(swgui.Config{
		Title: "Yeolda API", SwaggerJSON: "/api/openapi.yaml", BasePath: referencePath,
		SettingsUI: map[string]string{"tryItOutEnabled": "false", "defaultModelsExpandDepth": "0"},
	})
	policy := docsPolicy(page)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if chapter, ok := chapters[r.URL.Path]; ok {
			chapter.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		page.ServeHTTP(w, r)
	}), nil
}

var inlineScript = regexp.MustCompile(`(?s)<script>(.*?)</script>`)

// docsPolicy allows the page's own files and, by their hashes, its inline scripts. Inline styles are allowed because the
// page sets them on single elements, which hashes cannot cover.
func docsPolicy(page http.Handler) string {
	var shown capture
	page.ServeHTTP(&shown, &http.Request{Method: http.MethodGet, URL: &url.URL{Path: referencePath}})
	scripts := "script-src 'self'"
	for _, script := range inlineScript.FindAllSubmatch(shown.Bytes(), -1) {
		sum := sha256.Sum256(script[1])
		scripts += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return strings.Join([]string{
		"default-src 'none'", scripts, "style-src 'self' 'unsafe-inline'", "img-src 'self' data:", "connect-src 'self'",
		"base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
	}, "; ")
}

// capture records an answer.
type capture struct{ bytes.Buffer }

func (*capture) Header() http.Header { return http.Header{} }
func (*capture) WriteHeader(int)     {}
