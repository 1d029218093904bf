package rule_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/cloud/internal/reserve/rule"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

var update = flag.Bool("update", false, "write the golden files")

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

var states = []booking.State{booking.Hold, booking.Confirming, booking.WaitingForDeposit, booking.Done, booking.Canceling,
	booking.Canceled, booking.Expired, booking.Released}

// TestTable tests every state against every answer at every time that matters. The golden file is the table, to be read and
// reviewed.
func TestTable(t *testing.T) {
	t.Parallel()
	payment := func(status string) toss.Payment {
		return toss.Payment{OrderID: "order", PaymentKey: "key", Currency: toss.Won, TotalAmount: 12000, BalanceAmount: 12000, Status: status}
	}
	account := func(expired bool, due time.Time) toss.Payment {
		p := payment(toss.StatusWaitingForDeposit)
		p.VirtualAccount = &toss.VirtualAccount{Expired: expired, DueDate: due}
		return p
	}
	with := func(p toss.Payment, change func(*toss.Payment)) toss.Payment { change(&p); return p }
	answers := []struct {
		name string
		rule.Answer
	}{
		{"refused", rule.Answer{Refused: true}},
		{"READY", rule.Answer{Payment: payment(toss.StatusReady)}},
		{"IN_PROGRESS", rule.Answer{Payment: payment(toss.StatusInProgress)}},
		{"DONE", rule.Answer{Payment: payment(toss.StatusDone)}},
		{"WAITING_FOR_DEPOSIT", rule.Answer{Payment: account(false, now.Add(time.Hour))}},
		{"WAITING, overdue", rule.Answer{Payment: account(false, now.Add(-time.Hour))}},
		{"WAITING, expired", rule.Answer{Payment: account(true, now.Add(-time.Nanosecond))}},
		{"WAITING, expires now", rule.Answer{Payment: account(true, now)}},
		{"CANCELED", rule.Answer{Payment: payment(toss.StatusCanceled)}},
		{"PARTIAL_CANCELED", rule.Answer{Payment: payment(toss.StatusPartialCanceled)}},
		{"PARTIAL_CANCELED, nothing left", rule.Answer{Payment: with(payment(toss.StatusPartialCanceled), func(p *toss.Payment) { p.BalanceAmount = 0 })}},
		{"EXPIRED", rule.Answer{Payment: payment(toss.StatusExpired)}},
		{"ABORTED", rule.Answer{Payment: payment(toss.StatusAborted)}},
		{"NEWER", rule.Answer{Payment: payment("NEWER")}},
		{"DONE, another amount", rule.Answer{Payment: with(payment(toss.StatusDone), func(p *toss.Payment) { p.TotalAmount-- })}},
		{"DONE, another currency", rule.Answer{Payment: with(payment(toss.StatusDone), func(p *toss.Payment) { p.Currency = "USD" })}},
		{"DONE, another order", rule.Answer{Payment: with(payment(toss.StatusDone), func(p *toss.Payment) { p.OrderID = "other" })}},
		{"DONE, another key", rule.Answer{Payment: with(payment(toss.StatusDone), func(p *toss.Payment) { p.PaymentKey = "other" })}},
		{"IN_PROGRESS, another amount", rule.Answer{Payment: with(payment(toss.StatusInProgress), func(p *toss.Payment) { p.TotalAmount-- })}},
		{"CANCELED, another amount", rule.Answer{Payment: with(payment(toss.StatusCanceled), func(p *toss.Payment) { p.TotalAmount-- })}},
		{"declined, DONE", rule.Answer{Payment: payment(toss.StatusDone), Declined: true}},
		{"declined, WAITING", rule.Answer{Payment: account(false, now.Add(time.Hour)), Declined: true}},
		{"declined, CANCELED", rule.Answer{Payment: payment(toss.StatusCanceled), Declined: true}},
	}
	refunds := []struct {
		name string
		is   *money.Refund
	}{
		{"no refund", nil},
		{"requested, key revoked", &money.Refund{State: money.RefundRequested, By: "customer", KeyRevoked: true}},
		{"requested, no key", &money.Refund{State: money.RefundRequested, By: rule.ByOverdue}},
		{"requested, amount", &money.Refund{State: money.RefundRequested, By: rule.ByAmount, KeyRevoked: true}},
		{"failed", &money.Refund{State: money.RefundFailed, By: "customer", KeyRevoked: true}},
	}
	// The stay lasts an hour. The attempt is a minute old, or old enough that no request of it is on its way.
	stay := func(startsIn time.Duration) booking.Interval {
		return booking.Interval{Start: now.Add(startsIn), End: now.Add(startsIn + time.Hour)}
	}
	times := []struct {
		name      string
		stay      booking.Interval
		attempted time.Duration
		order     money.Order
	}{
		{"before the stay", stay(time.Hour), time.Minute, money.Order{}},
		{"10 minutes left", stay(-50 * time.Minute), time.Hour, money.Order{}},
		{"less than 10 minutes left", stay(-50*time.Minute - time.Nanosecond), time.Hour, money.Order{}},
		{"over, in flight", stay(-2 * time.Hour), time.Minute, money.Order{}},
		{"over", stay(-2 * time.Hour), 3 * time.Hour, money.Order{}},
		{"abandoned, in flight", stay(time.Hour), time.Minute, money.Order{AbandonedAt: now}},
		{"abandoned", stay(time.Hour), 2 * time.Minute, money.Order{AbandonedAt: now}},
	}
	var table bytes.Buffer
	for _, at := range times {
		for _, refund := range refunds {
			for _, paid := range []string{"key", ""} {
				fmt.Fprintf(&table, "## %s, %s, payment key %q\n", at.name, refund.name, paid)
				for _, a := range answers {
					fmt.Fprintf(&table, "%-32s", a.name)
					for _, state := range states {
						s := rule.Snapshot{Reservation: booking.Reservation{State: state, OrderID: "order", Amount: 12000, Interval: at.stay, ExpiresAt: now.Add(-time.Minute)},
							Payment: money.Payment{PaymentKey: paid, AttemptedAt: now.Add(-at.attempted)}, Refund: refund.is, Order: at.order}
						step := s.After(a.Answer, now)
						kept := " "
						if step.Kept() {
							kept = "+"
						}
						fmt.Fprintf(&table, " %s: %s%s;", state, step, kept)
					}
					table.WriteByte('\n')
				}
			}
		}
	}
	golden(t, "testdata/table.golden", table.Bytes())
}

