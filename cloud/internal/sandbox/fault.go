package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// FaultKind is how a call goes wrong.
type FaultKind string

// The kinds of fault (contracts.md 4).
const (
	// FaultError answers with a refusal. Nothing is booked and the payment stays as it is, so that the same
	// call may succeed afterwards.
	FaultError FaultKind = "error"
	// FaultTimeout holds the connection without an answer until the client gives up, for at most two minutes
	// or Delay. Nothing is booked.
	FaultTimeout FaultKind = "timeout"
	// FaultSlow acts after Delay (3 seconds unless said otherwise), whether or not the client is still there:
	// money may be booked after the client has given up.
	FaultSlow FaultKind = "slow"
	// FaultDropAfterCommit acts and then closes the connection without an answer.
	FaultDropAfterCommit FaultKind = "drop-after-commit"
)

// FaultTarget is which calls go wrong.
type FaultTarget string

// The targets of faults (contracts.md 4). TargetRefund is an addition: it is the bank transfer of a deposit's
// refund, which comes after the cancel call; error makes it FAILED, slow late, timeout pending for good.
const (
	TargetConfirm         FaultTarget = "confirm"
	TargetCancel          FaultTarget = "cancel"
	TargetVirtualAccounts FaultTarget = "virtual-accounts"
	TargetGet             FaultTarget = "get" // also the list of transactions
	TargetMessages        FaultTarget = "messages"
	TargetChannel         FaultTarget = "channel"
	TargetRefund          FaultTarget = "refund"
	TargetCallback        FaultTarget = "callback" // an addition: attempts to deliver a deposit callback
)

// maxHold bounds how long a connection is held without an answer.
const maxHold = 2 * time.Minute

// Fault makes the next Times calls to Target go wrong.
type Fault struct {
	Target  FaultTarget   `json:"target"`
	Kind    FaultKind     `json:"kind"`
	Times   int           `json:"times"`             // calls left; 0 is taken as 1, below 0 as for ever
	Status  int           `json:"status,omitempty"`  // of an error; 0 means the code's own, or 500
	Code    string        `json:"code,omitempty"`    // of an error
	Message string        `json:"message,omitempty"` // of an error; empty means the code's own
	Delay   time.Duration `json:"-"`
}

// SetFault orders a fault. Faults of the same target are used up in the order in which they were set.
func (s *Sandbox) SetFault(f Fault) error {
	if !slices.Contains([]FaultTarget{TargetConfirm, TargetCancel, TargetVirtualAccounts, TargetGet,
		TargetMessages, TargetChannel, TargetRefund, TargetCallback}, f.Target) {
		return fmt.Errorf("unknown fault target %q", f.Target)
	}
	if !slices.Contains([]FaultKind{FaultError, FaultTimeout, FaultSlow, FaultDropAfterCommit}, f.Kind) {
		return fmt.Errorf("unknown fault kind %q", f.Kind)
	}
	if f.Target == TargetRefund && f.Kind == FaultDropAfterCommit {
		return errors.New("a refund cannot be dropped after commit: it has no caller")
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

// ClearFaults forgets all faults. Connections that are already held stay held.
func (s *Sandbox) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// Faults returns the faults that are still to come.
func (s *Sandbox) Faults() []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults := make([]Fault, 0, len(s.faults))
	for _, f := range s.faults {
		faults = append(faults, *f)
	}
	return faults
}

// takeFault uses up one occurrence of the first fault of target; nil if there is none. s.mu is held.
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

// is reports whether f, which may be nil, is of that kind.
func (f *Fault) is(kind FaultKind) bool { return f != nil && f.Kind == kind }

// meet takes the next fault of target, or nil, and lets the time pass that it orders. A request that has timed
// out is to end without an answer.
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

// refusal is what an error fault answers at the payment provider.
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

// slowTime is how long a slow call is delayed, holdTime how long an unanswered one is held.
func (f *Fault) slowTime() time.Duration { return cmp.Or(f.Delay, 3*time.Second) }
func (f *Fault) holdTime() time.Duration { return cmp.Or(f.Delay, maxHold) }

// wait blocks for d, for as long as the sandbox is open and, if done is not nil, until done closes.
func (s *Sandbox) wait(d time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-done:
	case <-s.ctx.Done():
	}
}

// hangUp closes the connection without an answer, in the middle of the status line. At its beginning, on a
// connection that was used before, Go's transport would take the request for one that came too late and send
// it again by itself if it has an Idempotency-Key: the fault would go unnoticed.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = conn.Write([]byte("HTTP/1.1 ")) // the connection is given up either way
	conn.Close()
}
