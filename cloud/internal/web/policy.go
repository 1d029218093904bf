package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
)

// policy holds the Content-Security-Policies. Only the payment document may run the payment provider's script; all other
// documents run only our own code.
type policy struct {
	page    string
	payment string
	frame   string // the directive of who may show the pages in a frame
}

const basePolicy = "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "

// newPolicy returns the policies of a site. stage is the origin that may show it in a frame; empty: none.
func newPolicy(publicURL string, widget Widget, stage string) policy {
	frame := "frame-ancestors 'none'"
	if stage != "" {
		frame = "frame-ancestors " + stage
	}
	script := widget.ScriptURL
	if u, err := url.Parse(script); err == nil {
		script = u.Scheme + "://" + u.Host
	}
	others := strings.Join(widget.Origins, " ")
	payment := strings.Join([]string{
		"default-src 'self'",
		"script-src 'self' " + script,
		"frame-src " + others,
		"connect-src 'self' " + others,
		"img-src 'self' data: " + others,
		"style-src 'self' 'unsafe-inline'", // the widget adds inline styles to its frames
		"object-src 'none'; base-uri 'none'; " + frame,
		"form-action 'self' " + others,
	}, "; ")
	p := policy{page: basePolicy + frame, payment: payment, frame: frame}
	if strings.HasPrefix(publicURL, "https:") {
		p.page += "; upgrade-insecure-requests"
		p.payment += "; upgrade-insecure-requests"
	}
	return p
}

// inline allows exactly the given inline style and script, and scripts of this site.
func (p policy) inline(style, script string) string {
	return strings.Join([]string{
		"default-src 'none'", "style-src " + hashSource(style), "script-src 'self' " + hashSource(script),
		"connect-src 'self'; img-src 'self'; manifest-src 'self'; worker-src 'self'",
		"form-action 'self'; base-uri 'none'; " + p.frame,
	}, "; ")
}

func hashSource(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

const permissions = "camera=(), microphone=()"

// secured sets the headers that all responses share.
func secured(next http.Handler, https bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "strict-origin-when-cross-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Permissions-Policy", permissions+", geolocation=()")
		if https {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}
