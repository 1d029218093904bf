package console

import (
	"net/http"
	"strconv"

	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/partner"
)

// EnterPartnerBooking serves POST /v2/admin/branches/{branch}/partner-bookings: an administrator enters the booking of a
// partner that has no connection to us. The same externalId changes the booking; DELETE /admin/reservation/{id} ends it.
func (c *Console) EnterPartnerBooking(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	var body struct {
		Partner       *string `json:"partner"`
		ExternalID    *string `json:"externalId"`
		RoomNo        *string `json:"roomNo"`
		StartDateTime *string `json:"startDateTime"`
		EndDateTime   *string `json:"endDateTime"`
		Name          *string `json:"name"`
		MobileNum     *string `json:"mobileNum"`
	}
	if err := wire.Decode(r, &body); err != nil {
		return err
	}
	entry := partner.Entry{Branch: branch.Code, By: actor(r)}
	if entry.Partner, err = wire.Text("partner", body.Partner, 60); err != nil {
		return err
	}
	if entry.ExternalID, err = wire.Text("externalId", body.ExternalID, 200); err != nil {
		return err
	}
	number, err := wire.Text("roomNo", body.RoomNo, 4)
	if err != nil {
		return err
	}
	if entry.Room, err = strconv.Atoi(number); err != nil {
		return wire.Malformed("roomNo")
	}
	if _, ok := branch.Room(entry.Room); !ok {
		return wire.UnknownValue("roomNo")
	}
	if entry.Interval, err = wire.Interval(body.StartDateTime, body.EndDateTime, branch.Zone); err != nil {
		return err
	}
	if entry.Name, err = wire.OptionalText("name", body.Name, 50); err != nil {
		return err
	}
	if entry.Mobile, err = wire.Mobile("mobileNum", body.MobileNum, false); err != nil {
		return err
	}
	id, err := c.Partner.Enter(r.Context(), entry)
	if err != nil {
		return err
	}
	return wire.WriteData(w, struct {
		ID string `json:"id"`
	}{wire.ReservationID(id)})
}
