package reserve_test

import (
	"errors"
	"path"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// outage is a door that has failed since a time, and a guest who cannot enter.
type outage struct {
	*shop
	guest
	since time.Time
}

// outage sells a stay whose door fails after its start. Settings are those of the compensation.
func (s *shop) outage(t *testing.T, settings, method string) outage {
	t.Helper()
	s.compensating(t, settings)
	o := outage{shop: s, guest: s.guest(t, method)}
	o.fails(t, o.guest.wish.Start)
	return o
}

// fails has the door fail once more, a second after at.
func (o *outage) fails(t *testing.T, at time.Time) {
	t.Helper()
	o.Clock.Stop(at)
	o.press(t, o.id, "room", "FAILED", "failed")
	o.since = o.Clock.Now()
}

// compensates has several replicas compensate some time after the failure, twice.
func (o *outage) compensates(t *testing.T, after time.Duration) {
	t.Helper()
	o.Clock.Stop(o.since.Add(after))
	for range 2 {
		if err := together(4, func(int) error { return o.Replica(t).Compensate(o.ctx) }); err != nil {
			t.Fatal(err)
		}
	}
}

// given checks what the guest got: the won of all refunds of the stay, the won of its compensation and its kind.
func (o *outage) given(t *testing.T, won, compensated int, kind string) {
	t.Helper()
	const refunds = `select coalesce(sum(f.amount), 0)::int from refund f join reservation r on r.id = f.reservation_id where (r.id = $1 or r.extends = $1) and f.state <> 'REFUSED'`
	if got := o.count(t, refunds, o.id); got != won {
		t.Errorf("refunds of %d won, want %d", got, won)
	}
	c, err := o.Replica(t).CompensationOf(o.ctx, booking.ReservationID(o.id))
	if err != nil || c.Amount != compensated || c.Kind != kind {
		t.Errorf("compensation %q of %d won (%v), want %q of %d", c.Kind, c.Amount, err, kind, compensated)
	}
}

// returned checks the refunds of which the guest has received a message, in order.
func (o *outage) returned(t *testing.T, won ...int) {
	t.Helper()
	o.refundsDone(t, o.id)
	var got []string
	o.eventually(t, "messages about the refunds", func() bool {
		got = nil
		for _, m := range o.Sandbox.Messages(o.guest.wish.Mobile) {
			if m.Template == string(notify.PartRefunded) {
				got = append(got, m.Variables["amount"])
			}
		}
		return len(got) >= len(won)
	})
	left := map[string]int{}
	for _, w := range won {
		left[notify.Won(w)]++
	}
	for _, g := range got {
		left[g]--
	}
	for amount, n := range left {
		if n != 0 {
			t.Errorf("messages about %v, want %d more of %s", got, n, amount)
		}
	}
}

// TestStuckDoorReturnsTheRest: the guest gets a part after afterMinutes, and the rest once the door has failed for fullAfterMinutes.
func TestStuckDoorReturnsTheRest(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, c := range map[string]struct {
		settings, kind string
		won            int
	}{
		"part first":        {settings: `{"afterMinutes":3,"wonPerMinute":200,"fullAfterMinutes":20}`, kind: "refunded", won: 600},
		"nothing first":     {settings: `{"afterMinutes":3,"fullAfterMinutes":20}`},
		"once in the month": {settings: `{"afterMinutes":3,"wonPerMinute":200,"fullAfterMinutes":20,"perPhonePerMonth":1}`, kind: "refunded", won: 600},
	} {
		o := s.outage(t, c.settings, sandbox.MethodCard)
		o.compensates(t, 3*time.Minute)
		o.given(t, c.won, c.won, c.kind)
		o.refundsDone(t, o.id)
		o.press(t, o.id, "room", "FAILED", "failed")
		o.compensates(t, 19*time.Minute+59*time.Second)
		o.given(t, c.won, c.won, c.kind)
		o.compensates(t, 20*time.Minute)
		o.givenAll(t)
		if c.won > 0 {
			o.returned(t, c.won, o.guest.order.Amount-c.won)
		} else {
			o.returned(t, o.guest.order.Amount)
		}
		o.compensates(t, 50*time.Minute)
		o.givenAll(t)
		o.wantState(t, o.guest.order.OrderID, "DONE")
		if got := s.key(t, o.id); got != o.guest.key {
			t.Errorf("%s: key %q, want %q", name, got, o.guest.key)
		}
	}
	s.balanced(t)
}

// TestStuckDoorReturnsTheRestOfAnExtendedStay: a stay that became longer at first is paid back once the door has failed for
// fullAfterMinutes. A first decision that comes so late returns everything at once.
func TestStuckDoorReturnsTheRestOfAnExtendedStay(t *testing.T) {
	t.Parallel()
	s := open(t)
	const settings = `{"afterMinutes":3,"extendFirst":true,"wonPerMinute":200,"fullAfterMinutes":20}`
	o := s.outage(t, settings, sandbox.MethodCard)
	o.compensates(t, 3*time.Minute)
	o.given(t, 0, 0, "extended")
	o.compensates(t, 20*time.Minute)
	o.givenAll(t)
	o.returned(t, o.guest.order.Amount)
	if n := o.count(t, `select minutes from compensation where reservation_id = $1`, o.id); n != 10 {
		t.Errorf("%d minutes, want 10", n)
	}
	o.compensates(t, 40*time.Minute)
	o.givenAll(t)
	if n := o.count(t, `select count(*) from message where template = 'stay-compensated' and reservation_id = $1`, o.id); n != 1 {
		t.Errorf("%d messages about the longer stay, want 1", n)
	}

	o = s.outage(t, `null`, sandbox.MethodCard) // the service was away
	s.compensating(t, settings)
	o.compensates(t, 25*time.Minute)
	o.givenAll(t)
	o.returned(t, o.guest.order.Amount)
	o.compensates(t, 45*time.Minute)
	o.givenAll(t)
	s.balanced(t)
}

// TestStuckDoorReturnsOnlyTheRest: the rest is what staff have not returned meanwhile, of the stay and of its extensions.
func TestStuckDoorReturnsOnlyTheRest(t *testing.T) {
	t.Parallel()
	s := open(t)
	const settings = `{"afterMinutes":3,"wonPerMinute":200,"fullAfterMinutes":20}`
	o := s.outage(t, settings, sandbox.MethodCard)
	o.compensates(t, 3*time.Minute)
	o.refundsDone(t, o.id)
	if _, err := s.Replica(t).RefundPart(s.ctx, part(o.id, 5000)); err != nil {
		t.Fatal(err)
	}
	o.compensates(t, 20*time.Minute)
	o.given(t, o.guest.order.Amount, o.guest.order.Amount-5000, "refunded")
	o.returned(t, 600, 5000, o.guest.order.Amount-5600)

	o = s.outage(t, settings, sandbox.MethodCard)
	o.compensates(t, 3*time.Minute)
	o.refundsDone(t, o.id)
	if _, err := s.Replica(t).RefundPart(s.ctx, part(o.id, o.guest.order.Amount-600)); err != nil {
		t.Fatal(err)
	}
	o.compensates(t, 20*time.Minute)
	o.given(t, o.guest.order.Amount, 600, "refunded")
	o.returned(t, 600, o.guest.order.Amount-600)

	s.compensating(t, settings)
	o = outage{shop: s, guest: s.guest(t, sandbox.MethodCard)}
	order := o.hold(t, s, o.end().Add(30*time.Minute))
	s.pay(t, o.Buyer, order, sandbox.MethodCard)
	extension := s.wantState(t, order.OrderID, "DONE")
	o.fails(t, o.guest.wish.Start)
	o.compensates(t, 3*time.Minute)
	o.given(t, 600, 600, "refunded")
	o.refundsDone(t, o.id)
	o.compensates(t, 20*time.Minute)
	o.refundsDone(t, extension)
	o.given(t, o.guest.order.Amount+order.Amount, o.guest.order.Amount+order.Amount, "refunded")
	o.returned(t, 600, o.guest.order.Amount-600, order.Amount)
	s.balanced(t)
}

// TestNoRestAfterAnEntry: a guest who got in, or whose stay ended before fullAfterMinutes, keeps the part.
func TestNoRestAfterAnEntry(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.inOneMonth()
	const settings = `{"afterMinutes":3,"wonPerMinute":200,"fullAfterMinutes":20}`
	o := s.outage(t, settings, sandbox.MethodCard)
	o.compensates(t, 3*time.Minute)
	o.refundsDone(t, o.id)
	o.press(t, o.id, "room", "SUCCESS", "opened")
	o.compensates(t, 30*time.Minute)
	o.given(t, 600, 600, "refunded")

	o = s.outage(t, settings, sandbox.MethodCard)
	o.press(t, o.id, "room", "SUCCESS", "opened")
	o.fails(t, o.end().Add(-15*time.Minute))
	o.compensates(t, 3*time.Minute)
	o.given(t, 600, 600, "refunded")
	o.refundsDone(t, o.id)
	o.compensates(t, 30*time.Minute)
	o.given(t, 600, 600, "refunded")

	// The limit of the phone number holds for both steps.
	s.compensating(t, `null`)
	o = outage{shop: s, guest: s.guest(t, sandbox.MethodCard)}
	s.exec(t, `update reservation set mobile = '010-9999-0000' where id = $1`, o.id)
	s.exec(t, `insert into compensation (reservation_id, branch_id, mobile_key, since, at, kind) select id, branch_id, '01099990000', start_at, $2, 'extended' from reservation
		where id = $1`, s.guest(t, sandbox.MethodCard).id, o.guest.wish.Start)
	s.compensating(t, `{"afterMinutes":3,"wonPerMinute":200,"fullAfterMinutes":20,"perPhonePerMonth":1}`)
	o.fails(t, o.guest.wish.Start)
	o.compensates(t, 3*time.Minute)
	o.compensates(t, 30*time.Minute)
	o.given(t, 0, 0, "")
	s.balanced(t)
}

// TestStuckDoorReturnsTheRestOfADeposit: a part that waits for the guest's account becomes the whole, with a new link. If the part has
// been sent, the guest is asked for the account of the rest.
func TestStuckDoorReturnsTheRestOfADeposit(t *testing.T) {
	t.Parallel()
	s := open(t)
	const settings = `{"afterMinutes":3,"wonPerMinute":200,"fullAfterMinutes":20}`
	o := s.outage(t, settings, sandbox.MethodVirtualAccount)
	o.compensates(t, 3*time.Minute)
	first := s.refundToken(t, o.id)
	o.compensates(t, 20*time.Minute)
	o.givenAll(t)
	token := o.anotherRefundToken(t, o.guest.wish.Mobile, first)
	if err := s.Replica(t).EnterRefundAccount(s.ctx, first, guestAccount); !errors.Is(err, reserve.ErrNoRefundLink) {
		t.Errorf("the link of the part: %v, want %v", err, reserve.ErrNoRefundLink)
	}
	if err := s.Replica(t).EnterRefundAccount(s.ctx, token, guestAccount); err != nil {
		t.Fatal(err)
	}
	o.givenAll(t)
	o.returned(t, o.guest.order.Amount)
	o.wantState(t, o.guest.order.OrderID, "DONE")

	o = s.outage(t, settings, sandbox.MethodVirtualAccount)
	o.compensates(t, 3*time.Minute)
	first = s.refundToken(t, o.id)
	if err := s.Replica(t).EnterRefundAccount(s.ctx, first, guestAccount); err != nil {
		t.Fatal(err)
	}
	o.returned(t, 600)
	o.compensates(t, 20*time.Minute)
	o.givenAll(t)
	if err := s.Replica(t).EnterRefundAccount(s.ctx, o.anotherRefundToken(t, o.guest.wish.Mobile, first), guestAccount); err != nil {
		t.Fatal(err)
	}
	o.returned(t, 600, o.guest.order.Amount-600)
	s.balanced(t)
}

// givenAll checks that the guest has got everything that the stay has cost.
func (o *outage) givenAll(t *testing.T) {
	t.Helper()
	o.given(t, o.guest.order.Amount, o.guest.order.Amount, "refunded")
}

// anotherRefundToken waits for a message with a refund link other than one, and returns its token.
func (s *shop) anotherRefundToken(t *testing.T, mobile, than string) (token string) {
	t.Helper()
	s.eventually(t, "another refund link", func() bool {
		for _, m := range s.Sandbox.Messages(mobile) {
			if token = path.Base(m.Variables["link"]); m.Template == "refund-account" && token != than {
				return true
			}
		}
		return false
	})
	return token
}

// TestRestWaitsForAnotherRefund: everything is owed when the door has failed for fullAfterMinutes, also if a refund that waits for a person
// ends a day later, and staff have opened the room meanwhile.
func TestRestWaitsForAnotherRefund(t *testing.T) {
	t.Parallel()
	s := open(t)
	for name, settings := range map[string]string{
		"part first":    `{"afterMinutes":3,"wonPerMinute":200,"fullAfterMinutes":20}`,
		"nothing first": `{"afterMinutes":3,"fullAfterMinutes":20}`,
	} {
		o := s.outage(t, settings, sandbox.MethodCard)
		first := 0
		if name == "part first" {
			first = 600
		}
		o.compensates(t, 3*time.Minute)
		o.refundsDone(t, o.id)
		replica := s.limited(t, 700)
		if got, err := replica.RefundPart(s.ctx, part(o.id, 800)); err != nil || !got.Waits {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		o.compensates(t, 20*time.Minute)
		o.given(t, first+800, first, map[bool]string{true: "refunded"}[first > 0])
		o.press(t, o.id, "room", "SUCCESS", "opened")
		o.compensates(t, 24*time.Hour)
		if err := replica.ApproveRefund(s.ctx, booking.ReservationID(o.id), gangnamManager); err != nil {
			t.Fatal(err)
		}
		o.refundsDone(t, o.id)
		o.compensates(t, 24*time.Hour+time.Minute)
		o.given(t, o.guest.order.Amount, o.guest.order.Amount-800, "refunded")
		o.refundsDone(t, o.id)
		o.compensates(t, 25*time.Hour)
		o.given(t, o.guest.order.Amount, o.guest.order.Amount-800, "refunded")
	}
	s.balanced(t)
}

// TestNoCompensationForTheTimeBeforeAMove: staff give a guest whose door has failed another time. A failure before the move does not count
// at the new time, at which the guest is late.
func TestNoCompensationForTheTimeBeforeAMove(t *testing.T) {
	t.Parallel()
	s := open(t)
	o := s.outage(t, `{"afterMinutes":3,"wonPerMinute":200,"fullAfterMinutes":20}`, sandbox.MethodCard)
	later := o.guest.wish.Start.Add(2 * time.Hour)
	err := o.Replica(t).Move(o.ctx, reserve.MoveRequest{ID: booking.ReservationID(o.id), Room: o.guest.wish.Room, Times: local(later, later.Add(time.Hour)), By: hq})
	if err != nil {
		t.Fatal(err)
	}
	o.compensates(t, later.Add(25*time.Minute).Sub(o.since))
	o.given(t, 0, 0, "")
	o.fails(t, later.Add(26*time.Minute))
	o.compensates(t, 4*time.Minute)
	o.given(t, 800, 800, "refunded")
	s.balanced(t)
}

// TestCompensationOfReversedDeposit: a compensation waits for the guest's account when the bank reverses the deposit. It is not owed any
// more, so only the reversal is listed.
func TestCompensationOfReversedDeposit(t *testing.T) {
	t.Parallel()
	s := open(t)
	o := s.outage(t, `{"afterMinutes":3,"wonPerMinute":200}`, sandbox.MethodVirtualAccount)
	o.compensates(t, 3*time.Minute)
	o.awaitRefund(t, o.id, "FAILED")
	if n := o.open(t, o.guest.order.OrderID, "refund"); n != 1 {
		t.Errorf("%d discrepancies of the refund without an account, want 1", n)
	}
	o.reverse(t, o.guest.order.OrderID)
	o.awaitRefund(t, o.id, "REFUSED")
	if all, reversal := o.open(t, o.guest.order.OrderID, ""), o.open(t, o.guest.order.OrderID, "reversal"); all != 1 || reversal != 1 {
		t.Errorf("%d discrepancies after the reversal, of which %d are about it, want that one", all, reversal)
	}
}
