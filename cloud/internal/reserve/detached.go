package reserve

import (
	"context"
	"time"
)

// requestTimeout is how long a request waits for the provider before it returns ErrPaymentPending. The provider may take 60
// seconds; the call continues after the request has ended.
const requestTimeout = 10 * time.Second

// callTimeout bounds a call of detached, which may send several requests to the provider.
const callTimeout = 80 * time.Second

// detached runs a call to the provider that may outlive its request, so a client that disconnects or times out does not
// interrupt a charge. Concurrent requests with the same key share one call and its outcome. After requestTimeout, detached
// returns ErrPaymentPending.
func detached[T any](ctx context.Context, s *Service, key string, call func(ctx context.Context) (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	s.running.Add(1)
	shared := s.calls.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		value, err := call(ctx)
		return outcome{value, err}, nil
	})
	answered := make(chan outcome, 1)
	go func() {
		defer s.running.Done()
		answered <- (<-shared).Val.(outcome)
	}()
	timer := time.NewTimer(requestTimeout)
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

// Drain waits until no call to the provider is in progress, or until ctx is done. The next process settles any remaining
// call. The caller must have stopped accepting requests.
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
