package reserve_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

var (
	sequences = flag.Int("sequences", 16, "random sequences of changes of a stay")
	firstSeed = flag.Uint64("seed", 1, "of the first sequence")
)

// sequencesPerShop bounds the sequences of one database, so that the times of its stays lie within the horizon, and that a busy
// machine is done with them before the shop's context ends.
const sequencesPerShop = 100

// TestRandomChanges buys stays and changes them at random: extensions, exchanges, moves, new keys, partial refunds, early
// ends, compensations and cancellations under a refund policy, with answers of the provider lost in between. At the end of the test
// the provider holds, for each order, what was paid and not refunded, and its books equal ours; see moneytest.Audit.
func TestRandomChanges(t *testing.T) {
	t.Parallel()
	for first := 0; first < *sequences; first += sequencesPerShop {
		n := min(sequencesPerShop, *sequences-first)
		t.Run(fmt.Sprint(first), func(t *testing.T) { changeAtRandom(t, *firstSeed+uint64(first), n) })
	}
}

func changeAtRandom(t *testing.T, seed uint64, n int) {
	s := open(t)
	admin := s.buyer()
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	turnovers(t, s, admin)
	s.compensating(t, `{"afterMinutes":1,"extendFirst":true,"wonPerMinute":77,"fullAfterMinutes":6}`)
	s.exec(t, `update branch set refund_policy = $1 where code = 'gangnam'`,
		`[{"untilMinutesBefore":7200,"percent":100},{"untilMinutesBefore":2880,"percent":67},{"untilMinutesBefore":30,"percent":33}]`)
	const workers = 4
	counts := make([]map[string]int, workers)
	origin := s.Clock.Now().Truncate(10 * time.Minute).Add(24 * time.Hour)
	err := together(workers, func(w int) error {
		counts[w] = map[string]int{}
		for i := w; i < n; i += workers {
			r := &random{s: s, admin: admin, origin: origin, n: i, rng: rand.New(rand.NewPCG(seed+uint64(i), 0)), done: counts[w]}
			if err := r.run(); err != nil {
				return fmt.Errorf("sequence %d: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s.changeBegunStays(t, origin, origin.Add(time.Duration(n/6+2)*6*time.Hour), rand.New(rand.NewPCG(seed, 1)), counts[0])
	total := map[string]int{}
	for _, c := range counts {
		for k, n := range c {
			total[k] += n
		}
	}
	t.Logf("%d sequences: %v", n, total)
	if pairs, err := s.tooClose(); err != nil || pairs != "" {
		t.Errorf("stays lie closer than the turnover of their room: %s (%v)", pairs, err)
	}
	s.eventually(t, "every payment and refund is settled", func() bool {
		return s.count(t, `select (select count(*) from reservation where state in ('CONFIRMING', 'CANCELING', 'WAITING_FOR_DEPOSIT'))
			+ (select count(*) from refund where state in ('REQUESTED', 'PENDING'))`) == 0
	})
	s.balanced(t)
}

// changeBegunStays goes through the time of the stays hour by hour: guests end their stays, administrators return parts, and
// doors do not open.
func (s *shop) changeBegunStays(t *testing.T, from, to time.Time, rng *rand.Rand, done map[string]int) {
	t.Helper()
	replica := s.Replica(t)
	for at := from; at.Before(to); at = at.Add(time.Hour) {
		rows, err := s.DB.Pool.Query(s.ctx, `select id from reservation where state = 'DONE' and extends is null and start_at = $1 order by id`, at)
		if err != nil {
			t.Fatal(err)
		}
		begun, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil {
			t.Fatal(err)
		}
		if len(begun) == 0 {
			continue
		}
		s.Clock.Advance(at.Add(time.Minute).Sub(s.Clock.Now()))
		for _, id := range begun {
			switch rng.IntN(3) {
			case 0:
				s.press(t, id, "room", "FAILED", "failed")
			case 1:
				reply, err := s.buyer().Post(s.ctx, "/v2/keys/"+s.key(t, id)+"/end", nil)
				if err != nil || reply.HTTP == http.StatusInternalServerError {
					t.Fatal(err, reply.Raw)
				}
				done[fmt.Sprint("end ", reply.HTTP)]++
			default:
				_, err := replica.RefundPart(s.ctx, part(id, 1+rng.IntN(9000)))
				done[fmt.Sprintf("part of a begun stay: %v", err)]++
			}
		}
		for range 2 { // both steps
			s.Clock.Advance(3 * time.Minute)
			if err := replica.Compensate(s.ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	done["compensated"] += s.count(t, `select count(*) from compensation where kind <> 'none'`)
	done["compensated with everything"] += s.count(t, `select count(*) from compensation where reason = $1 and amount > 0`, postgres.CompensatedWhole)
	if n := s.count(t, `select count(*) from (select from refund where requested_by = $1 group by reservation_id having count(*) > 2) often`, reserve.ByCompensation); n > 0 {
		t.Errorf("%d stays are compensated more than twice", n)
	}
	if n := s.count(t, `
		select count(*) from compensation c where c.amount <> (
			select coalesce(sum(f.amount), 0) from refund f join reservation r on r.id = f.reservation_id
			where coalesce(r.extends, r.id) = c.reservation_id and f.requested_by = $1)`, reserve.ByCompensation); n > 0 {
		t.Errorf("%d compensations differ from their refunds", n)
	}
}

// balanced compares, order by order, what was paid and not refunded with what the provider holds and with the entries of our
// books.
func (s *shop) balanced(t *testing.T) {
	t.Helper()
	rows, err := s.DB.Pool.Query(s.ctx, `
		select r.order_id, r.amount - coalesce((select sum(f.amount) from refund f where f.reservation_id = r.id and f.state = 'COMPLETED'), 0),
		       coalesce((select sum(won) from money_entry m where m.order_id = r.order_id), 0)
		from reservation r where r.order_id is not null and r.paid_at is not null`)
	if err != nil {
		t.Fatal(err)
	}
	var (
		order      string
		want, ours int
		orders     int
	)
	_, err = pgx.ForEachRow(rows, []any{&order, &want, &ours}, func() error {
		held := 0
		for _, p := range s.Sandbox.Payments(order) {
			if p.ApprovedAt != nil {
				held += p.BalanceAmount
			}
		}
		orders++
		if held != want || ours != want {
			t.Errorf("order %s: %d won were paid and not refunded, the provider holds %d, the books say %d", order, want, held, ours)
		}
		return nil
	})
	if err != nil || orders == 0 {
		t.Errorf("%d orders were compared, %v", orders, err)
	}
}

// random is one sequence of changes of one stay.
type random struct {
	s      *shop
	admin  *moneytest.Buyer
	origin time.Time // the start of the first stay
	n      int
	rng    *rand.Rand
	done   map[string]int // operations by their status

	guest *moneytest.Buyer
	wish  moneytest.Wish
	id    int64
}

func (r *random) run() error {
	method := []string{sandbox.MethodCard, sandbox.MethodEasyPay, sandbox.MethodMobilePhone}[r.rng.IntN(3)]
	r.guest = r.s.buyer()
	r.wish = moneytest.Wish{Room: r.n%6 + 1, Start: r.origin.Add(time.Duration(r.n/6) * 6 * time.Hour),
		Method: method, Mobile: fmt.Sprintf("0104%07d", r.n)}
	order, err := r.guest.Buy(r.s.ctx, r.wish)
	if err != nil {
		r.done["not bought"]++
		return nil //nolint:nilerr // another stay was moved there, or the answer of the provider is lost
	}
	if err := r.s.DB.Pool.QueryRow(r.s.ctx, `select id from reservation where order_id = $1`, order.OrderID).Scan(&r.id); err != nil {
		return err
	}
	if err := r.guest.Login(r.s.ctx, r.wish.Mobile); err != nil {
		return err
	}
	for range 3 + r.rng.IntN(6) {
		if err := r.step(); err != nil {
			return err
		}
	}
	return nil
}

// step makes one change. Rejections are part of the sequence; only an answer of 500 or none is an error.
func (r *random) step() error {
	if r.rng.IntN(6) == 0 {
		kind := []sandbox.FaultKind{sandbox.FaultDropAfterCommit, sandbox.FaultError}[r.rng.IntN(2)]
		target := []sandbox.FaultTarget{sandbox.TargetConfirm, sandbox.TargetCancel, sandbox.TargetGet}[r.rng.IntN(3)]
		if err := r.s.Sandbox.SetFault(sandbox.Fault{Target: target, Kind: kind, Times: 1, Status: 500}); err != nil {
			return err
		}
	}
	switch r.rng.IntN(12) {
	case 8:
		return r.turnover()
	case 11:
		return r.rotateKey()
	case 9, 10:
		return r.note("part", r.admin, http.MethodPost, fmt.Sprintf("/v2/admin/reservations/%d/refunds", r.id),
			map[string]any{"amount": 1 + r.rng.IntN(9000), "reason": "소음", "refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"})
	case 0, 1, 2:
		return r.extend()
	case 3:
		return r.exchange()
	case 4:
		return r.move()
	case 5:
		return r.note("release", r.guest, http.MethodDelete, "/reservation", nil)
	case 6:
		return r.cancelExtension()
	}
	return r.note("cancel", r.guest, http.MethodPost, "/payment/cancel", refundAccount(map[string]any{"id": r.id, "cancelReason": "변경"}))
}

// turnovers gives every room another turnover.
func turnovers(t *testing.T, s *shop, admin *moneytest.Buyer) {
	t.Helper()
	for room := 1; room <= 6; room++ {
		reply, err := setTurnover(s, admin, room, room*10)
		if err != nil || reply.HTTP != http.StatusOK {
			t.Fatalf("room %d: %v %s", room, err, reply.Raw)
		}
	}
}

// setTurnover changes the turnover of a room and keeps its prices.
func setTurnover(s *shop, admin *moneytest.Buyer, room, minutes int) (moneytest.Reply, error) {
	var min10, min30, min60 *int
	err := s.DB.Pool.QueryRow(s.ctx, `
		select m.min10, m.min30, m.min60 from room m join branch b on b.id = m.branch_id where b.code = 'gangnam' and m.no = $1`, room).
		Scan(&min10, &min30, &min60)
	if err != nil {
		return moneytest.Reply{}, err
	}
	return admin.Do(s.ctx, http.MethodPut, fmt.Sprintf("/v2/admin/branches/gangnam/rooms/%d", room),
		map[string]any{"min10": min10, "min30": min30, "min60": min60, "turnoverMinutes": minutes})
}

// tooClose lists the pairs of live reservations of different stays between which the turnover of their room is missing. An
// extension that is not confirmed, and whose stay was cancelled or has moved, never is: moving a stay abandons it, see
// TestMoveDuringAnExtension. It opens no door and needs no turnover before it.
const tooClose = `
	select coalesce(string_agg(format('%s %s %s to %s (%s), %s %s %s (%s)', a.id, a.state, a.start_at, a.end_at, a.occupied,
	                                  b.id, b.state, b.start_at, b.occupied), '; '), '') from reservation a join reservation b on b.room_id = a.room_id and b.start_at >= a.start_at and b.id <> a.id
	  and coalesce(b.extends, b.id) <> coalesce(a.extends, a.id)
	join room m on m.id = a.room_id
	where a.state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')
	  and b.state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')
	  and (b.extends is null or b.state = 'DONE' or exists (select from reservation root where root.id = b.extends
	       and root.room_id = b.room_id and root.start_at < b.start_at and coalesce(root.stay_end, root.end_at) >= b.start_at
	       and root.state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE', 'CANCELING')))
	  and b.start_at < a.end_at + make_interval(mins => m.turnover_minutes)`

// turnover changes the turnover of the room, which is rejected if its stays lie closer together.
func (r *random) turnover() error {
	reply, err := setTurnover(r.s, r.admin, r.wish.Room, 10+r.rng.IntN(51))
	if err == nil && reply.HTTP == http.StatusInternalServerError {
		err = fmt.Errorf("turnover: %s", reply.Raw)
	}
	r.done[fmt.Sprint("turnover ", reply.HTTP)]++
	if err != nil {
		return err
	}
	pairs, err := r.s.tooClose()
	if err == nil && pairs != "" {
		err = fmt.Errorf("stays lie closer than the turnover of their room: %s", pairs)
	}
	return err
}

func (s *shop) tooClose() (pairs string, err error) {
	err = s.DB.Pool.QueryRow(s.ctx, tooClose).Scan(&pairs)
	return pairs, err
}

func (r *random) note(name string, b *moneytest.Buyer, method, path string, body any) error {
	_, err := r.call(name, b, method, path, body)
	return err
}

func (r *random) call(name string, b *moneytest.Buyer, method, path string, body any) (moneytest.Reply, error) {
	reply, err := b.Do(r.s.ctx, method, path, body)
	if err == nil && reply.HTTP == http.StatusInternalServerError {
		err = fmt.Errorf("%s: %s", name, reply.Raw)
	}
	r.done[fmt.Sprint(name, " ", reply.HTTP)]++
	return reply, err
}

func (r *random) extend() error {
	key, err := r.ownerKey()
	if err != nil || key == "" {
		return err
	}
	end := r.wish.Start.Add(time.Hour + time.Duration(1+r.rng.IntN(12))*10*time.Minute)
	reply, err := r.call("extend", r.guest, http.MethodPost, "/v2/keys/"+key+"/extension", extension(end))
	if err != nil || reply.HTTP != http.StatusOK || r.rng.IntN(4) == 0 { // sometimes the guest leaves
		return err
	}
	var order held
	if err := unmarshal(reply.Data, &order); err != nil {
		return err
	}
	return r.pay(order)
}

func (r *random) pay(order held) error {
	method := sandbox.MethodCard
	if r.rng.IntN(4) == 0 {
		method = sandbox.MethodVirtualAccount
	}
	key, err := r.s.Sandbox.Authenticate(sandbox.Checkout{OrderID: order.OrderID, Amount: order.Amount, Method: method, Bank: "20"})
	if err != nil {
		return nil //nolint:nilerr // the order has ended
	}
	reply, err := r.call("confirm", r.guest, http.MethodPost, "/payment/confirm", moneytest.Confirm{PaymentKey: key, OrderID: order.OrderID, Amount: order.Amount})
	if err == nil && reply.HTTP == http.StatusOK && method == sandbox.MethodVirtualAccount && r.rng.IntN(3) > 0 {
		_, _ = r.s.Sandbox.Deposit(order.OrderID) // it bounces if the account is closed already
	}
	return err
}

func (r *random) exchange() error {
	start := r.wish.Start.Add(time.Duration(r.rng.IntN(3)) * 3 * time.Hour)
	body := refundAccount(map[string]any{"room": r.rng.IntN(6) + 1, "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(time.Hour))})
	reply, err := r.call("exchange", r.guest, http.MethodPost, fmt.Sprintf("/v2/my-reservations/%d/exchange", r.id), body)
	if err != nil || reply.HTTP != http.StatusOK {
		return err
	}
	var result exchanged
	if err := unmarshal(reply.Data, &result); err != nil || result.Moved {
		return err
	}
	reply, err = r.call("register", r.guest, http.MethodPost, "/payment", map[string]any{"amount": result.Amount, "name": "홍길동", "mobileNum": r.wish.Mobile})
	if err != nil || reply.HTTP != http.StatusOK {
		return err
	}
	order := held{Amount: result.Amount}
	if err := unmarshal(reply.Data, &order); err != nil {
		return err
	}
	if err := r.pay(order); err != nil {
		return err
	}
	return r.s.DB.Pool.QueryRow(r.s.ctx, `select coalesce(max(id), $2) from reservation where order_id = $1 and state = 'DONE'`, order.OrderID, r.id).Scan(&r.id)
}

func (r *random) move() error {
	start := r.wish.Start.Add(time.Duration(r.rng.IntN(4)) * time.Hour)
	return r.note("move", r.admin, http.MethodPut, fmt.Sprintf("/admin/reservation/%d", r.id), map[string]any{
		"room": fmt.Sprint(r.rng.IntN(6) + 1), "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(time.Duration(2+r.rng.IntN(20)) * 10 * time.Minute)), "wholeStay": r.rng.IntN(2) == 0,
	})
}

// rotateKey has staff replace the key of the stay, for any of its reservations.
func (r *random) rotateKey() error {
	rows, err := r.s.DB.Pool.Query(r.s.ctx, `select id from reservation where id = $1 or extends = $1 order by id`, r.id)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	id := ids[r.rng.IntN(len(ids))]
	return r.note("key", r.admin, http.MethodPost, fmt.Sprintf("/v2/admin/reservations/%d/key", id), map[string]any{"reason": "분실"})
}

func (r *random) cancelExtension() error {
	var id int64
	err := r.s.DB.Pool.QueryRow(r.s.ctx, `select coalesce(min(id), 0) from reservation where extends = $1 and state = 'DONE'`, r.id).Scan(&id)
	if err != nil || id == 0 {
		return err
	}
	return r.note("cancel extension", r.admin, http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", id), refundAccount(map[string]any{}))
}

// ownerKey returns the key of the stay, or an empty text if it has ended.
func (r *random) ownerKey() (string, error) {
	reply, err := r.guest.Do(r.s.ctx, http.MethodGet, "/v2/my-keys", nil)
	if err != nil {
		return "", err
	}
	var list struct {
		Keys []struct {
			ID          int64
			DoorlockKey string
		}
	}
	if err := unmarshal(reply.Data, &list); err != nil {
		return "", err
	}
	for _, k := range list.Keys {
		if k.ID == r.id {
			return k.DoorlockKey, nil
		}
	}
	return "", nil
}
