package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// FaultKind is the way a call fails.
type FaultKind string

// The kinds of faults (docs/specification.md, Sandbox 3).
const (
	// FaultError rejects the call. Nothing is booked and the payment does not change, so the same call may succeed
	// later.
	FaultError FaultKind = "error"
	// FaultTimeout holds the connection without a response until the client gives up, for at most two minutes or
	// Delay. Nothing is booked.
	FaultTimeout FaultKind = "timeout"
	// FaultSlow executes the call after Delay (3 seconds by default), even if the client has disconnected: money may
	// be booked after the client gave up.
	FaultSlow FaultKind = "slow"
	// FaultDropAfterCommit executes the call and then closes the connection without a response.
	FaultDropAfterCommit FaultKind = "drop-after-commit"
)

// FaultTarget selects the calls that fail.
type FaultTarget string

// The targets of faults (docs/specification.md, Sandbox 3). TargetRefund is an addition: the bank transfer that refunds a deposit,
// which follows the cancel call. There, error means FAILED after Delay, slow delays the transfer, and timeout leaves it pending.
const (
	TargetConfirm         FaultTarget = "confirm"
	TargetCancel          FaultTarget = "cancel"
	TargetVirtualAccounts FaultTarget = "virtual-accounts"
	TargetGet             FaultTarget = "get" // also the list of transactions
	TargetMessages        FaultTarget = "messages"
	TargetChannel         FaultTarget = "channel"
	TargetRefund          FaultTarget = "refund"
	TargetCallback        FaultTarget = "callback" // an addition: delivery attempts of deposit callbacks
	TargetCashReceipts    FaultTarget = "cash-receipts"
	// TargetTaxOffice is the decision about a cash receipt, which follows the call: error means FAILED, slow delays it, and
	// timeout leaves it open.
	TargetTaxOffice FaultTarget = "tax-office"
)

// maxHold bounds how long a connection is held without a response.
const maxHold = 2 * time.Minute

// Fault makes the next Times calls to Target fail.
type Fault struct {
	Target  FaultTarget   `json:"target"`
	Kind    FaultKind     `json:"kind"`
	Times   int           `json:"times"`             // remaining calls; 0 means 1, a negative number means no limit
	Status  int           `json:"status,omitempty"`  // of an error; 0 means the code's own status, or 500
	Code    string        `json:"code,omitempty"`    // of an error
	Message string        `json:"message,omitempty"` // of an error; empty means the code's own text
	Delay   time.Duration `json:"-"`
}

// SetFault adds a fault. Faults of the same target are consumed in the order in which they were set.
func (s *Sandbox) SetFault(f Fault) error {
	if !slices.Contains([]FaultTarget{TargetConfirm, TargetCancel, TargetVirtualAccounts, TargetGet,
		TargetMessages, TargetChannel, TargetRefund, TargetCallback, TargetCashReceipts, TargetTaxOffice}, f.Target) {
		return fmt.Errorf("unknown fault target %q", f.Target)
	}
	if !slices.Contains([]FaultKind{FaultError, FaultTimeout, FaultSlow, FaultDropAfterCommit}, f.Kind) {
		return fmt.Errorf("unknown fault kind %q", f.Kind)
	}
	if (f.Target == TargetRefund || f.Target == TargetTaxOffice) && f.Kind == FaultDropAfterCommit {
		return fmt.Errorf("a %s cannot be dropped after commit: it has no caller", f.Target)
	}
	if f.Status != 0 && (f.Status < 400 || f.Status > 599) {
		return fmt.Errorf("status %d is not an error", f.Status)
	}
	if f.Delay < 0 || f.Delay > maxHold {
		return fmt.Errorf("delay %v is not within 0 to %v", f.Delay, maxHold)
	}
	if f.Times == 0 {
		f.Times = 1
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
	return nil
}

// ClearFaults removes all faults. Connections that are already held remain held.
func (s *Sandbox) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Faults returns the pending faults.
func (s *Sandbox) Faults() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := make([]Fault, 0, len(s.faults))
	for _, f := range s.faults {
		faults = append(faults, *f)
	}
	return faults
}

// takeFault consumes one occurrence of the first fault of target, or returns nil. The caller holds s.mu.
func (s *Sandbox) takeFault(target FaultTarget) *Fault {
	for i, f := range s.faults {
		if f.Target != target {
			continue
		}
		taken := *f
		if f.Times > 0 {
			f.Times--
		}
		if f.Times == 0 {
			s.faults = slices.Delete(s.faults, i, i+1)
		}
		return &taken
	}
	return nil
}

// is reports whether f is of the given kind; f may be nil.
func (f *Fault) is(kind FaultKind) bool { return f != nil && f.Kind == kind }

// meet consumes the next fault of target, if any, and waits for its delay. If timedOut is true, the caller must close
// the connection without a response.
func (s *Sandbox) meet(target FaultTarget, caller context.Context) (f *Fault, timedOut bool) {
	s.mu.Lock()
	f = s.takeFault(target)
	s.mu.Unlock()
	switch {
	case f.is(FaultTimeout):
		s.wait(f.holdTime(), caller.Done())
	case f.is(FaultSlow):
		s.wait(f.slowTime(), nil)
	}
	return f, f.is(FaultTimeout)
}

// refusal returns the payment provider's response for an error fault.
func (f *Fault) refusal() *Refusal {
	r := refuse("FAILED_INTERNAL_SYSTEM_PROCESSING")
	if f.Code != "" {
		known, ok := refusals[f.Code]
		r = &Refusal{Status: 500, Code: f.Code, Message: "테스트로 지정한 오류입니다."}
		if ok {
			r.Status, r.Message = known.status, known.message
		}
	}
	if f.Status != 0 {
		r.Status = f.Status
	}
	if f.Message != "" {
		r.Message = f.Message
	}
	return r
}

// slowTime returns the delay of a slow call, holdTime the time a connection is held.
func (f *Fault) slowTime() time.Duration { return cmp.Or(f.Delay, 3*time.Second) }
func (f *Fault) holdTime() time.Duration { return cmp.Or(f.Delay, maxHold) }

// wait blocks until d has passed, the sandbox is closed, or done is closed. done may be nil.
func (s *Sandbox) wait(d time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	case <-s.ctx.Done():
	}
}

// hangUp closes the connection without a response, in the middle of the status line. If it closed before the first
// byte on a reused connection, Go's transport would automatically retry a request with an Idempotency-Key and hide the
// fault.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = conn.Write([]byte("HTTP/1.1 ")) // the connection is unusable either way
	conn.Close()
}
