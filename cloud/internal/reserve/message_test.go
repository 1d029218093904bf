package reserve_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestMessagesThroughFaults loses responses of the message provider, or has it fail for a while: the guest receives the
// message once or twice. The audit counts the messages.
func TestMessagesThroughFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sandbox.Fault{
		"answer lost":       {Kind: sandbox.FaultDropAfterCommit},
		"answer lost twice": {Kind: sandbox.FaultDropAfterCommit, Times: 2},
		"down for a while":  {Kind: sandbox.FaultError, Status: 503, Times: 1},
		"slow":              {Kind: sandbox.FaultSlow, Delay: time.Second},
		"never comes there": {Kind: sandbox.FaultTimeout, Delay: time.Second, Times: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			fault.Target = sandbox.TargetMessages
			s.fault(t, fault)
			s.bought(t, sandbox.MethodCard)
			s.eventually(t, "the guest is told", func() bool {
				return s.count(t, `select count(*) from message where state in ('SENT', 'FAILED') and $1`, true) == 1
			})
		})
	}
}

// TestNoMessageBeforeCommit: if the confirming transaction fails at its last statement, no message is sent.
func TestNoMessageBeforeCommit(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `create function no() returns trigger language plpgsql as 'begin raise exception ''no''; end'`)
	s.exec(t, `create constraint trigger no after insert on message deferrable initially deferred for each row execute function no()`)
	b, order, w := s.order(t, sandbox.MethodCard)
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	s.wantState(t, order.OrderID, "CONFIRMING")
	if messages := s.Sandbox.Messages(w.Mobile); len(messages) > 0 {
		t.Errorf("told before the commit: %v", messages)
	}
	s.exec(t, `drop trigger no on message`)
	s.await(t, order.OrderID, "DONE")
	s.answer(t, b, "/payment/confirm", order, 200, "")
}
