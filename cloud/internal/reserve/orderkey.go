package reserve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// orderKeyDays is the number of days for which the key of a day's order ids is kept, and also how many days ahead it is made:
// a rebuild covers ReconcileSpan, and an order is paid at the latest on the day after. A key that is made so long before its
// day is in the backup from which the orders of the day are rebuilt.
const orderKeyDays = int(ReconcileSpan/(24*time.Hour)) + 1

// KeepOrderKeys makes the keys for the order ids of the coming days, and deletes those that no rebuild needs any more, if the
// clock is steady. Then the order ids of that day, which the provider and the books keep, cannot be read.
func (s *Service) KeepOrderKeys(ctx context.Context) error {
	today := s.now()
	for day := range orderKeyDays + 1 {
		if err := s.putOrderKey(ctx, s.DB.Pool, today.AddDate(0, 0, day)); err != nil {
			return err
		}
	}
	if steady, err := postgres.ClockSteady(ctx, s.DB.Pool, today); !steady {
		return err
	}
	return postgres.PurgeOrderKeys(ctx, s.DB.Pool, today.AddDate(0, 0, -orderKeyDays))
}

func (s *Service) putOrderKey(ctx context.Context, q postgres.Querier, day time.Time) error {
	return postgres.PutOrderKey(ctx, q, day, s.Keys.Seal(postgres.OrderKeyPurpose, []byte(seal.NewKey())))
}

// newOrderID returns the order id of a reservation under a contact, sealed with the key of today.
func (s *Service) newOrderID(ctx context.Context, q postgres.Querier, o ordered) (string, error) {
	today := s.now()
	sealed, err := postgres.OrderKey(ctx, q, today)
	if errors.Is(err, postgres.ErrNoOrderKey) {
		if err := s.putOrderKey(ctx, q, today); err != nil {
			return "", err
		}
		sealed, err = postgres.OrderKey(ctx, q, today)
	}
	if err != nil {
		return "", fmt.Errorf("order key: %w", err)
	}
	keys, err := s.orderKeys(sealed)
	if err != nil {
		return "", err
	}
	return sealOrder(keys, o), nil
}

// openOrderID returns the content of an order id, or errForeignOrder. Earlier releases sealed order ids with the encryption
// key.
func (s *Service) openOrderID(ctx context.Context, id string) (ordered, error) {
	entities, err := s.entities(ctx)
	if err != nil {
		return ordered{}, err
	}
	if o, err := openOrder(s.Keys, id, entities); err == nil {
		return o, nil
	}
	sealed, err := postgres.OrderKeys(ctx, s.DB.Pool)
	if err != nil {
		return ordered{}, fmt.Errorf("order keys: %w", err)
	}
	if len(sealed) == 0 {
		return ordered{}, errForeignOrder
	}
	keys, err := s.orderKeys(sealed...)
	if err != nil {
		return ordered{}, err
	}
	return openOrder(keys, id, entities)
}

// orderKeys returns a keyring of sealed keys, the first of which seals.
func (s *Service) orderKeys(sealed ...[]byte) (*seal.Keyring, error) {
	texts := make([][]byte, 0, len(sealed))
	for _, one := range sealed {
		text, err := s.Keys.Open(postgres.OrderKeyPurpose, one)
		if err != nil {
			return nil, fmt.Errorf("order key: %w", err)
		}
		texts = append(texts, text)
	}
	return seal.ParseKeys(string(bytes.Join(texts, []byte(","))))
}
