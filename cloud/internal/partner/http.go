package partner

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// Mount adds the endpoints that partners call: the gateway, if there is one, and the calendars. Their protocol does
// not use the API's envelope.
func (s *Service) Mount(mux chi.Router) {
	mux.Get("/ical/{branch}/{room}", s.serveCalendar)
	mux.Head("/ical/{branch}/{room}", s.serveCalendar)
	if s.Gateway == nil {
		return
	}
	mux.Post("/partner/v1/events", s.receiveEvent)
	mux.Get("/partner/v1/availability", s.serveAvailability)
}

// decision is the answer to an event.
type decision struct {
	Status        string `json:"status"`
	ReservationID int64  `json:"reservationId,omitempty"`
	Message       string `json:"message,omitempty"`
}

// Statuses in addition to those of package channel.
const (
	statusUnsigned = "UNAUTHORIZED"
	statusRejected = "REJECTED"
	statusFailed   = "FAILED"
)

// receiveEvent handles POST /partner/v1/events: 200 ACCEPTED; 409 CONFLICT, so the partner refuses its customer; 422
// unknown room or event type; 400 malformed; 401 invalid signature. The partner retries after any other status.
func (s *Service) receiveEvent(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, channel.MaxEventBody))
	if err != nil {
		answer(w, http.StatusRequestEntityTooLarge, decision{Status: statusRejected, Message: "the body is too large"})
		return
	}
	if err := s.Gateway.Verify(r.Header, body); err != nil {
		s.Log.WarnContext(r.Context(), "partner event rejected", "error", err)
		answer(w, http.StatusUnauthorized, decision{Status: statusUnsigned, Message: "invalid signature or timestamp"})
		return
	}
	status, d := s.decide(r, body)
	answer(w, status, d)
}

func (s *Service) decide(r *http.Request, body []byte) (int, decision) {
	b, err := channel.ParseEvent(body)
	if errors.Is(err, channel.ErrUnknownEvent) {
		return http.StatusUnprocessableEntity, decision{Status: statusRejected, Message: "unknown type of event"}
	}
	if err != nil {
		return http.StatusBadRequest, decision{Status: statusRejected, Message: err.Error()}
	}
	listing, err := s.listing(r, b.ListingID)
	var id booking.ReservationID
	if err == nil {
		id, err = s.Reserve.TakePartnerBooking(r.Context(), reserve.PartnerBooking{Booking: b, Listing: listing})
	}
	switch {
	case err == nil:
		return http.StatusOK, decision{Status: channel.StatusAccepted, ReservationID: int64(id)}
	case errors.Is(err, postgres.ErrNoListing), errors.Is(err, reserve.ErrNoRoom):
		return http.StatusUnprocessableEntity, decision{Status: statusRejected, Message: "unknown listing"}
	case errors.Is(err, reserve.ErrPartnerConflict):
		return http.StatusConflict, decision{Status: channel.StatusConflict}
	}
	s.Log.ErrorContext(r.Context(), "partner event failed", "error", err)
	return failure(err), decision{Status: statusFailed}
}

// failure returns 503 if the request can be repeated later, as during an outage of the database or a rebuild.
func failure(err error) int {
	if postgres.IsUnavailable(err) {
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// listing returns a room by the partner's id. It includes rooms created since the last Prepare.
func (s *Service) listing(r *http.Request, externalID string) (postgres.Listing, error) {
	listing, err := postgres.ListingOf(r.Context(), s.DB.Pool, s.Partner, externalID)
	if !errors.Is(err, postgres.ErrNoListing) {
		return listing, err
	}
	if err := s.Prepare(r.Context()); err != nil {
		return listing, err
	}
	return postgres.ListingOf(r.Context(), s.DB.Pool, s.Partner, externalID)
}

// maxAvailability is the longest period a partner may query.
const maxAvailability = 31 * 24 * time.Hour

type busySpan struct {
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
}

// serveAvailability handles GET /partner/v1/availability?listingId=&from=&to= with RFC 3339 times, signed like an
// event with an empty body. It returns whether the whole period is free, and the occupied times.
func (s *Service) serveAvailability(w http.ResponseWriter, r *http.Request) {
	if err := s.Gateway.Verify(r.Header, nil); err != nil {
		answer(w, http.StatusUnauthorized, decision{Status: statusUnsigned, Message: "invalid signature or timestamp"})
		return
	}
	query := r.URL.Query()
	from, errFrom := time.Parse(time.RFC3339, query.Get("from"))
	to, errTo := time.Parse(time.RFC3339, query.Get("to"))
	if errFrom != nil || errTo != nil || !to.After(from) || to.Sub(from) > maxAvailability {
		answer(w, http.StatusBadRequest, decision{Status: statusRejected, Message: "from and to are RFC 3339, at most 31 days apart"})
		return
	}
	listing, err := s.listing(r, query.Get("listingId"))
	if errors.Is(err, postgres.ErrNoListing) {
		answer(w, http.StatusUnprocessableEntity, decision{Status: statusRejected, Message: "unknown listing"})
		return
	}
	var calendar channel.Calendar
	if err == nil {
		calendar, err = s.Calendar(r.Context(), listing)
	}
	if err != nil {
		s.Log.ErrorContext(r.Context(), "partner availability failed", "error", err)
		answer(w, failure(err), decision{Status: statusFailed})
		return
	}
	busy := []busySpan{}
	for _, b := range calendar.Busy {
		if b.Start.Before(to) && from.Before(b.End) {
			busy = append(busy, busySpan{b.Start, b.End})
		}
	}
	answer(w, http.StatusOK, struct {
		ListingID string     `json:"listingId"`
		Available bool       `json:"available"`
		Busy      []busySpan `json:"busy"`
	}{listing.ExternalID, len(busy) == 0, busy})
}

// serveCalendar handles GET and HEAD /ical/{branch}/{room}.ics?token=.
func (s *Service) serveCalendar(w http.ResponseWriter, r *http.Request) {
	text, isCalendar := strings.CutSuffix(chi.URLParam(r, "room"), ".ics")
	room, err := strconv.Atoi(text)
	token := sha256.Sum256([]byte(r.URL.Query().Get("token")))
	var listing postgres.Listing
	if isCalendar && err == nil {
		listing, err = postgres.ListingByToken(r.Context(), s.DB.Pool, chi.URLParam(r, "branch"), room, token[:])
	}
	if !isCalendar || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) || errors.Is(err, postgres.ErrNoListing) {
		http.NotFound(w, r)
		return
	}
	var calendar channel.Calendar
	if err == nil {
		calendar, err = s.Calendar(r.Context(), listing)
	}
	if err != nil {
		s.Log.ErrorContext(r.Context(), "calendar failed", "error", err)
		http.Error(w, "internal error", failure(err))
		return
	}
	body, etag := calendar.Encode()
	header := w.Header()
	header.Set("ETag", etag)
	header.Set("Cache-Control", "no-cache")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Content-Type", channel.CalendarType)
	// Without a time: the end of the entry that was changed last would leave an earlier time.
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a write fails only if the client disconnected
}
