package integrators

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/client"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

var mutations = flag.Int("mutations", 400, "events of the stream that the random writers make")

// TestStreamRebuildsTheState lets every kind of writer change rows at random: guests, administrators, partners, doors, the sweep
// and the jobs, and a second process, while sessions of the database are killed. A reader with a token follows the stream
// meanwhile. It must receive each subject's versions in order without a gap, and its state must be that of the database at the end.
func TestStreamRebuildsTheState(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	connectAgent(t, s)
	reader, err := client.New(s.Root, newToken(t, s, "read"))
	if err != nil {
		t.Fatal(err)
	}
	view := &view{api: reader, next: "0", state: map[string]string{}, versions: map[string]int64{}}
	if err := view.read(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := view.events

	var enough atomic.Bool
	var writing sync.WaitGroup
	token, replica := newToken(t, s, "read", "book", "money", "doors"), s.Replica(t)
	for i := range 6 {
		w := &writer{stack: s, replica: replica, random: rand.New(rand.NewPCG(11, uint64(i))), done: map[string]int{}}
		if w.staff, err = client.New(s.Root, token); err != nil {
			t.Fatal(err)
		}
		writing.Go(func() {
			for !enough.Load() {
				w.step(t.Context())
			}
			t.Logf("writer %d: %v", i, w.done)
		})
	}
	for view.events-before < *mutations && t.Context().Err() == nil {
		if err := view.read(t.Context()); err != nil {
			t.Error(err)
			break
		}
	}
	enough.Store(true)
	writing.Wait()
	view.compare(t, s)
	t.Logf("%d events of %d subjects after %d at the start", view.events-before, len(view.versions), before)
}

// view is what a reader of the stream knows.
type view struct {
	api      *client.API
	next     string
	place    int64
	events   int
	state    map[string]string // by subject: the state of a reservation, door request or refund
	versions map[string]int64
}

// read reads to the end of the stream. A 503 while sessions of the database are killed is repeated.
func (v *view) read(ctx context.Context) error {
	limit := 200
	for {
		page, err := v.api.ListEventsWithResponse(ctx, &client.ListEventsParams{After: &v.next, Limit: &limit})
		if rejected := new(client.Error); errors.As(err, &rejected) && rejected.HTTP >= 500 {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range page.JSON200.Data.Events {
			if err := v.apply(e); err != nil {
				return err
			}
		}
		if page.JSON200.Data.Next == v.next {
			return nil
		}
		v.next = page.JSON200.Data.Next
	}
}

// apply applies one event. Versions of a branch grow; those of other subjects count without a gap.
func (v *view) apply(e client.Event) error {
	place, err := strconv.ParseInt(e.ID, 10, 64)
	if err != nil || place <= v.place {
		return fmt.Errorf("event %s after %d", e.ID, v.place)
	}
	v.place = place
	v.events++
	kind, _, _ := strings.Cut(e.Subject, ":")
	before, version := v.versions[e.Subject], int64(e.Version)
	if kind == "branch" && version <= before || kind != "branch" && version != before+1 {
		return fmt.Errorf("event %s: version %d of %s after %d", e.ID, version, e.Subject, before)
	}
	v.versions[e.Subject] = version
	_, what, _ := strings.Cut(e.Type, ".")
	if kind != "branch" && kind != "alert" && what != "moved" && what != "changed" {
		v.state[e.Subject] = strings.ToUpper(strings.ReplaceAll(what, "-", "_"))
	}
	return nil
}

// subjects are all subjects of the stream with their state, empty where events do not tell it, and their version.
const subjects = `
	select 'reservation:' || id, state, version from reservation
	union all select 'door-request:' || id, state, version from door_request
	union all select 'refund:' || id, state, version from refund
	union all select 'alert:' || id, '', version from alert
	union all select 'branch:' || code, '', revision from branch`

// compare compares the view with the database, once the service has nothing more to do.
func (v *view) compare(t *testing.T, s *servicetest.Stack) {
	t.Helper()
	s.DB.Pool.Reset() // some of its sessions are dead
	for {
		if err := v.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		rows, err := s.DB.Pool.Query(t.Context(), subjects)
		if err != nil {
			t.Fatal(err)
		}
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
			Subject, State string
			Version        int64
		}])
		if err != nil {
			t.Fatal(err)
		}
		seen := v.events
		if err := v.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if seen != v.events {
			continue // the service has changed rows meanwhile
		}
		if len(list) != len(v.versions) {
			t.Errorf("%d subjects in the stream, %d in the database", len(v.versions), len(list))
		}
		for _, row := range list {
			if v.state[row.Subject] != row.State || v.versions[row.Subject] != row.Version {
				t.Errorf("%s: %s %d from the stream, %s %d in the database", row.Subject, v.state[row.Subject], v.versions[row.Subject], row.State, row.Version)
			}
		}
		return
	}
}

