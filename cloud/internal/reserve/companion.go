package reserve

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/door"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Companion is a key that the guest shares with a companion.
type Companion struct {
	booking.AccessKey
	Key string // in plain text
}

// The errors of companions' keys.
var (
	ErrUnknownKey        = errors.New("reserve: no such key")
	ErrNotOwner          = errors.New("reserve: only the owner's key administers companions")
	ErrTooManyCompanions = errors.New("reserve: the reservation has too many companions")
	ErrCompanionsUsedUp  = errors.New("reserve: the reservation has created as many companions as it may, revoked ones included")
	ErrNoCompanion       = errors.New("reserve: no such companion")
	ErrStayOver          = errors.New("reserve: doors can no longer be opened")
)

// maxCompanionsEver bounds the rows that one reservation can create by revoking companions.
const maxCompanionsEver = 50

// Companions returns the live companions' keys of the reservation of an owner's key.
//
// Errors: ErrUnknownKey, ErrNotOwner.
func (s *Service) Companions(ctx context.Context, owner string) ([]Companion, error) {
	r, err := s.ownedBy(ctx, s.DB.Pool, owner)
	if err != nil {
		return nil, err
	}
	keys, err := postgres.KeysOf(ctx, s.DB.Pool, r.ID)
	if err != nil {
		return nil, err
	}
	list := []Companion{}
	for _, k := range keys {
		if k.Kind != booking.CompanionKey || !k.Live() {
			continue
		}
		text, err := s.openKey(k.Sealed)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", k.ID, err)
		}
		list = append(list, Companion{k, text})
	}
	return list, nil
}

// AddCompanion creates a companion's key.
//
// Errors: ErrUnknownKey, ErrNotOwner, ErrTooManyCompanions, ErrCompanionsUsedUp, ErrStayOver.
func (s *Service) AddCompanion(ctx context.Context, owner, label string) (Companion, error) {
	key := s.newKey()
	companion := Companion{Key: key.Key.String()}
	err := s.ofOwner(ctx, owner, func(c *change) error {
		if _, until := c.r().UnlockWindow(); !c.now.Before(until) {
			return ErrStayOver
		}
		keys, err := postgres.KeysOf(c.ctx, c.tx, c.r().ID)
		if err != nil {
			return err
		}
		live, ever := 0, 0
		for _, k := range keys {
			if k.Kind != booking.CompanionKey {
				continue
			}
			ever++
			if k.Live() {
				live++
			}
		}
		if ever >= maxCompanionsEver {
			return ErrCompanionsUsedUp
		}
		if live >= booking.MaxCompanions {
			return ErrTooManyCompanions
		}
		if companion.AccessKey, err = postgres.InsertCompanion(c.ctx, c.tx, c.r().ID, key, label, door.Customer); err != nil {
			return err
		}
		return c.companionAudited("reservation.companion-add", companion.ID)
	})
	return companion, err
}

// RevokeCompanion revokes a companion's key. It opens nothing from the next claim on.
//
// Errors: ErrUnknownKey, ErrNotOwner, ErrNoCompanion.
func (s *Service) RevokeCompanion(ctx context.Context, owner string, id int64) error {
	return s.ofOwner(ctx, owner, func(c *change) error { return c.revokeCompanion(id, c.companionActor()) })
}

// RevokeCompanionAs is RevokeCompanion by an administrator.
//
// Errors: ErrNotFound, account.ErrBranchForbidden, ErrNoCompanion.
func (s *Service) RevokeCompanionAs(ctx context.Context, reservation booking.ReservationID, id int64, by account.Principal) error {
	return s.locked(ctx, reservation, func(c *change) error {
		if _, err := c.reachable(by); err != nil {
			return err
		}
		return c.revokeCompanion(id, by.Actor())
	})
}

func (c *change) revokeCompanion(id int64, by string) error {
	err := postgres.RevokeCompanion(c.ctx, c.tx, c.r().ID, id)
	if errors.Is(err, postgres.ErrNoKey) {
		return ErrNoCompanion
	}
	if err != nil {
		return err
	}
	return c.Service.audit(c.ctx, c.tx, audit.Entry{Actor: by, Action: "reservation.companion-revoke", Detail: map[string]any{"companion": id}}, c.r())
}

func (c *change) companionAudited(action string, id int64) error {
	return c.Service.audit(c.ctx, c.tx, audit.Entry{Actor: c.companionActor(), Action: action, Detail: map[string]any{"companion": id}}, c.r())
}

func (c *change) companionActor() string { return fmt.Sprintf("customer:%d", c.r().ID) }

// ofOwner runs do in a transaction that locks the reservation of an owner's key.
func (s *Service) ofOwner(ctx context.Context, owner string, do func(*change) error) error {
	r, err := s.ownedBy(ctx, s.DB.Pool, owner)
	if err != nil {
		return err
	}
	return s.locked(ctx, r.ID, func(c *change) error {
		if _, err := s.ownedBy(c.ctx, c.tx, owner); err != nil { // it may have been rotated before the lock
			return err
		}
		return do(c)
	})
}

func (s *Service) ownedBy(ctx context.Context, q postgres.Querier, owner string) (booking.Reservation, error) {
	key, err := uuid.Parse(owner)
	if err != nil || len(owner) != len(uuid.Nil.String()) {
		return booking.Reservation{}, ErrUnknownKey
	}
	r, k, err := postgres.ReservationByKey(ctx, q, key)
	switch {
	case errors.Is(err, postgres.ErrNoReservation):
		return r, ErrUnknownKey
	case err == nil && k.Kind != booking.OwnerKey:
		return r, ErrNotOwner
	}
	return r, err
}
