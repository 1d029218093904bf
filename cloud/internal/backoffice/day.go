package backoffice

import (
	"context"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Day returns the reservations that keep rooms of a branch busy within a span of time, by room and time. Quarantines are
// listed by Quarantines.
func (s *Service) Day(ctx context.Context, branch booking.Branch, span booking.Interval) ([]booking.Reservation, error) {
	found, err := postgres.ReservationsDuring(ctx, s.DB.Pool, branch.ID, span)
	if err != nil {
		return nil, err
	}
	now := s.DB.Now()
	live := make([]booking.Reservation, 0, len(found))
	for _, r := range found {
		if r.Occupies(now) && r.QuarantineOf == 0 {
			live = append(live, r)
		}
	}
	return live, nil
}

// Conflicts returns the bookings that partners have sold although their time was taken, within a span of time, by room and time.
func (s *Service) Conflicts(ctx context.Context, branch booking.Branch, span booking.Interval) ([]booking.Reservation, error) {
	return postgres.ConflictsDuring(ctx, s.DB.Pool, branch.ID, span)
}

// Canceled returns the cancelled reservations of a branch that started within a span of time, by room and time.
func (s *Service) Canceled(ctx context.Context, branch booking.Branch, span booking.Interval) ([]booking.Reservation, error) {
	return postgres.CanceledDuring(ctx, s.DB.Pool, branch.ID, span)
}

// maxFound is the length of a search result.
const maxFound = 50

// maxFoundRooms is the number of rooms in a search result.
const maxFoundRooms = 20

// Found is a reservation that a search found, with its branch.
type Found struct {
	Branch booking.Branch
	booking.Reservation
}

// Search returns the latest reservations of branches by a part of a name, a part of a phone number (four digits or
// more), or a whole order id, reservation id or e-mail address.
//
// The audit log records the reservations found, not the query: it may be a name.
func (s *Service) Search(ctx context.Context, by string, branches []string, text string) ([]Found, error) {
	rows, err := postgres.SearchReservations(ctx, s.DB.Pool, branches, text, maxFound)
	if err != nil {
		return nil, err
	}
	found := make([]Found, 0, len(rows))
	ids := map[booking.BranchID][]string{}
	for _, r := range rows {
		branch, err := s.DB.BranchByID(ctx, r.Branch)
		if err != nil {
			return nil, err
		}
		found = append(found, Found{branch, r})
		ids[branch.ID] = append(ids[branch.ID], target(r.ID))
	}
	for branch, of := range ids {
		if err := s.Viewed(ctx, by, "reservation.search", strings.Join(of, " "), branch); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// SearchRooms returns rooms of branches whose branch, number or machine contain every word of a text.
func (s *Service) SearchRooms(ctx context.Context, branches []string, text string) ([]postgres.RoomName, error) {
	return postgres.SearchRooms(ctx, s.DB.Pool, branches, text, maxFoundRooms)
}
