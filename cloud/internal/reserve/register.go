package reserve

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Register stores who pays before the payment widget opens, and returns the order id the widget needs. Registering
// again replaces the data; the earlier order id is dead.
//
// Errors: ErrHoldExpired, ErrAmountMismatch (the hold is kept).
func (s *Service) Register(ctx context.Context, token Token, contact booking.Contact, amount int) (orderID string, err error) {
	_, r, price, err := s.Held(ctx, token)
	if err != nil {
		return "", err
	}
	if r.Source != booking.Customer {
		return "", ErrHoldExpired
	}
	if amount != price {
		return "", ErrAmountMismatch
	}
	orderID = newOrderID()
	ok, err := postgres.RegisterOrder(ctx, s.DB.Pool, r.ID, contact, orderID, price, s.now())
	if err != nil {
		return "", err
	}
	if !ok {
		return "", ErrHoldExpired
	}
	return orderID, nil
}

// newOrderID makes an unguessable id in the provider's alphabet (6 to 64 of A-Z a-z 0-9 - _).
func newOrderID() string {
	var random [20]byte
	rand.Read(random[:]) // never fails
	return "ord-" + strings.ToLower(base32.StdEncoding.EncodeToString(random[:]))
}
