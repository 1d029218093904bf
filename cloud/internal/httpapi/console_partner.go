package httpapi

import (
	"net/http"
	"strconv"

	"github.com/yeolda/yeolda/cloud/internal/partner"
)

// enterPartnerBooking is POST /v2/admin/branches/{branch}/partner-bookings: a booking that an administrator has read at
// a partner without a connection to us. The same externalId again changes it; DELETE /admin/reservation/{id} ends it.
func (a *API) enterPartnerBooking(w http.ResponseWriter, r *http.Request) error {
	branch, err := a.branchInScope(r)
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
	if err := decode(r, &body); err != nil {
		return err
	}
	entry := partner.Entry{Branch: branch.Code}
	if entry.Partner, err = text("partner", body.Partner, 60); err != nil {
		return err
	}
	if entry.ExternalID, err = text("externalId", body.ExternalID, 200); err != nil {
		return err
	}
	number, err := text("roomNo", body.RoomNo, 4)
	if err != nil {
		return err
	}
	if entry.Room, err = strconv.Atoi(number); err != nil {
		return malformed("roomNo")
	}
	if _, ok := branch.Room(entry.Room); !ok {
		return unknownValue("roomNo")
	}
	if entry.Interval, err = interval(body.StartDateTime, body.EndDateTime, branch.Zone); err != nil {
		return err
	}
	if entry.Name, err = optionalText("name", body.Name, 50); err != nil {
		return err
	}
	if entry.Mobile, err = mobile("mobileNum", body.MobileNum, false); err != nil {
		return err
	}
	id, err := a.Partner.Enter(r.Context(), entry)
	if err != nil {
		return err
	}
	return a.done(w, r, branch.Code, "partner-booking.enter", wireID(id), map[string]any{"partner": entry.Partner, "externalId": entry.ExternalID}, struct {
		ID string `json:"id"`
	}{wireID(id)})
}
