package httpapi

import (
	"net/http"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// The cookies of holds (docs/specification.md, Holds 2).
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
	// Before the branch is looked up: a malformed time is wrong in every zone.
	if _, err := wire.Time("startDateTime", b.StartDateTime, time.UTC); err != nil {
		return reserve.HoldRequest{}, err
	}
	if _, err := wire.Time("endDateTime", b.EndDateTime, time.UTC); err != nil {
		return reserve.HoldRequest{}, err
	}
	return reserve.HoldRequest{
		Branch: branch, Room: room,
		Times: func(zone *time.Location) (booking.Interval, error) {
			return wire.Interval(b.StartDateTime, b.EndDateTime, zone)
		},
	}, nil
}

// hold is POST /reservation.
func (a *API) hold(w http.ResponseWriter, r *http.Request) error {
	return a.takeHold(w, r, customerHoldCookie, func(*reserve.HoldRequest) error { return nil })
}

// adminHold is POST /admin/reservation.
func (a *API) adminHold(w http.ResponseWriter, r *http.Request) error {
	return a.takeHold(w, r, adminHoldCookie, func(request *reserve.HoldRequest) error {
		request.Admin = wire.Principal(r).AdminLoginID
		return wire.Scope(r, request.Branch)
	})
}

func (a *API) takeHold(w http.ResponseWriter, r *http.Request, cookie string, complete func(*reserve.HoldRequest) error) error {
	var body holdBody
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	request, err := body.request()
	if err != nil {
		return err
	}
	if err := complete(&request); err != nil {
		return err
	}
	request.Earlier = holdToken(r, cookie)
	token, ttl, err := a.Reserve.Hold(r.Context(), request)
	if err != nil {
		return err
	}
	a.setHoldCookie(w, cookie, token, ttl)
	return wire.WriteData(w, nil)
}

// release is DELETE /reservation.
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

// setHoldCookie hands the secret of a hold to the browser, or takes it back when ttl is 0.
func (a *API) setHoldCookie(w http.ResponseWriter, name string, token reserve.Token, ttl time.Duration) {
	a.Sessions.SetCookie(w, name, string(token), ttl)
}
