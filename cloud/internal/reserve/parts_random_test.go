package reserve_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// slowTransfer is how long a slow bank takes, by the provider's clock, which stays within minutes of the real one: partners check the times of requests.
const slowTransfer = 10 * time.Second

// TestRandomPartsOfDeposits returns parts of deposits at random while the bank transfers or rejects them, repeats rejected ones, and
// cancels stays in between. At the end every guest has what the refunds state; see moneytest.Audit.
func TestRandomPartsOfDeposits(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`, `[{"untilMinutesBefore":30,"percent":67}]`)
	rng, replica, done := rand.New(rand.NewPCG(*firstSeed, 2)), s.Replica(t), map[string]int{}
	for range 6 {
		b, _, id := s.paid(t, sandbox.MethodVirtualAccount)
		for range 3 + rng.IntN(6) {
			kinds := []sandbox.FaultKind{sandbox.FaultError, sandbox.FaultSlow}
			var err error
			switch op := rng.IntN(6); op {
			case 0, 1:
				s.fault(t, sandbox.Fault{Target: sandbox.TargetRefund, Kind: kinds[op], Delay: slowTransfer, Times: 1})
			case 2, 3:
				_, err = replica.RefundPart(s.ctx, part(id, 1+rng.IntN(9000)))
			case 4:
				err = replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &guestAccount, By: hq})
			case 5:
				reply, failed := b.Post(s.ctx, "/payment/cancel", refundAccount(cancelBody(id)))
				if failed != nil || reply.HTTP >= 500 {
					t.Fatalf("cancel: %v %s", failed, reply.Raw)
				}
				done[fmt.Sprint("cancel ", reply.HTTP)]++
			}
			if err == nil && rng.IntN(2) == 0 {
				s.Clock.Advance(time.Duration(rng.IntN(120)) * time.Second)
				s.Provider.Advance(slowTransfer / 4)
			}
			done[fmt.Sprint(err)]++
		}
	}
	t.Log(done)
	s.Sandbox.ClearFaults()
	s.Provider.Advance(slowTransfer)
	failed := `select coalesce(min(reservation_id), 0) from refund where state = 'FAILED'`
	s.eventually(t, "no refund is open", func() bool {
		if id := s.count(t, failed); id != 0 {
			err := replica.RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &guestAccount, By: hq})
			if err != nil && !errors.Is(err, reserve.ErrPaymentPending) && !errors.Is(err, reserve.ErrNotFound) {
				t.Fatal(err)
			}
		}
		return s.count(t, `select count(*) from refund where state in ('REQUESTED', 'PENDING', 'FAILED')`) == 0
	})
	s.balanced(t)
}
