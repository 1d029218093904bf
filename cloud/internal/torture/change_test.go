package torture

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// The crash points of a payment and of a refund, in their order. Up to the first one nothing is committed.
var (
	paySteps    = []string{"confirm.beginning", "confirm.begun", "confirm.answered", "settle.applied", "confirm.finished"}
	partSteps   = []string{"refund.beginning", "cancel.begun", "cancel.answered", "settle.applied", "cancel.finished"}
	cancelSteps = []string{"cancel.beginning", "cancel.begun", "cancel.answered", "settle.applied", "cancel.finished"}
)

// changes returns a point for each crash point of each change of a stay. `go test` runs the third one of each change, in
// which the provider has moved the money and the service has not recorded it.
func changes() (list []point) {
	for i, change := range []struct {
		what  string
		steps []string
		do    func(r *rig, step string) error
	}{
		{"a partial refund", partSteps, crashInPart},
		{"the refund of the rest after a part", cancelSteps, crashInRest},
		{"a cancellation while a part is returned", cancelSteps, crashInCancelDuringPart},
		{"an extension", paySteps, crashInExtension},
		{"an exchange", append(slices.Clone(paySteps), cancelSteps[2], cancelSteps[4]), crashInExchange},
		{"an early end", []string{"end.beginning", "end.finished"}, crashInEnd},
		{"a compensation", append([]string{"compensation.beginning", "compensation.begun"}, cancelSteps[2:]...), crashInCompensation},
	} {
		for j, step := range change.steps {
			list = append(list, point{
				name: fmt.Sprintf("C%d.%d", 28+i, j+1), what: fmt.Sprintf("killed in %s at %s", change.what, step),
				within: 3 * time.Minute, slow: j != min(2, len(change.steps)-1), do: func(r *rig) error { return change.do(r, step) },
			})
		}
	}
	return append(list, point{name: "C35", what: "killed again and again while 25 doors are stuck", within: 5 * time.Minute, do: stuckDoors})
}

// stay is a paid stay of a guest who is logged in.
type stay struct {
	*moneytest.Buyer
	wish  moneytest.Wish
	order moneytest.Confirm
	id    int64
	admin *moneytest.Buyer
}

// stay buys a stay while no failpoint is armed.
func (r *rig) stay() (s stay, err error) {
	if s.Buyer, s.order, s.wish, err = r.bought(card); err != nil {
		return s, err
	}
	s.admin = r.buyer()
	if err = errors.Join(s.Login(r.ctx, s.wish.Mobile), s.admin.LoginAdmin(r.ctx, "hq", "hq-demo")); err != nil {
		return s, err
	}
	_, s.id, err = r.state(s.order.OrderID)
	return s, err
}

// crash restarts the service with a failpoint, makes a request, and restarts the service after the crash. The request itself
// may be answered.
func (r *rig) crash(step string, request func() (moneytest.Reply, error)) error {
	r.replicas[0].kill()
	if err := r.replicas[0].start(step); err != nil {
		return err
	}
	_, _ = request() // the crash may be faster than the answer
	if err := r.replicas[0].crashed(); err != nil {
		return err
	}
	return r.replicas[0].start("")
}

// succeed repeats a request until it is answered with 200.
func (r *rig) succeed(request func() (moneytest.Reply, error)) error {
	var last moneytest.Reply
	err := r.until(func() (ok bool, err error) {
		last, err = request()
		return err == nil && last.HTTP == http.StatusOK, errors.Join(err, last.OK())
	}, "answered with 200")
	return err
}

