package web

import (
	"net/http"
	"path"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/gallery"
)

// servePhoto serves a photo of a room in the smallest format that the client accepts. Its name is a hash of its content, so
// browsers may keep it permanently.
func (s *site) servePhoto(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutSuffix(r.PathValue("name"), gallery.Suffix)
	var photo []byte
	var mediaType string
	if ok && gallery.ValidName(name) {
		var err error
		if photo, mediaType, err = s.Photo(r.Context(), name, r.Header.Get("Accept")); err != nil {
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
	header.Set("Vary", "Accept")
	asset{body: photo, zipped: photo, mediaType: mediaType, etag: `"` + name + "-" + path.Base(mediaType) + `"`}.serve(w, r)
}