// writer changes rows at random. Rejections are part of it: the stream alone is judged.
type writer struct {
	stack   *servicetest.Stack
	replica *reserve.Service
	staff   *client.API
	random  *rand.Rand
	done    map[string]int
	booked  []string // partners' bookings
}

func (w *writer) step(ctx context.Context) {
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"guest pays", func(ctx context.Context) error { return w.buy(ctx, sandbox.MethodCard) }},
		{"guest pays", func(ctx context.Context) error { return w.buy(ctx, sandbox.MethodCard) }},
		{"guest deposits", func(ctx context.Context) error { return w.buy(ctx, sandbox.MethodVirtualAccount) }},
		{"administrator books", w.book}, {"administrator moves", w.move}, {"administrator cancels", w.cancel}, {"administrator edits a room", w.edit},
		{"partner", w.partner}, {"door", w.open}, {"second process", w.second}, {"sweep", w.expire}, {"killed session", w.kill},
	}
	step := steps[w.random.IntN(len(steps))]
	err := step.do(ctx)
	if rejected := new(client.Error); errors.As(err, &rejected) {
		w.done[fmt.Sprintf("%s %d", step.name, rejected.HTTP)]++
	} else if err != nil {
		w.done[step.name+" failed"]++
	} else {
		w.done[step.name]++
	}
}

// times returns a room of gangnam and an hour in the next two weeks.
func (w *writer) times() (room int, start, end time.Time) {
	start = w.stack.Clock.Now().Truncate(10 * time.Minute).Add(time.Duration(1+w.random.IntN(14*24)) * time.Hour)
	return 1 + w.random.IntN(6), start, start.Add(time.Hour)
}

func local(t time.Time) string { return t.In(time.FixedZone("", 9*60*60)).Format("200601021504") }

// buy is a guest who leaves before the payment, or pays.
func (w *writer) buy(ctx context.Context, method string) error {
	api, err := client.New(w.stack.Root, "")
	if err != nil {
		return err
	}
	room, start, end := w.times()
	if _, err = api.HoldWithResponse(ctx, client.HoldRequest{Branch: "gangnam", Room: room, StartDateTime: local(start), EndDateTime: local(end)}); err != nil {
		return err
	}
	if w.random.IntN(4) == 0 {
		if w.random.IntN(2) == 0 {
			_, err = api.ReleaseWithResponse(ctx)
		}
		return err // or the hold expires
	}
	held, err := api.ShowHoldWithResponse(ctx)
	if err != nil {
		return err
	}
	amount := held.JSON200.Data.Amount
	order, err := api.RegisterPaymentWithResponse(ctx, client.PaymentRequest{Amount: amount, Name: "홍길동", MobileNum: "010-1234-5678"})
	if err != nil {
		return err
	}
	orderID := order.JSON200.Data.OrderID
	key, err := w.stack.Sandbox.Authenticate(sandbox.Checkout{OrderID: orderID, Amount: amount, Method: method, Bank: "20"})
	if err != nil {
		return err
	}
	if _, err = api.ConfirmPaymentWithResponse(ctx, client.ConfirmRequest{PaymentKey: key, OrderID: orderID, Amount: amount}); err != nil {
		return err
	}
	if method == sandbox.MethodVirtualAccount && w.random.IntN(3) > 0 {
		_, err = w.stack.Sandbox.Deposit(orderID)
	}
	return err
}

func (w *writer) book(ctx context.Context) error {
	room, start, end := w.times()
	if _, err := w.staff.AdminHoldWithResponse(ctx, client.HoldRequest{Branch: "gangnam", Room: room, StartDateTime: local(start), EndDateTime: local(end)}); err != nil {
		return err
	}
	name := "이순신"
	_, err := w.staff.RegisterWithoutPaymentWithResponse(ctx, client.AdminPaymentRequest{Name: &name})
	return err
}

