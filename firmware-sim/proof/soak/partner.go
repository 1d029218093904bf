package soak

import (
	"context"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// partner books as guests of another channel, at the last two branches only: the service is notified of their bookings,
// not asked.
func (s *Soak) partner(ctx context.Context, dice *rand.Rand) {
	for ctx.Err() == nil {
		slot := s.wishAt(s.partnerBranches()[dice.IntN(len(s.partnerBranches()))], dice)
		var booked struct {
			ID string `json:"id"`
		}
		_, err := world.Ask(http.MethodPost, s.world.Sandbox+"/sandbox/channel/bookings", map[string]any{
			"branch": slot.Branch, "room": slot.Room, "startDateTime": slot.Start.Format(time.RFC3339), "endDateTime": slot.End.Format(time.RFC3339), "name": "외부손님", "mobileNum": "01099998888"}, &booked)
		if err == nil && oneIn(dice, 4) {
			pause(ctx, between(dice, 0, 3*time.Second))
			_, _ = world.Ask(http.MethodDelete, s.world.Sandbox+"/sandbox/channel/bookings/"+booked.ID, nil, nil) // if this fails, the booking stays
		}
		pause(ctx, between(dice, 500*time.Millisecond, 3*time.Second))
	}
}

// partnerBranches are the branches on the partner's channel in this run.
func (s *Soak) partnerBranches() []string {
	var codes []string
	for _, b := range s.world.Branches[max(0, len(s.world.Branches)-2):] {
		codes = append(codes, b.Code)
	}
	return codes
}