// TestCancelTable does the same for requests to cancel and for callbacks.
func TestCancelTable(t *testing.T) {
	t.Parallel()
	var table bytes.Buffer
	for _, state := range states {
		for _, method := range []booking.Method{booking.Card, booking.VirtualAccount} {
			r := booking.Reservation{State: state, Method: method}
			fmt.Fprintf(&table, "%s %s\n", state, method)
			for _, charged := range []bool{false, true} {
				for _, account := range []bool{false, true} {
					fmt.Fprintf(&table, "  cancel, charged %t, account %t: %s\n", charged, account, rule.Cancel(r, charged, account))
				}
			}
			for _, status := range []string{toss.StatusCanceled, toss.StatusWaitingForDeposit, toss.StatusDone} {
				fmt.Fprintf(&table, "  callback %s: %s\n", status, rule.Snapshot{Reservation: r}.Callback(status))
			}
			for _, ago := range []time.Duration{-time.Nanosecond, 0} {
				r.ExpiresAt = now.Add(-ago)
				none, requested, pending := rule.Snapshot{Reservation: r}, rule.Snapshot{Reservation: r, Refund: &money.Refund{State: money.RefundRequested}},
					rule.Snapshot{Reservation: r, Refund: &money.Refund{State: money.RefundPending}}
				fmt.Fprintf(&table, "  due since %v: %s; refund requested: %s; pending: %s\n", ago, none.Next(now), requested.Next(now), pending.Next(now))
			}
			fmt.Fprintf(&table, "  given up: %t\n", rule.GivenUp(state))
		}
	}
	for _, status := range []string{"", "NONE", "PENDING", "FAILED", "PARTIAL_FAILED", "COMPLETED"} {
		fmt.Fprintf(&table, "at the bank %q: %s\n", status, rule.AtBank(status))
	}
	golden(t, "testdata/cancel.golden", table.Bytes())
}

