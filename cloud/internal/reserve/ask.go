package reserve

import (
	"context"
	"time"
)

// ask runs a conversation with the provider about an order that may outlive the request: a customer who goes away, or
// whose patience ends, does not cut the provider off in the middle of a charge. Requests about the same order share
// one conversation and its outcome. When patience ends first the answer is ErrPaymentPending.
func (s *Service) ask(ctx context.Context, orderID string, talk func(ctx context.Context) error) error {
	s.asking.Add(1)
	outcome := s.calls.DoChan(orderID, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), providerLimit)
		defer cancel()
		return nil, talk(ctx)
	})
	answered := make(chan error, 1)
	go func() {
		defer s.asking.Done()
		answered <- (<-outcome).Err
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-answered:
		return err
	case <-timer.C:
		return ErrPaymentPending
	case <-ctx.Done():
		return ctx.Err()
	}
}