// confirmed returns a confirmed reservation.
func (w *writer) confirmed(ctx context.Context) (id string, err error) {
	err = w.stack.DB.Pool.QueryRow(ctx, `select id::text from reservation where state = 'DONE' order by md5(id::text || $1) limit 1`, strconv.Itoa(w.random.Int())).Scan(&id)
	return id, err
}

func (w *writer) move(ctx context.Context) error {
	id, err := w.confirmed(ctx)
	if err != nil {
		return err
	}
	room, start, end := w.times()
	_, err = w.staff.MoveReservationWithResponse(ctx, id, client.MoveRequest{Room: strconv.Itoa(room), StartDateTime: local(start), EndDateTime: local(end)})
	return err
}

func (w *writer) cancel(ctx context.Context) error {
	id, err := w.confirmed(ctx)
	if err != nil {
		return err
	}
	bank, number, holder := "20", "1002123456789", "홍길동"
	_, err = w.staff.AdminCancelWithResponse(ctx, id, &client.AdminCancelParams{BookingStatus: "paid"},
		client.AdminCancelRequest{RefundReceiveAccountBank: &bank, RefundReceiveAccountNumber: &number, RefundReceiveAccountHolderName: &holder})
	return err
}

func (w *writer) edit(ctx context.Context) error {
	_, err := w.staff.SwitchRoomWithResponse(ctx, "gangnam", strconv.Itoa(1+w.random.IntN(6)), client.SwitchRoomJSONRequestBody{Enabled: w.random.IntN(4) > 0})
	return err
}

// partner is the guest of a partner channel, who books, moves or cancels there.
func (w *writer) partner(context.Context) error {
	room, start, end := w.times()
	if len(w.booked) > 0 && w.random.IntN(2) == 0 {
		last := len(w.booked) - 1
		if w.random.IntN(2) == 0 {
			_, err := w.stack.Sandbox.MoveBooking(w.booked[last], start, end)
			return err
		}
		id := w.booked[last]
		w.booked = w.booked[:last]
		_, err := w.stack.Sandbox.CancelBooking(id)
		return err
	}
	made, _, err := w.stack.Sandbox.Book(sandbox.Booking{Branch: "gangnam", Room: room, Start: start, End: end, Name: "홍길동", Phone: "010-1234-5678"})
	if err == nil {
		w.booked = append(w.booked, made.ID)
	}
	return err
}

func (w *writer) open(ctx context.Context) error {
	_, err := client.OpenRoomAsStaff(ctx, w.staff, "gangnam", strconv.Itoa(1+w.random.IntN(6)))
	return err
}

// second is a second process: it holds and releases rooms, and settles reservations of the first.
func (w *writer) second(ctx context.Context) error {
	if w.random.IntN(2) == 0 {
		id, err := w.confirmed(ctx)
		if err != nil {
			return err
		}
		number, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return err
		}
		return w.replica.Settle(ctx, booking.ReservationID(number))
	}
	room, start, end := w.times()
	clock := func(t time.Time) time.Time { return t.UTC().Add(9 * time.Hour) } // of Seoul, as UTC
	token, _, err := w.replica.Hold(ctx, reserve.HoldRequest{Branch: "gangnam", Room: room, Times: booking.LocalInterval{Start: clock(start), End: clock(end)}})
	if err != nil || w.random.IntN(3) == 0 {
		return err
	}
	return w.replica.Release(ctx, token)
}

// expire lets the holds of the moment expire, so that the sweep and later holds end them.
func (w *writer) expire(context.Context) error {
	if w.random.IntN(4) == 0 {
		w.stack.Clock.Advance(11 * time.Minute)
	}
	return nil
}

// kill kills a session of the database, whatever it does.
func (w *writer) kill(ctx context.Context) error {
	_, err := w.stack.DB.Pool.Exec(ctx, `
		select pg_terminate_backend(pid) from pg_stat_activity
		where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid() order by md5(pid::text || $1) limit 1`, strconv.Itoa(w.random.Int()))
	return err
}
