package reserve

import (
	"context"
	"time"
)

// patience is how long a request waits for the provider before it is told that the outcome is pending. The provider
// may take 60 seconds; the conversation goes on without the request.
const patience = 10 * time.Second

// providerLimit ends a conversation with the provider, in which several questions may be asked.
const providerLimit = 80 * time.Second

// detached runs a conversation with the provider that may outlive the request it serves: a customer who goes away, or
// whose patience ends, does not cut the provider off in the middle of a charge. Requests about the same topic share
// one conversation and its outcome. When patience ends first the answer is ErrPaymentPending.
func detached[T any](ctx context.Context, s *Service, topic string, do func(ctx context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	s.running.Add(1)
	shared := s.calls.DoChan(topic, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), providerLimit)
		defer cancel()
		value, err := do(ctx)
		return outcome{value, err}, nil
	})
	answered := make(chan outcome, 1)
	go func() {
		defer s.running.Done()
		answered <- (<-shared).Val.(outcome)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	var none T
	select {
	case o := <-answered:
		return o.value, o.err
	case <-timer.C:
		return none, ErrPaymentPending
	case <-ctx.Done():
		return none, ctx.Err()
	}
}

// Drain waits until no conversation with the provider is under way, or until ctx is done: what is then still open is
// settled by whoever runs next. No request may come in any more.
func (s *Service) Drain(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}