// returned checks the refunds of an order at the provider once none is in progress.
func (r *rig) returned(order string, want ...int) error {
	if err := moneytest.Settled(r.ctx, r.pool); err != nil {
		return err
	}
	var got []int
	for _, p := range r.box.Payments(order) {
		for _, c := range p.Cancels {
			got = append(got, c.CancelAmount)
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("order %s: the provider returned %v, want %v", order, got, want)
	}
	return nil
}

func (s stay) part(r *rig, won int, key string) func() (moneytest.Reply, error) {
	admin := *s.admin
	admin.Header = http.Header{"Idempotency-Key": {key}}
	return func() (moneytest.Reply, error) {
		return admin.Post(r.ctx, fmt.Sprintf("/v2/admin/reservations/%d/refunds", s.id), map[string]any{"amount": won, "reason": "소음"})
	}
}

func (s stay) cancel(r *rig) func() (moneytest.Reply, error) {
	return func() (moneytest.Reply, error) {
		return s.Post(r.ctx, "/payment/cancel", map[string]any{"id": s.id, "cancelReason": "변심"})
	}
}

// crashInPart kills the service in a partial refund. The request, repeated with its key, returns the money once; the stay
// keeps its key.
func crashInPart(r *rig, step string) error {
	s, err := r.stay()
	if err != nil {
		return err
	}
	part := s.part(r, 1000, "part")
	return errors.Join(r.crash(step, part), r.succeed(part), r.await(s.order.OrderID, "DONE"), r.returned(s.order.OrderID, 1000))
}

func crashInRest(r *rig, step string) error {
	s, err := r.stay()
	if err != nil {
		return err
	}
	if err := r.succeed(s.part(r, 1000, "part")); err != nil {
		return err
	}
	return errors.Join(r.crash(step, s.cancel(r)), s.canceled(r, step), r.returned(s.order.OrderID, 1000, s.order.Amount-1000))
}

// canceled waits for the end of a cancellation. If nothing was committed before the crash, the guest cancels again.
func (s stay) canceled(r *rig, step string) error {
	if step == cancelSteps[0] {
		if err := r.succeed(s.cancel(r)); err != nil {
			return err
		}
	}
	return r.await(s.order.OrderID, "CANCELED")
}

// crashInCancelDuringPart cancels while the answer about a part is lost, so that the part is open; the guest cancels until
// the cancellation is accepted.
func crashInCancelDuringPart(r *rig, step string) error {
	s, err := r.stay()
	if err != nil {
		return err
	}
	if err := r.fault(sandbox.Fault{Target: sandbox.TargetCancel, Kind: sandbox.FaultDropAfterCommit}); err != nil {
		return err
	}
	part := s.part(r, 1000, "part")
	if reply, err := part(); err == nil && reply.HTTP == http.StatusOK && r.haste == 1 {
		return fmt.Errorf("the part was not left open: %s", reply.Raw)
	}
	crash := r.crash(step, func() (moneytest.Reply, error) {
		for {
			reply, err := s.cancel(r)()
			if err != nil || reply.HTTP == http.StatusOK {
				return reply, err // the failpoint is hit
			}
			time.Sleep(50 * time.Millisecond) // the part is open: there is no event to wait for
		}
	})
	if crash != nil {
		return crash
	}
	// The crash may have been in the settlement of the part, before the cancellation was accepted.
	err = r.until(func() (bool, error) {
		_, _ = s.cancel(r)()
		state, _, err := r.state(s.order.OrderID)
		return state == "CANCELED", err
	}, "the stay is canceled")
	return errors.Join(err, r.returned(s.order.OrderID, 1000, s.order.Amount-1000))
}

// crashInExtension kills the service while an extension is paid. The key of the stay is the same before and after, and covers
// the extension.
func crashInExtension(r *rig, step string) error {
	s, err := r.stay()
	if err != nil {
		return err
	}
	key, err := s.key(r)
	if err != nil {
		return err
	}
	end := s.wish.Start.Add(2 * time.Hour)
	reply, err := s.Post(r.ctx, "/v2/keys/"+key+"/extension", map[string]string{"endDateTime": moneytest.Wire(end)})
	order, err := r.pay(reply, err)
	if err != nil {
		return err
	}
	if err := s.confirmAcross(r, step, order); err != nil {
		return err
	}
	after, err := s.key(r)
	if err != nil || after != key {
		return fmt.Errorf("the key is %q, want %q (%w)", after, key, err)
	}
	var until time.Time
	err = r.pool.QueryRow(r.ctx, `select max(end_at) from reservation where (id = $1 or extends = $1) and state = 'DONE'`, s.id).Scan(&until)
	if err != nil || !until.Equal(end) {
		return fmt.Errorf("the stay ends at %s, want %s (%w)", until, end, err)
	}
	return errors.Join(r.returned(order.OrderID), r.returned(s.order.OrderID))
}

// pay goes through the payment widget for a hold that was answered.
func (r *rig) pay(reply moneytest.Reply, err error) (order moneytest.Confirm, _ error) {
	if err := errors.Join(err, reply.OK()); err != nil {
		return order, err
	}
	if err := json.Unmarshal(reply.Data, &order); err != nil {
		return order, err
	}
	order.PaymentKey, err = r.box.Authenticate(sandbox.Checkout{OrderID: order.OrderID, Amount: order.Amount, Method: card})
	return order, err
}

// confirmAcross confirms a payment, which kills the service, and waits until it is confirmed.
func (s stay) confirmAcross(r *rig, step string, order moneytest.Confirm) error {
	confirm := func() (moneytest.Reply, error) { return s.Post(r.ctx, "/payment/confirm", order) }
	if err := r.crash(step, confirm); err != nil {
		return err
	}
	if step == paySteps[0] {
		if err := r.succeed(confirm); err != nil {
			return err
		}
	}
	if err := r.await(order.OrderID, "DONE"); err != nil {
		return err
	}
	if _, captured := moneytest.Confirms(r.box, order.OrderID); captured != 1 {
		return fmt.Errorf("order %s was charged %d times", order.OrderID, captured)
	}
	return nil
}

// key returns the owner's key of the stay.
func (s stay) key(r *rig) (string, error) {
	reply, err := s.Do(r.ctx, http.MethodGet, "/v2/my-keys", nil)
	if err := errors.Join(err, reply.OK()); err != nil {
		return "", err
	}
	var list struct {
		Keys []struct {
			ID          int64
			DoorlockKey string
		}
	}
	if err := json.Unmarshal(reply.Data, &list); err != nil {
		return "", err
	}
	for _, k := range list.Keys {
		if k.ID == s.id {
			return k.DoorlockKey, nil
		}
	}
	return "", fmt.Errorf("the stay has no key: %s", reply.Raw)
}

// crashInExchange kills the service while the new stay of an exchange is paid, or while the old one is refunded.
func crashInExchange(r *rig, step string) error {
	s, err := r.stay()
	if err != nil {
		return err
	}
	start := s.wish.Start.Add(24 * time.Hour)
	reply, err := s.Post(r.ctx, fmt.Sprintf("/v2/my-reservations/%d/exchange", s.id), map[string]any{
		"room": s.wish.Room, "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(2 * time.Hour)),
	})
	if err := errors.Join(err, reply.OK()); err != nil {
		return err
	}
	var held struct{ Amount int }
	if err := json.Unmarshal(reply.Data, &held); err != nil {
		return err
	}
	reply, err = s.Post(r.ctx, "/payment", map[string]any{"amount": held.Amount, "name": "홍길동", "mobileNum": s.wish.Mobile})
	if err := errors.Join(err, reply.OK()); err != nil {
		return err
	}
	var registered struct{ OrderID string }
	if err := json.Unmarshal(reply.Data, &registered); err != nil {
		return err
	}
	order := moneytest.Confirm{OrderID: registered.OrderID, Amount: held.Amount}
	if order.PaymentKey, err = r.box.Authenticate(sandbox.Checkout{OrderID: order.OrderID, Amount: order.Amount, Method: card}); err != nil {
		return err
	}
	return errors.Join(s.confirmAcross(r, step, order), r.await(s.order.OrderID, "CANCELED"),
		r.returned(s.order.OrderID, s.order.Amount), r.returned(order.OrderID))
}

// begin moves the stay so that it began some minutes ago. Guests cannot buy such a time.
func (s stay) begin(r *rig) error {
	_, err := r.pool.Exec(r.ctx, `
		update reservation set start_at = $2, end_at = $3, occupied = tstzrange($2::timestamptz, $3::timestamptz + interval '10 minutes') where id = $1`,
		s.id, time.Now().Truncate(10*time.Minute).Add(-10*time.Minute), time.Now().Truncate(10*time.Minute).Add(50*time.Minute))
	return err
}

// crashInEnd kills the service while a guest ends the stay. The request can be repeated, and nothing is refunded.
func crashInEnd(r *rig, step string) error {
	s, err := r.stay()
	if err != nil {
		return err
	}
	key, err := s.key(r)
	if err := errors.Join(err, s.begin(r)); err != nil {
		return err
	}
	end := func() (moneytest.Reply, error) { return s.Post(r.ctx, "/v2/keys/"+key+"/end", nil) }
	if err := r.crash(step, end); err != nil {
		return err
	}
	// A stay that was ended before the crash is over from the next ten-minute mark on: 410.
	err = r.until(func() (bool, error) {
		reply, err := end()
		return err == nil && (reply.HTTP == http.StatusOK || reply.HTTP == http.StatusGone), errors.Join(err, reply.OK())
	}, "the stay has ended")
	if err != nil {
		return err
	}
	var length time.Duration
	err = r.pool.QueryRow(r.ctx, `select end_at - start_at from reservation where id = $1`, s.id).Scan(&length)
	if err != nil || length > 30*time.Minute {
		return fmt.Errorf("the stay lasts %s (%w)", length, err)
	}
	return r.returned(s.order.OrderID)
}

// compensating has the branch compensate guests who cannot enter.
func (r *rig) compensating() error {
	_, err := r.pool.Exec(r.ctx, `update branch set compensation = '{"afterMinutes":1,"wonPerMinute":100}' where code = 'gangnam'`)
	return err
}

// press records the result of a press at the room's door some time ago, as the agent reports it.
func (s stay) press(r *rig, state, outcome string, ago time.Duration) error {
	_, err := r.pool.Exec(r.ctx, `
		insert into door_request (id, branch_id, reservation_id, requested_by, kind, device, devices, state, created_at, granted_at, finished_at, outcomes)
		select $1, r.branch_id, r.id, 'customer', 'room', 'room_' || m.no, array['room_' || m.no], $4, $3, $3, $3,
		       jsonb_build_object('room_' || m.no, jsonb_build_object('outcome', $5::text))
		from reservation r join room m on m.id = r.room_id where r.id = $2`, uuid.New(), s.id, time.Now().Add(-ago), state, outcome)
	return err
}

// entries are the ways in which a guest gets in after a failure.
var entries = []func(r *rig, s stay) error{
	func(r *rig, s stay) error { return s.press(r, "SUCCESS", "opened", time.Minute) },
	func(r *rig, s stay) error { return s.press(r, "UNKNOWN", "", time.Minute) },
	func(r *rig, s stay) error {
		_, err := r.pool.Exec(r.ctx, `
			insert into door_event (branch_id, device, kind, at) select r.branch_id, 'room_' || m.no, 'door-opened', $2
			from reservation r join room m on m.id = r.room_id where r.id = $1`, s.id, time.Now().Add(-time.Minute))
		return err
	},
	func(r *rig, s stay) error {
		tag, err := r.pool.Exec(r.ctx, `
			insert into pass_entry (username, journal, entry, branch_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
			select a.username, 'j', r.id, r.branch_id, r.id, 'room_' || m.no, $2, 'opened', '', 'pin', '', '', $2
			from reservation r join room m on m.id = r.room_id join agent_credential a on a.branch_id = r.branch_id
			where r.id = $1 limit 1`, s.id, time.Now().Add(-time.Minute))
		if err == nil && tag.RowsAffected() != 1 {
			err = errors.New("no entry by PIN")
		}
		return err
	},
}

// stuckDoors kills the service at every step of compensations and at random moments. Each guest who cannot enter is
// compensated once, and a guest who got in is not.
func stuckDoors(r *rig) error {
	const stuck, rooms = 25, 30
	_, err := r.pool.Exec(r.ctx, `
		insert into room (branch_id, no, machine, grade, min60, enabled, lock)
		select b.id, n, 'bed', '', 13000, true, 'fitted' from branch b, generate_series(7, $1) n where b.code = 'gangnam'`, rooms)
	if err != nil {
		return err
	}
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	stays := make([]stay, rooms)
	for i := range stays {
		s := stay{Buyer: r.buyer(), wish: r.wish(card)}
		s.wish.Room, s.wish.Start = i+1, time.Now().Truncate(10*time.Minute).Add(3*time.Hour)
		if s.order, err = s.Buy(r.ctx, s.wish); err != nil {
			return err
		}
		if _, s.id, err = r.state(s.order.OrderID); err != nil {
			return err
		}
		stays[i] = s
	}
	// Key messages are sent before the kills: two attempts whose outcome a crash hides are the last ones.
	if err := moneytest.Settled(r.ctx, r.pool); err != nil {
		return err
	}
	r.replicas[0].kill()
	for i, s := range stays {
		if err := errors.Join(s.begin(r), s.press(r, "FAILED", "failed", 2*time.Minute)); err != nil {
			return err
		}
		if i >= stuck {
			if err := entries[i%len(entries)](r, s); err != nil {
				return err
			}
		}
	}
	if err := r.compensating(); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(r.run), 35))
	for _, step := range []string{"compensation.beginning", "compensation.begun", "cancel.answered", "", "settle.applied", "", "cancel.finished", ""} {
		if err := r.replicas[0].start(step); err != nil {
			return err
		}
		select {
		case <-r.replicas[0].done: // it hit the failpoint
		case <-time.After(time.Duration(rng.IntN(1500)) * time.Millisecond):
		}
		r.replicas[0].kill()
	}
	if err := r.replicas[0].start(""); err != nil {
		return err
	}
	err = r.until(func() (bool, error) {
		var n int
		err := r.pool.QueryRow(r.ctx, `select count(*) from compensation c join refund f on f.id = c.refund_id where f.state = 'COMPLETED'`).Scan(&n)
		return n >= stuck, err
	}, "every guest is compensated")
	if err != nil {
		return err
	}
	if err := moneytest.Settled(r.ctx, r.pool); err != nil {
		return err
	}
	for i, s := range stays {
		refunds := 0
		for _, p := range r.box.Payments(s.order.OrderID) {
			refunds += len(p.Cancels)
		}
		if want := min(1, max(0, stuck-i)); refunds != want {
			err = errors.Join(err, fmt.Errorf("room %d: %d refunds, want %d", s.wish.Room, refunds, want))
		}
	}
	return err
}

func init() {
	for room := 7; room <= 30; room++ {
		moneytest.Prices[room] = 13000
	}
}

// crashInCompensation kills the service while it compensates a guest whose door did not open.
func crashInCompensation(r *rig, step string) error {
	s, err := r.stay()
	if err != nil {
		return err
	}
	if err := s.begin(r); err != nil {
		return err
	}
	err = r.crash(step, func() (moneytest.Reply, error) {
		if err := r.compensating(); err != nil {
			return moneytest.Reply{}, err
		}
		return moneytest.Reply{}, s.press(r, "FAILED", "failed", 2*time.Minute)
	})
	if err != nil {
		return err
	}
	var won int
	err = r.until(func() (bool, error) {
		err := r.pool.QueryRow(r.ctx, `select coalesce(sum(f.amount), 0)::int from compensation c join refund f on f.id = c.refund_id
			where c.reservation_id = $1 and f.state = 'COMPLETED'`, s.id).Scan(&won)
		return won > 0, err
	}, "the guest is compensated")
	return errors.Join(err, r.returned(s.order.OrderID, won), r.await(s.order.OrderID, "DONE"))
}