// TestReadings holds what every kind of reply is good for. The errors are the client's own.
func TestReadings(t *testing.T) {
	t.Parallel()
	replies := []struct {
		status int
		code   string
	}{
		{500, "FAILED_INTERNAL_SYSTEM_PROCESSING"}, {409, "IDEMPOTENT_REQUEST_PROCESSING"}, {429, ""}, {400, "NOBODY_KNOWS"}, {400, "ALREADY_PROCESSED_PAYMENT"},
		{400, "CARD_PROCESSING_ERROR"}, {400, "REJECT_CARD_COMPANY"}, {404, "NOT_FOUND_PAYMENT"}, {403, "FORBIDDEN_REQUEST"},
		{400, "ALREADY_CANCELED_PAYMENT"}, {403, "NOT_CANCELABLE_PAYMENT"}, {400, "INVALID_BANK"}, {400, "NOT_AVAILABLE_BANK"},
	}
	var table bytes.Buffer
	read := func(name string, confirmErr, lookErr, cancelErr error) {
		fmt.Fprintf(&table, "%s: confirmed %s, resent %s, answered %t\n", name, rule.Confirmed(confirmErr), rule.Resent(confirmErr), rule.Answered(confirmErr))
		for _, state := range []booking.State{booking.Confirming, booking.Hold} {
			for _, keys := range []toss.KeySet{toss.Widget, toss.API} {
				stay := booking.Interval{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour)}
				s := rule.Snapshot{Reservation: booking.Reservation{State: state, Interval: stay}, Payment: money.Payment{KeySet: string(keys), AttemptedAt: now.Add(-rule.InFlightLimit)}}
				inFlight := s
				inFlight.Payment.AttemptedAt = now
				for _, status := range []string{toss.StatusInProgress, toss.StatusDone} {
					p := toss.Payment{Status: status}
					fmt.Fprintf(&table, "  found %s %s %s: %s, in flight: %s\n", state, keys, status, s.Found(p, lookErr, now), inFlight.Found(p, lookErr, now))
				}
			}
		}
		refund := func(state booking.State, attempt int) rule.Snapshot {
			return rule.Snapshot{
				Reservation: booking.Reservation{State: state}, Payment: money.Payment{Status: toss.StatusWaitingForDeposit}, Refund: &money.Refund{Attempt: attempt},
			}
		}
		first, third := refund(booking.Canceling, 1), refund(booking.Canceling, 3)
		for _, status := range []string{toss.StatusDone, toss.StatusWaitingForDeposit, toss.StatusCanceled, toss.StatusExpired, toss.StatusAborted} {
			p := toss.Payment{Status: status}
			fmt.Fprintf(&table, "  cancelled, now %s: %s, third attempt: %s, not looked up: %s\n", status, first.Cancelled(cancelErr, p, nil, now), third.Cancelled(cancelErr, p, nil, now), first.Cancelled(cancelErr, p, errors.New("reset"), now))
		}
		open := toss.Payment{Status: toss.StatusWaitingForDeposit}
		fmt.Fprintf(&table, "  account of an ended reservation, third attempt: %s\n", refund(booking.Canceled, 3).Cancelled(cancelErr, open, nil, now))
		reversed, back, part := third, third, third
		reversed.Payment.Status = toss.StatusDone
		back.Refund = &money.Refund{Attempt: 3, Account: []byte("account")}
		part.Refund, part.Payment.Status = &money.Refund{Attempt: 3, KeepsStay: true, Part: true}, toss.StatusDone
		firstPart := part
		firstPart.Refund = &money.Refund{Attempt: 1, KeepsStay: true, Part: true}
		fmt.Fprintf(&table, "  deposit reversed: %s, not looked up: %s, part that keeps the stay: %s, third attempt: %s; deposit back: %s\n",
			reversed.Cancelled(cancelErr, open, nil, now), reversed.Cancelled(cancelErr, open, errors.New("reset"), now),
			firstPart.Cancelled(cancelErr, open, nil, now), part.Cancelled(cancelErr, open, nil, now), back.Cancelled(cancelErr, toss.Payment{Status: toss.StatusDone}, nil, now))
	}
	read("no error", nil, nil, errors.New("reset"))
	read("reset", errors.New("reset"), errors.New("reset"), errors.New("reset"))
	for _, r := range replies {
		client := answering(t, r.status, r.code)
		_, confirmErr := client.Confirm(t.Context(), toss.Widget, "key", toss.ConfirmRequest{PaymentKey: "key", OrderID: "order-1", Amount: 100})
		_, lookErr := client.PaymentByOrder(t.Context(), toss.Widget, "order-1")
		_, cancelErr := client.Cancel(t.Context(), toss.Widget, "key", "key", toss.CancelRequest{Reason: "reason"})
		read(fmt.Sprint(r.status, " ", r.code), confirmErr, lookErr, cancelErr)
	}
	client := answering(t, 200, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.Confirm(ctx, toss.Widget, "key", toss.ConfirmRequest{PaymentKey: "key", OrderID: "order-1", Amount: 100})
	read("no answer", err, err, err)
	golden(t, "testdata/readings.golden", table.Bytes())
}

