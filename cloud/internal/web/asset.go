package web

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// assetName matches the names that esbuild gives to files.
var assetName = regexp.MustCompile(`^[a-z-]+-[0-9A-Z]{8}\.(js|css)$`)

// Files returns the files of this version's pages, by name.
func Files() (map[string][]byte, error) {
	made, err := makeOnce()
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for name, a := range made.pages.assets {
		files[name] = a.body
	}
	return files, nil
}

// serveAsset serves a file that is named by its content, so browsers may keep it permanently. During an upgrade the document may come
// from a replica of another version.
func (s *site) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	a, ok := s.pages.assets[name]
	if !ok {
		a, ok = s.others.Get(name)
	}
	if !ok && assetName.MatchString(name) {
		body, err := s.File(r.Context(), name)
		if err != nil {
			s.fail(w, r, "asset", err)
			return
		}
		if body != nil {
			a, ok = newAsset(name, body), true
			s.others.Add(name, a)
		}
	}
	if !ok {
		s.serveMissing(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	a.serve(w, r)
}

// serveFixed serves a file whose name stays the same when its content changes.
func (s *site) serveFixed(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	s.fixed[r.URL.Path].serve(w, r)
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", a.mediaType)
	header.Set("ETag", a.etag)
	header.Add("Vary", "Accept-Encoding")
	// A cache names several tags, and a proxy that compresses a file makes its tag a weak one.
	if strings.Contains(strings.Join(r.Header.Values("If-None-Match"), ","), a.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	writeZipped(w, r, http.StatusOK, a.body, a.zipped)
}

// writeZipped sends the compressed body if the client accepts gzip and compression made it smaller.
func writeZipped(w http.ResponseWriter, r *http.Request, status int, body, zipped []byte) {
	if len(zipped) < len(body) && strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		body = zipped
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // an error means that the client has closed the connection
}
