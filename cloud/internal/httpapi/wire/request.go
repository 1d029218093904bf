package wire

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"
	"golang.org/x/text/language"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
)

type principalKey struct{}

// WithPrincipal returns a request that carries the principal of its session.
func WithPrincipal(r *http.Request, p account.Principal) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), principalKey{}, p))
}

// Principal returns the principal of the session; the zero value has no session.
func Principal(r *http.Request) account.Principal {
	p, _ := r.Context().Value(principalKey{}).(account.Principal)
	return p
}

// Scope returns ErrBranchForbidden if the administrator has no access to a branch. An unknown branch is not found for
// the headquarters and out of scope for every other role.
func Scope(r *http.Request, branch string) error {
	if !Principal(r).Reaches(branch) {
		return ErrBranchForbidden
	}
	return nil
}

// PathReservation reads the id of a path. A value that is not a number matches no reservation.
func PathReservation(r *http.Request) (booking.ReservationID, error) {
	id, err := Number(chi.URLParam(r, "id"))
	if err != nil || id < 1 {
		return 0, booking.ErrNoReservation
	}
	return booking.ReservationID(id), nil
}

// ReservationID is an id in JSON.
func ReservationID(id booking.ReservationID) string { return strconv.FormatInt(int64(id), 10) }

// maxPage is the largest page of a list.
const maxPage = 200

// Page reads ?before=&limit= of a list that is read backwards from its newest entry.
func Page(r *http.Request) (before int64, limit int, err error) {
	if text := r.URL.Query().Get("before"); text != "" {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return 0, 0, Malformed("before")
		}
	}
	limit, err = PageLimit(r)
	return before, limit, err
}

// PageLimit reads ?limit= of a list.
func PageLimit(r *http.Request) (int, error) { return OptionalInt(r, "limit", 50, 1, maxPage) }

// OptionalInt is QueryInt for a parameter that may be absent, or empty as in the link ?cursor=&limit= of a first page.
func OptionalInt(r *http.Request, field string, otherwise, low, high int) (int, error) {
	if r.URL.Query().Get(field) == "" {
		return otherwise, nil
	}
	return QueryInt(r, field, low, high)
}

// languages are those of messages to clients, the default first.
var languages = language.NewMatcher([]language.Tag{language.Korean, language.English})

// Language is the language of messages to the client: English if Accept-Language prefers it to Korean, Korean otherwise.
func Language(r *http.Request) string {
	if _, i := language.MatchStrings(languages, r.Header.Get("Accept-Language")); i == 1 {
		return "en"
	}
	return "ko"
}
