package console

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
)

// wireQuarantine is a time that is not sold.
type wireQuarantine struct {
	ID            string `json:"id"`
	Room          string `json:"room"`
	Start         string `json:"start"`
	End           string `json:"end"`
	Reason        string `json:"reason"` // canceled, moved
	ReservationID string `json:"reservationId"`
	Until         string `json:"until"` // the end of the pass, RFC 3339
}

// quarantine returns the quarantines of a branch within a day.
func (c *Console) quarantine(r *http.Request, branch booking.Branch, day booking.Interval) ([]wireQuarantine, error) {
	found, err := c.Backoffice.Quarantines(r.Context(), branch.ID)
	if err != nil {
		return nil, err
	}
	list := []wireQuarantine{}
	for _, q := range found {
		if q.Start.Before(day.End) && q.End.After(day.Start) {
			list = append(list, wireQuarantine{
				wire.ReservationID(q.ID), strconv.Itoa(q.RoomNo), wire.Minute(q.Start, branch.Zone), wire.Minute(q.End, branch.Zone), q.Reason,
				wire.ReservationID(q.Reservation), q.Until.UTC().Format(time.RFC3339),
			})
		}
	}
	return list, nil
}

// maxReleaseReason is the length of a reason in characters.
const maxReleaseReason = 200

// ReleaseQuarantine serves POST /v2/admin/branches/{branch}/quarantine/{id}/release {reason}, for the headquarters: the time is
// sold although an agent may still hold a pass for it.
func (c *Console) ReleaseQuarantine(w http.ResponseWriter, r *http.Request) error {
	branch, err := c.branch(r)
	if err != nil {
		return err
	}
	reason, err := wire.DecodeReason(r, maxReleaseReason)
	if err != nil {
		return err
	}
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		return backoffice.ErrNoQuarantine
	}
	if err := c.Backoffice.ReleaseQuarantine(r.Context(), branch, booking.ReservationID(id), reason, actor(r)); err != nil {
		return err
	}
	return wire.WriteData(w, nil)
}

// wirePassAgent is what an agent knows about passes.
type wirePassAgent struct {
	Username  string  `json:"username"`
	Version   uint64  `json:"version"`        // of the last list that was sent
	Applied   uint64  `json:"appliedVersion"` // of the last list that the agent acknowledged; 0: none
	AppliedAt *string `json:"appliedAt"`
	Codes     bool    `json:"codes"` // the agent has the key of the one-time codes
}

func wirePassAgents(agents []backoffice.PassAgent) []wirePassAgent {
	list := []wirePassAgent{}
	for _, a := range agents {
		list = append(list, wirePassAgent{a.Username, a.Version, a.Applied, wire.Instant(a.AppliedAt), a.Codes})
	}
	return list
}
