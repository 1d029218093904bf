package service

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/web"
)

// dataOf returns a reader of the interface for the pages. The request stays inside the process and carries no cookie but that of the
// time that the browser holds: all other data of the first screens is the same for every guest.
func dataOf(api http.Handler) func(r *http.Request, language, address string) (json.RawMessage, error) {
	return func(r *http.Request, language, address string) (json.RawMessage, error) {
		place, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("address of data: %w", err)
		}
		ask := r.Clone(context.WithValue(r.Context(), chi.RouteCtxKey, nil))
		ask.Method, ask.URL, ask.Body, ask.ContentLength = http.MethodGet, place, http.NoBody, 0
		ask.Header = http.Header{"Accept-Language": {language}}
		if hold, err := r.Cookie(web.HoldCookie); err == nil {
			ask.AddCookie(hold)
		}
		got := &answer{header: http.Header{}, status: http.StatusOK}
		api.ServeHTTP(got, ask)
		if got.status == http.StatusNotFound {
			return nil, web.ErrNoData
		}
		var envelope struct{ Data json.RawMessage }
		if err := json.Unmarshal(got.body.Bytes(), &envelope); err != nil {
			return nil, fmt.Errorf("answer of %s: %w", place.Path, err)
		}
		if got.status != http.StatusOK {
			return nil, fmt.Errorf("%s answered %d", place.Path, got.status)
		}
		return envelope.Data, nil
	}
}

// answer is a response that stays inside the process.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header               { return a.header }
func (a *answer) WriteHeader(status int)            { a.status = status }
func (a *answer) Write(content []byte) (int, error) { return a.body.Write(content) }
