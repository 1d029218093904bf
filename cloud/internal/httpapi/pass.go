package httpapi

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// giveCode serves POST /v2/keys/{key}/codes (any client with the key): a one-time code for a keypad of the branch's agent.
//
//	{door: front|room} -> {code, door, until (RFC 3339), qr (lines of 0 and 1)}
func (a *API) giveCode(w http.ResponseWriter, r *http.Request) error {
	kind, err := decodeDoor(r)
	if err != nil {
		return err
	}
	code, err := a.Access.GiveCode(r.Context(), a.client(r), chi.URLParam(r, "key"), kind)
	if err != nil {
		return err
	}
	picture, err := wire.QR(code.Digits)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	return wire.WriteData(w, struct {
		Code  string `json:"code"`
		Door  string `json:"door"`
		Until string `json:"until"`
		QR    string `json:"qr"`
	}{code.Digits, code.Door, code.Until.Format(time.RFC3339), picture})
}

// wirePIN is the PIN of a guest's pass.
type wirePIN struct {
	Code  string   `json:"code"`
	From  string   `json:"from"`
	Until string   `json:"until"`
	Doors []string `json:"doors"` // front, room_<n>
	Ready bool     `json:"ready"` // the branch has it, so that it works without the uplink
}

// pinOf returns the PIN of a key's reservation, or nil before its disclosure, after its end and without an agent keypad.
func (a *API) pinOf(r *http.Request, key access.Key) (*wirePIN, error) {
	pin, err := a.Access.PIN(r.Context(), key)
	if err != nil || pin == nil {
		return nil, err
	}
	rfc := func(t time.Time) string { return t.In(key.Branch.Zone).Format(time.RFC3339) }
	return &wirePIN{pin.Digits, rfc(pin.From), rfc(pin.Until), pin.Doors, pin.Ready}, nil
}

// keypads returns which keypads the doors of a key have.
func keypads(key access.Key) map[string]booking.Keypad {
	kinds := map[string]booking.Keypad{access.Front: key.Branch.Keypad(access.Front), access.Room: booking.KeypadNone}
	if room, ok := key.Branch.Room(key.Reservation.RoomNo); ok {
		kinds[access.Room] = key.Branch.Keypad(room.Device())
	}
	return kinds
}
