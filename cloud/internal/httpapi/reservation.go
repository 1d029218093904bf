package httpapi

import (
	"net/http"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// The cookies of holds.
const (
	customerHoldCookie = "PAY_SESSIONID"
	adminHoldCookie    = "ADMIN_PAY_SESSIONID"
)

// maxRoom bounds room numbers in requests.
const maxRoom = 9999

// holdBody is the body of POST /reservation and POST /admin/reservation.
type holdBody struct {
	Branch        *string `json:"branch"`
	Room          *int    `json:"room"`
	StartDateTime *string `json:"startDateTime"`
	EndDateTime   *string `json:"endDateTime"`
}

func (b holdBody) request() (reserve.HoldRequest, error) {
	branch, err := wire.Text("branch", b.Branch, 100)
	if err != nil {
		return reserve.HoldRequest{}, err
	}
	room, err := wire.Whole("room", b.Room, 1, maxRoom)
	if err != nil {
		return reserve.HoldRequest{}, err
	}
	times, err := localInterval(b.StartDateTime, b.EndDateTime)
	if err != nil {
		return reserve.HoldRequest{}, err
	}
	return reserve.HoldRequest{Branch: branch, Room: room, Times: times}, nil
}

// shown returns the hold that an administrator's form shows, and nil if the request does not name it.
func (b *holdBody) shown() (*reserve.HoldRequest, error) {
	if b == nil {
		return nil, nil //nolint:nilnil // the field is optional
	}
	request, err := b.request()
	return &request, err
}

// localInterval reads a start and an end on the wall clock of a branch. A malformed time is wrong in every zone.
func localInterval(start, end *string) (booking.LocalInterval, error) {
	from, err := wire.Time("startDateTime", start, time.UTC)
	if err != nil {
		return booking.LocalInterval{}, err
	}
	to, err := wire.Time("endDateTime", end, time.UTC)
	return booking.LocalInterval{Start: from, End: to}, err
}

// hold serves POST /reservation.
func (a *API) hold(w http.ResponseWriter, r *http.Request) error {
	return a.takeHold(w, r, customerHoldCookie, account.Principal{})
}

// adminHold serves POST /admin/reservation.
func (a *API) adminHold(w http.ResponseWriter, r *http.Request) error {
	return a.takeHold(w, r, adminHoldCookie, wire.Principal(r))
}

// takeHold takes a hold for an administrator, or for a customer if admin is the zero value.
func (a *API) takeHold(w http.ResponseWriter, r *http.Request, cookie string, admin account.Principal) error {
	var body holdBody
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	request, err := body.request()
	if err != nil {
		return err
	}
	request.Admin, request.Earlier = admin, holdToken(r, cookie)
	if !admin.Administrator() && !a.Limits.Off {
		request.Client = a.client(r)
	}
	token, ttl, err := a.Reserve.Hold(r.Context(), request)
	if err != nil {
		return err
	}
	a.setHoldCookie(w, cookie, token, ttl)
	return wire.WriteData(w, nil)
}

// release serves DELETE /reservation.
func (a *API) release(w http.ResponseWriter, r *http.Request) error {
	if err := a.Reserve.Release(r.Context(), holdToken(r, customerHoldCookie)); err != nil {
		return err
	}
	a.setHoldCookie(w, customerHoldCookie, "", 0)
	return wire.WriteData(w, nil)
}

func holdToken(r *http.Request, name string) reserve.Token {
	cookie, err := r.Cookie(name)
	if err != nil {
		return ""
	}
	return reserve.Token(cookie.Value)
}

// setHoldCookie gives the secret of a hold to the browser, or removes it if ttl is 0.
func (a *API) setHoldCookie(w http.ResponseWriter, name string, token reserve.Token, ttl time.Duration) {
	a.Sessions.SetCookie(w, name, string(token), ttl)
}
