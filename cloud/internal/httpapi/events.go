package httpapi

import (
	"net/http"
	"strconv"

	"github.com/yeolda/yeolda/cloud/internal/events"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// Sizes of a page of events.
const (
	eventPage    = 100
	maxEventPage = 1000
)

// listEvents serves GET /v2/events?after=&limit=.
func (a *API) listEvents(w http.ResponseWriter, r *http.Request) error {
	after, limit, values := int64(0), eventPage, r.URL.Query()
	var err error
	if text := values.Get("after"); text != "" {
		if after, err = strconv.ParseInt(text, 10, 64); err != nil || after < 0 {
			return wire.Malformed("after")
		}
	}
	if values.Get("limit") != "" {
		if limit, err = wire.QueryInt(r, "limit", 1, maxEventPage); err != nil {
			return err
		}
	}
	list, next, err := a.Events.List(r.Context(), wire.Principal(r), after, limit)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		Events []events.Event `json:"events"`
		Next   string         `json:"next"`
	}{list, strconv.FormatInt(next, 10)})
}
