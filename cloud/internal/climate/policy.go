package climate

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Limits of a policy.
const (
	MaxLeadMinutes  = 60
	MaxLagMinutes   = 60
	MaxGuestOptions = 3
	MinCelsius      = 5.0
	MaxCelsius      = 40.0
	MaxHourlyCost   = 100_000 // won
)

// Policy is how the air of a room follows its stays.
type Policy = postgres.ClimatePolicy

// Errors of policies.
var (
	ErrNoRoom = errors.New("climate: no such room")
	// ErrDuplicateRoom is returned if a room has two policies.
	ErrDuplicateRoom = errors.New("climate: duplicate room")
	// ErrOtherUnit is returned if an option does not belong to the unit of the policy.
	ErrOtherUnit = errors.New("climate: the option belongs to another unit")
	// ErrStaffDecided is returned to a guest if staff have sent a command during the stay.
	ErrStaffDecided = errors.New("climate: staff have set the air conditioner for this stay")
)

// Policies returns the policies of a branch by room number.
func (s *Service) Policies(ctx context.Context, branch booking.BranchID) ([]postgres.ClimatePolicy, error) {
	return postgres.ClimatePolicies(ctx, s.DB.Pool, branch)
}

// Options returns the options of a branch's air conditioners, by unit and path.
func (s *Service) Options(ctx context.Context, branch booking.BranchID) ([]postgres.Option, error) {
	byID, err := postgres.BranchOptions(ctx, s.DB.Pool, branch)
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(byID), func(a, b postgres.Option) int {
		return cmp.Or(cmp.Compare(a.Unit, b.Unit), slices.Compare(a.Path, b.Path))
	}), nil
}

// SetPolicies replaces the policies of a branch. Their sensors are those that the agent reports, now and later. It returns
// ErrNoRoom, ErrDuplicateRoom, ErrUnknownOption or ErrOtherUnit.
func (s *Service) SetPolicies(ctx context.Context, branch booking.Branch, policies []postgres.ClimatePolicy, by string) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		options, err := postgres.BranchOptions(ctx, tx, branch.ID)
		if err != nil {
			return err
		}
		seen := map[int]bool{}
		for _, p := range policies {
			if seen[p.RoomNo] {
				return ErrDuplicateRoom
			}
			seen[p.RoomNo] = true
			for _, id := range append([]string{p.ArriveOption, p.LeaveOption}, p.GuestOptions...) {
				if option, ok := options[id]; !ok {
					return ErrUnknownOption
				} else if option.Unit != p.Unit {
					return ErrOtherUnit
				}
			}
		}
		found, err := postgres.PutClimatePolicies(ctx, tx, branch.ID, policies, now)
		if err != nil {
			return err
		}
		if found != int64(len(policies)) {
			return ErrNoRoom
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Branch: branch.Code, Action: "settings.climate-policy", Target: branch.Code, Detail: map[string]any{"rooms": policies}})
	})
}

// Offer is what a guest may choose for a stay.
type Offer struct {
	Options []postgres.Option
	Current string // the option in force; empty: none was sent
}

// OfferFor returns the options of a confirmed stay, or nil if its room has none.
func (s *Service) OfferFor(ctx context.Context, r booking.Reservation) (*Offer, error) {
	if r.State != booking.Done {
		return nil, nil
	}
	policies, err := s.Policies(ctx, r.Branch)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(policies, func(p postgres.ClimatePolicy) bool { return p.RoomNo == r.RoomNo })
	if at < 0 || len(policies[at].GuestOptions) == 0 {
		return nil, nil
	}
	options, err := postgres.BranchOptions(ctx, s.DB.Pool, r.Branch)
	if err != nil {
		return nil, err
	}
	offer := &Offer{}
	for _, id := range policies[at].GuestOptions {
		if option, ok := options[id]; ok { // the agent may have announced others since
			offer.Options = append(offer.Options, option)
		}
	}
	offer.Current, err = postgres.Choice(ctx, s.DB.Pool, int64(r.ID))
	if offer.Current == "" {
		offer.Current = policies[at].ArriveOption
	}
	return offer, err
}

// Choose sets the air of a stay to one of the offered options: at once if the unit is on for the stay, else when it is
// switched on. It returns ErrUnknownOption or ErrStaffDecided.
func (s *Service) Choose(ctx context.Context, r booking.Reservation, option string) error {
	offer, err := s.OfferFor(ctx, r)
	if err != nil {
		return err
	}
	if offer == nil || !slices.ContainsFunc(offer.Options, func(o postgres.Option) bool { return o.ID == option }) {
		return ErrUnknownOption
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		ok, err := postgres.PutChoice(ctx, tx, int64(r.ID), option, now)
		if err == nil && !ok {
			return ErrStaffDecided
		}
		return err
	})
}
