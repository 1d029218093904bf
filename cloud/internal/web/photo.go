package web

import (
	"net/http"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/gallery"
)

// servePhoto serves a photo of a room. Its name is a hash of its content, so browsers may keep it permanently.
func (s *site) servePhoto(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutSuffix(r.PathValue("name"), gallery.Suffix)
	var photo []byte
	if ok && gallery.ValidName(name) {
		var err error
		if photo, err = s.Photo(r.Context(), name); err != nil {
			s.fail(w, r, "photo", err)
			return
		}
	}
	if photo == nil {
		s.serveMissing(w, r)
		return
	}
	header := w.Header()
	header.Set("Cache-Control", "public, max-age=31536000, immutable")
	header.Set("Content-Security-Policy", "default-src 'none'")
	asset{body: photo, zipped: photo, mediaType: "image/jpeg", etag: `"` + name + `"`}.serve(w, r)
}