// answering is a client of a provider that always answers the same.
func answering(t *testing.T, status int, code string) *toss.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"code":%q,"message":"안내"}`, cmp.Or(code, "x"))
	}))
	t.Cleanup(server.Close)
	client, err := toss.New(toss.Config{BaseURL: server.URL, WidgetSecretKey: "gsk", APISecretKey: "sk"})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; -update writes it, and then read what has changed:\n%s", path, got)
	}
}

// TestOwes checks when the rest of a canceled reservation is refunded: never for an account that was not paid into, although the
// provider names its amount as the balance.
func TestOwes(t *testing.T) {
	t.Parallel()
	canceled := rule.Snapshot{Reservation: booking.Reservation{State: booking.Canceled}}
	kept, outside, done := canceled, canceled, canceled
	kept.Payment.Retained, outside.Payment.SettledOutside, done.Reservation.State = 1000, 1000, booking.Done
	for _, c := range []struct {
		name    string
		s       rule.Snapshot
		status  string
		balance int
		want    bool
	}{
		{"money", canceled, toss.StatusDone, 1000, true},
		{"the rest after a part", canceled, toss.StatusPartialCanceled, 1000, true},
		{"nothing left", canceled, toss.StatusPartialCanceled, 0, false},
		{"an expired account", canceled, toss.StatusExpired, 1000, false},
		{"an open account", canceled, toss.StatusWaitingForDeposit, 1000, false},
		{"kept by the policy", kept, toss.StatusPartialCanceled, 1000, false},
		{"more than the policy keeps", kept, toss.StatusPartialCanceled, 1001, true},
		{"settled outside", outside, toss.StatusDone, 1000, false},
		{"a stay", done, toss.StatusDone, 1000, false},
	} {
		if got := c.s.Owes(toss.Payment{Status: c.status, BalanceAmount: c.balance}); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}

// TestJoined checks that refunds together return no more than was paid, also if the provider's balance contains the amount of a
// rejected transfer again.
func TestJoined(t *testing.T) {
	t.Parallel()
	part := money.Refund{State: money.RefundFailed, ErrorCode: money.PartFailed, Amount: 1000, KeepsStay: true}
	whole := money.Refund{State: money.RefundPending, Amount: 11000}
	unsent := money.Refund{State: money.RefundFailed, Amount: 1000, KeepsStay: true}
	for _, c := range []struct {
		name              string
		refund            *money.Refund
		returned, outside int
		before, after     int // balances
		want              int
	}{
		{"nothing in the dashboard", &part, 1000, 0, 11000, 11000, 0},
		{"a part in the dashboard", &part, 1000, 0, 11000, 9000, 2000},
		{"everything, without the rejected part", &part, 1000, 0, 11000, 0, 11000},
		{"everything, with the rejected part again", &part, 2000, 0, 11000, 0, 10000},
		{"the rest beside the transfer of the stay", &whole, 0, 0, 1000, 0, 1000},
		{"the amount of that transfer again", &whole, 0, 1000, 11000, 0, 0},
		{"a refund that is not at the bank", &unsent, 1000, 0, 11000, 0, 0},
		{"no refund", nil, 0, 0, 12000, 0, 0},
	} {
		s := rule.Snapshot{Refund: c.refund}
		s.Payment.Status, s.Payment.Balance = toss.StatusPartialCanceled, c.before
		s.Payment.Returned, s.Payment.SettledOutside = c.returned, c.outside
		if got := s.Joined(toss.Payment{TotalAmount: 12000, BalanceAmount: c.after}); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
