package rule_test

import (
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// paid returns a payment of 12,000 won of which the provider holds a balance.
func paid(status string, balance int) toss.Payment {
	return toss.Payment{OrderID: "order", PaymentKey: "key", Status: status, Currency: toss.Won, TotalAmount: 12000, BalanceAmount: balance}
}

// snapshot returns the record of such a payment for a stay of an hour that begins in an hour.
func snapshot(state booking.State, refund *money.Refund) rule.Snapshot {
	return rule.Snapshot{
		Reservation: booking.Reservation{State: state, Room: 1, OrderID: "order", Amount: 12000,
			Interval: booking.Interval{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}},
		Payment: money.Payment{PaymentKey: "key"}, Refund: refund,
	}
}

// TestTransfers checks when the refund of a deposit is sent while the bank may still work on another transfer of the same payment.
func TestTransfers(t *testing.T) {
	t.Parallel()
	const amount = 3000
	whole, part := money.Refund{Amount: amount}, money.Refund{Amount: amount, KeepsStay: true, Part: true}
	taken := money.Refund{Amount: amount, Part: true, Taken: true}
	for _, c := range []struct {
		name     string
		refund   money.Refund
		status   string
		transfer string
		balance  int
		other    int // won that were returned in the dashboard of the provider
		cancels  []toss.Cancellation
		want     rule.Reading
	}{
		{"the first transfer", part, toss.StatusDone, "NONE", 12000, 0, nil, rule.Resend},
		{"a part of a deposit that the bank has taken back", part, toss.StatusWaitingForDeposit, "NONE", 12000, 0, nil, rule.Declined},
		{"an account to close", whole, toss.StatusWaitingForDeposit, "NONE", 12000, 0, nil, rule.Resend},

		{"taken off, the bank works on it", taken, toss.StatusPartialCanceled, "PENDING", 9000, 0, nil, rule.Act},
		{"taken off, transferred", taken, toss.StatusPartialCanceled, "COMPLETED", 9000, 0, nil, rule.Act},
		{"rejected, with its amount", taken, toss.StatusPartialCanceled, "FAILED", 9000, 0, []toss.Cancellation{{Amount: 1}, {Amount: amount}}, rule.Resend},
		{"rejected, with another amount", taken, toss.StatusPartialCanceled, "PARTIAL_FAILED", 1, 0, []toss.Cancellation{{Amount: amount + 1}}, rule.Declined},
		{"rejected, nothing left at the provider", taken, toss.StatusPartialCanceled, "FAILED", 0, 0, []toss.Cancellation{{Amount: 12000}}, rule.Resend},

		{"an earlier attempt, the bank works on it", whole, toss.StatusPartialCanceled, "PENDING", 12000, 0, []toss.Cancellation{{Amount: amount}}, rule.Resend},
		{"an earlier attempt, rejected", whole, toss.StatusPartialCanceled, "FAILED", 12000, 0, []toss.Cancellation{{Amount: amount}}, rule.Resend},
		{"one that is stored already, the bank works on it", whole, toss.StatusPartialCanceled, "PENDING", 12000, 0, []toss.Cancellation{{Amount: 500}}, rule.AskLater},
		{"one that is stored already, rejected", whole, toss.StatusPartialCanceled, "FAILED", 12000, 0, []toss.Cancellation{{Amount: 500}}, rule.Declined},
		{"one that is stored already, transferred", whole, toss.StatusPartialCanceled, "COMPLETED", 12000, 0, []toss.Cancellation{{Amount: 500}}, rule.Resend},
		{"the same amount, the bank works on it", part, toss.StatusPartialCanceled, "PENDING", 9000, amount, nil, rule.Resend},
		{"another amount, the bank works on it", whole, toss.StatusPartialCanceled, "PENDING", 8000, amount + 1000, nil, rule.AskLater},
		{"another amount, the bank works on it, and the stay is kept", part, toss.StatusPartialCanceled, "PENDING", 8000, amount + 1000, nil, rule.Declined},
		{"another amount, rejected", whole, toss.StatusPartialCanceled, "FAILED", 8000, amount + 1000, nil, rule.Declined},
		{"another amount, transferred", part, toss.StatusPartialCanceled, "COMPLETED", 8000, amount + 1000, nil, rule.Resend},
	} {
		s := snapshot(booking.Done, &c.refund)
		if c.refund.KeepsStay {
			s.Payment.Returned = amount
		}
		p := paid(c.status, c.balance)
		p.VirtualAccount, p.Cancels = &toss.VirtualAccount{RefundStatus: c.transfer}, c.cancels
		if !c.refund.Taken && s.Unrecorded(p) != c.other {
			t.Errorf("%s: got %d won in the dashboard, want %d", c.name, s.Unrecorded(p), c.other)
		}
		if got := s.Transfers(p); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestUnrecorded checks how much the dashboard of the provider has returned.
func TestUnrecorded(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		state           booking.State
		refund          *money.Refund
		returned        int
		before, balance int
		status          string // before
		want            int
	}{
		{"nothing", booking.Done, nil, 0, 12000, 12000, toss.StatusDone, 0},
		{"all of it by us", booking.Done, nil, 3000, 9000, 9000, toss.StatusPartialCanceled, 0},
		{"more than by us", booking.Done, nil, 1000, 11000, 9000, toss.StatusPartialCanceled, 2000},
		{"one by us is not executed", booking.Done, &money.Refund{Amount: 1000, KeepsStay: true}, 3000, 10000, 10000, toss.StatusPartialCanceled, 0},
		{"beside one by us that is not executed", booking.Done, &money.Refund{Amount: 1000, KeepsStay: true}, 3000, 10000, 9000, toss.StatusPartialCanceled, 1000},
		{"since the cancellation by the policy", booking.Canceled, nil, 0, 5000, 3000, toss.StatusPartialCanceled, 2000},
		{"nothing since the cancellation by the policy", booking.Canceled, nil, 0, 5000, 5000, toss.StatusPartialCanceled, 0},
		{"since the cancellation, from a balance that still contains a part", booking.Canceled, nil, 2000, 11000, 0, toss.StatusPartialCanceled, 10000},
		{"of an account without a deposit", booking.Canceled, nil, 0, 12000, 0, toss.StatusWaitingForDeposit, 0},
	} {
		s := snapshot(c.state, c.refund)
		s.Payment.Returned, s.Payment.Status, s.Payment.Balance = c.returned, c.status, c.before
		if got := s.Unrecorded(paid(toss.StatusPartialCanceled, c.balance)); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}

// TestPartOfACancellation checks that the refund of a part counts as executed only if the reply to its own request shows it.
func TestPartOfACancellation(t *testing.T) {
	t.Parallel()
	part := &money.Refund{State: money.RefundRequested, Amount: 3000, Part: true}
	whole := &money.Refund{State: money.RefundRequested, Amount: 3000}
	for _, c := range []struct {
		name     string
		state    booking.State
		refund   *money.Refund
		returned bool
		balance  int
		want     rule.Step
	}{
		{"returned", booking.Canceling, part, true, 9000, rule.Refunded},
		{"a won less than asked", booking.Canceling, part, true, 9001, rule.NeedsReview},
		{"nothing was returned", booking.Canceling, part, true, 12000, rule.Stay},
		{"a part instead of the whole", booking.Canceling, whole, true, 9000, rule.NeedsReview},
		{"another process has ended the refund", booking.Canceling, nil, true, 9000, rule.NeedsReview},
		{"found by a look-up", booking.Canceling, part, false, 9000, rule.Stay},
		{"another part, found by a look-up", booking.Canceling, part, false, 9001, rule.NeedsReview},
		{"the rest, returned", booking.Canceled, part, true, 9000, rule.Follow},
		{"the rest, found by a look-up", booking.Canceled, part, false, 9000, rule.Stay},
	} {
		p := paid(toss.StatusPartialCanceled, c.balance)
		if c.balance == p.TotalAmount {
			p.Status = toss.StatusDone
		}
		if got := snapshot(c.state, c.refund).After(rule.Answer{Payment: p, Returned: c.returned}, now); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestEarlierPartDuringACancellation checks that a part that was returned before the cancellation needs no review, unlike an unknown one.
func TestEarlierPartDuringACancellation(t *testing.T) {
	t.Parallel()
	for returned, want := range map[int]rule.Step{3000: rule.Stay, 2000: rule.NeedsReview} {
		s := snapshot(booking.Canceling, &money.Refund{State: money.RefundRequested, Amount: 9000})
		s.Payment.Returned = returned
		if got := s.After(rule.Answer{Payment: paid(toss.StatusPartialCanceled, 9000)}, now); got != want {
			t.Errorf("%d won are known to be returned: got %s, want %s", returned, got, want)
		}
	}
}

// TestRefundThatKeepsTheStay checks the answers to the refund of a part of a confirmed stay.
func TestRefundThatKeepsTheStay(t *testing.T) {
	t.Parallel()
	part := money.Refund{State: money.RefundRequested, Amount: 3000, KeepsStay: true, Part: true}
	pending, taken := part, part
	pending.State, taken.Taken = money.RefundPending, true
	for _, c := range []struct {
		name     string
		refund   money.Refund
		declined bool
		balance  int
		want     rule.Step
	}{
		{"returned", part, false, 9000, rule.Returned},
		{"not shown by the answer", part, false, 9001, rule.Stay},
		{"declined", part, true, 12000, rule.NotReturned},
		{"declined after the provider has taken the amount", taken, true, 9000, rule.Fail},
		{"another process has ended it", pending, false, 9000, rule.Stay},
		{"declined, and another process has ended it", pending, true, 9000, rule.Stay},
	} {
		a := rule.Answer{Payment: paid(toss.StatusPartialCanceled, c.balance), Declined: c.declined, Returned: !c.declined}
		if got := snapshot(booking.Done, &c.refund).After(a, now); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestPartInTheDashboard checks a part of a confirmed stay that was returned in the dashboard of the provider: it is recorded after
// the refund in progress.
func TestPartInTheDashboard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		refund   *money.Refund
		returned int
		want     rule.Step
	}{
		{"new", nil, 2999, rule.FollowPart},
		{"recorded", nil, 3000, rule.Partial},
		{"beside a refund that is not sent", &money.Refund{State: money.RefundRequested, Amount: 1000, KeepsStay: true, Part: true}, 1000, rule.Partial},
		{"beside a refund at the bank", &money.Refund{State: money.RefundPending, Amount: 1000, KeepsStay: true}, 1000, rule.Follow},
		{"beside the refund of a part at the bank", &money.Refund{State: money.RefundPending, Amount: 1000, Part: true}, 1000, rule.Follow},
		{"beside the refund of the whole at the bank", &money.Refund{State: money.RefundPending, Amount: 12000}, 0, rule.Partial},
	} {
		s := snapshot(booking.Done, c.refund)
		s.Payment.Returned = c.returned
		if got := s.After(rule.Answer{Payment: paid(toss.StatusPartialCanceled, 9000)}, now); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestDeclinedRefund checks whether a reservation continues whose refund the provider declines while it holds the money.
func TestDeclinedRefund(t *testing.T) {
	t.Parallel()
	stay := booking.Interval{Start: now, End: now.Add(time.Hour)} // that the reservation extends or replaces
	for _, c := range []struct {
		name    string
		change  func(*rule.Snapshot)
		balance int
		want    rule.Step
	}{
		{"a stay", func(*rule.Snapshot) {}, 12000, rule.Restore},
		{"an exchanged stay", func(s *rule.Snapshot) { s.Exchanged = true }, 12000, rule.Fail},
		{"an extension", func(s *rule.Snapshot) {
			s.Reservation.Extends, s.Anchor = 1, booking.Reservation{State: booking.Done, Room: 1, Interval: stay}
		}, 12000, rule.Restore},
		{"an extension without its stay", func(s *rule.Snapshot) {
			s.Reservation.Extends, s.Anchor = 1, booking.Reservation{State: booking.Canceled, Room: 1, Interval: stay}
		}, 12000, rule.Fail},
		{"an exchange after the start of the stay it replaced", func(s *rule.Snapshot) {
			s.Reservation.Replaces, s.Anchor = 1, booking.Reservation{State: booking.Done, Interval: stay}
		}, 12000, rule.Restore},
		{"a deposit that arrived after the exchange", func(s *rule.Snapshot) { s.Exchanged, s.Refund.KeyRevoked = true, false }, 12000, rule.ReturnDeposit},
		{"a stay after refunds that kept it", func(s *rule.Snapshot) { s.Payment.Returned = 3000 }, 9000, rule.Restore},
		{"a stay after a refund in the dashboard", func(s *rule.Snapshot) { s.Payment.Returned = 2000 }, 9000, rule.Fail},
		{"a reservation without a key after refunds", func(s *rule.Snapshot) { s.Payment.Returned, s.Refund.KeyRevoked = 3000, false }, 9000, rule.Fail},
	} {
		s := snapshot(booking.Canceling, &money.Refund{State: money.RefundRequested, By: "customer", KeyRevoked: true})
		c.change(&s)
		p := paid(toss.StatusDone, c.balance)
		if c.balance < p.TotalAmount {
			p.Status = toss.StatusPartialCanceled
		}
		if got := s.After(rule.Answer{Payment: p, Declined: true}, now); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestReversedDeposit checks that the account of a reservation that is over is closed if the bank has taken its deposit back.
func TestReversedDeposit(t *testing.T) {
	t.Parallel()
	pending, unsent := &money.Refund{State: money.RefundPending}, &money.Refund{State: money.RefundFailed}
	part := &money.Refund{State: money.RefundFailed, KeepsStay: true}
	for _, c := range []struct {
		name   string
		state  booking.State
		refund *money.Refund
		paid   bool
		want   rule.Step
	}{
		{"kept by the policy", booking.Canceled, nil, true, rule.CloseReversed},
		{"never paid", booking.Canceled, nil, false, rule.Stay},
		{"another process has ended the refund", booking.Canceling, nil, true, rule.Stay},
		{"the refund was not sent", booking.Canceled, unsent, true, rule.CloseReversed},
		{"the refund of a part was not sent", booking.Canceled, part, true, rule.Stay},
		{"the refund is at the bank", booking.Canceled, pending, true, rule.Stay},
	} {
		s := snapshot(c.state, c.refund)
		if c.paid {
			s.Reservation.PaidAt = now
		}
		if got := s.After(rule.Answer{Payment: paid(toss.StatusWaitingForDeposit, 12000)}, now); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// TestNothingLeft covers amounts of zero: the provider holds nothing of a stay, or contradicts itself about a canceled one.
func TestNothingLeft(t *testing.T) {
	t.Parallel()
	canceled := rule.Answer{Payment: paid(toss.StatusCanceled, 0)}
	stay := snapshot(booking.Done, nil)
	if got := stay.After(canceled, now); got != rule.Drop {
		t.Errorf("all of a stay in the dashboard: got %s, want %s", got, rule.Drop)
	}
	stay.Payment.Returned = 12000
	if got := stay.After(canceled, now); got != rule.Stay {
		t.Errorf("all of a stay by refunds that keep it: got %s, want %s", got, rule.Stay)
	}
	free := snapshot(booking.Done, nil)
	free.Reservation.Amount, canceled.Payment.TotalAmount = 0, 0
	if got := free.After(canceled, now); got != rule.Drop {
		t.Errorf("a stay without a price: got %s, want %s", got, rule.Drop)
	}
	if got := snapshot(booking.Canceled, nil).After(rule.Answer{Payment: paid(toss.StatusDone, 0)}, now); got != rule.Late {
		t.Errorf("paid, but no balance: got %s, want %s", got, rule.Late)
	}
}
