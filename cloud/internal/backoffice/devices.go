package backoffice

import (
	"context"
	"crypto/ed25519"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/enroll"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// Agent returns the last known state of a branch's agent and of what is connected to it.
func (s *Service) Agent(ctx context.Context, branch booking.BranchID) (postgres.AgentCondition, error) {
	return postgres.AgentOf(ctx, s.DB.Pool, branch)
}

// maxDoorEvents is how many events the list of doors shows.
const maxDoorEvents = 50

// Doors is the state of the doors of a branch.
type Doors struct {
	Agent  postgres.AgentCondition
	Open   map[string]bool // by device; a door without a known contact is missing
	Events []postgres.DoorHistoryItem
	PINs   map[string]postgres.DoorPIN // by device front or room_<n>
}

// Doors returns the doors that the agent reported, their contacts, and their latest events.
func (s *Service) Doors(ctx context.Context, branch booking.Branch) (d Doors, err error) {
	if d.Agent, err = s.Agent(ctx, branch.ID); err != nil {
		return d, err
	}
	if d.Open, err = postgres.DoorContacts(ctx, s.DB.Pool, branch.ID, s.DB.Now()); err != nil {
		return d, err
	}
	if d.Events, err = postgres.DoorHistory(ctx, s.DB.Pool, branch.ID, maxDoorEvents); err != nil {
		return d, err
	}
	pins, err := postgres.DoorPINs(ctx, s.DB.Pool, branch.Code)
	d.PINs = make(map[string]postgres.DoorPIN, len(pins))
	for _, pin := range pins {
		d.PINs[pin.Device] = pin
	}
	return d, err
}

// maxCommands is how many commands of air conditioners are shown.
const maxCommands = 20

// Climate is the state of the sensors and air conditioners of a branch.
type Climate struct {
	Agent    postgres.AgentCondition
	Latest   map[string]postgres.SensorReading // by location
	Commands []postgres.ClimateCommand
	Intents  []postgres.ShownIntent
}

// Climate returns the latest reading of each sensor and the latest commands.
func (s *Service) Climate(ctx context.Context, branch booking.BranchID) (c Climate, err error) {
	if c.Agent, err = s.Agent(ctx, branch); err != nil {
		return c, err
	}
	if c.Latest, err = postgres.LatestReadings(ctx, s.DB.Pool, branch, c.Agent.Inventory.Sensors, s.DB.Now()); err != nil {
		return c, err
	}
	if c.Intents, err = postgres.ClimateIntents(ctx, s.DB.Pool, branch, s.DB.Now()); err != nil {
		return c, err
	}
	c.Commands, err = postgres.ClimateCommands(ctx, s.DB.Pool, branch, maxCommands)
	return c, err
}

// readingsShown is about how many averages a chart of a sensor shows.
const readingsShown = 288

// Readings returns averages of a sensor over a span of time that ends now.
func (s *Service) Readings(ctx context.Context, branch booking.BranchID, location string, span time.Duration) ([]postgres.SensorReading, error) {
	step := max(time.Minute, (span / readingsShown).Truncate(time.Minute))
	return postgres.Readings(ctx, s.DB.Pool, branch, location, s.DB.Now().Add(-span), step)
}

// Credentials returns the agent credentials of a branch.
func (s *Service) Credentials(ctx context.Context, branch string) ([]postgres.AgentCredential, error) {
	all, err := postgres.AgentCredentials(ctx, s.DB.Pool)
	if err != nil {
		return nil, err
	}
	var found []postgres.AgentCredential
	for _, c := range all {
		if c.Branch == branch {
			found = append(found, c)
		}
	}
	return found, nil
}

// OfferAgent makes a token that one machine exchanges for the credential of the branch's agent. replaces is the user name of the
// machine that it replaces, or empty. It returns ErrNoAgent.
func (s *Service) OfferAgent(ctx context.Context, branch, replaces, by string) (token string, expires time.Time, err error) {
	entry := audit.Entry{Actor: by, Branch: branch, Action: "agent.offer"}
	err = s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
		expires = now.Add(enroll.TokenLife)
		keys, err := s.GrantKeys.Current(ctx, tx)
		if err != nil {
			return err
		}
		token, err = enroll.Offer(ctx, tx, branch, replaces, by, keys, now)
		return err
	})
	return token, expires, err
}

// BranchOfAgent returns the code of an agent's branch, or ErrNoAgent.
func (s *Service) BranchOfAgent(ctx context.Context, username string) (string, error) {
	return postgres.BranchOfAgent(ctx, s.DB.Pool, username)
}

// RevokeAgent revokes a credential; the agent is disconnected. It returns ErrNoAgent.
func (s *Service) RevokeAgent(ctx context.Context, branch, username, by string) error {
	entry := audit.Entry{Actor: by, Branch: branch, Action: "agent.revoke", Target: username}
	return s.change(ctx, &entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.RevokeAgent(ctx, tx, username)
	})
}

// FittedDoor returns the door of an inventory.
func FittedDoor(agent postgres.AgentCondition, device string) (protocol.Door, bool) {
	for _, door := range agent.Inventory.Doors {
		if door.Device == device {
			return door, true
		}
	}
	return protocol.Door{}, false
}

// EnrollAgent exchanges a token for a credential. It returns enroll.ErrToken.
func (s *Service) EnrollAgent(ctx context.Context, token string, publicKey ed25519.PublicKey) (enroll.Credential, error) {
	return enroll.Exchange(ctx, s.DB, token, s.GrantKeys, publicKey, audit.OriginOf(ctx).Address)
}
