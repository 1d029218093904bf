package reserve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// TestRandomQuarantines buys and changes stays in two rooms at random, by guests and by staff, while the agent of the branch is mostly
// offline. After each step no room is sold for a time in which a PIN that another guest was given may open it.
func TestRandomQuarantines(t *testing.T) {
	t.Parallel()
	for i := range uint64(max(1, *sequences/4)) {
		seed := *firstSeed + i
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := openRandomBranch(t, seed)
			for range 100 {
				if err := b.change(); err != nil {
					t.Fatal(err)
				}
				b.disclose(t)
				if overlap := b.twoGuests(t); overlap != "" {
					t.Fatalf("after %v at %s: %s", b.done, b.s.Clock.Now(), overlap)
				}
			}
			t.Logf("%d PINs were disclosed, %d times were in quarantine: %v", len(b.disclosed),
				b.s.count(t, `select count(*) from reservation where quarantine_of is not null`), b.done)
		})
	}
}

// randomBranch is a branch whose agent holds lists of passes that may be old.
type randomBranch struct {
	s         *shop
	admin     *moneytest.Buyer
	rng       *rand.Rand
	done      map[string]int // operations by their status
	keys      *seal.Keyring
	stays     []*random // whose guests change them
	disclosed []uuid.UUID
	list      postgres.List   // that the agent was sent last
	held      []postgres.List // that the agent may use: the last one that it has acknowledged, and those after it
}

func openRandomBranch(t *testing.T, seed uint64) *randomBranch {
	s := open(t)
	admin := s.buyer()
	if err := admin.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	keys, err := s.Settings.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	s.exec(t, `update branch set keypads = $1 where code = 'gangnam'`, `{"room_1": "agent", "room_2": "agent"}`)
	s.exec(t, `update agent_credential set active = true where username = $1`, "agent-gangnam")
	return &randomBranch{s: s, admin: admin, rng: rand.New(rand.NewPCG(seed, 2)), done: map[string]int{}, keys: keys}
}

// change makes one change. Rejections are part of it; only an answer of 500 or none is an error.
func (b *randomBranch) change() error {
	stay, err := b.someStay()
	if err != nil {
		return err
	}
	switch n := b.rng.IntN(17); {
	case n < 3 || stay == nil:
		return b.buy()
	case n < 6:
		return b.sendList()
	case n == 6:
		return b.acknowledge()
	case n == 16:
		return b.reportUnknown()
	case n < 9:
		b.s.Clock.Advance(time.Duration(5+b.rng.IntN(16)) * time.Minute)
		return nil
	}
	start := b.soon()
	switch b.rng.IntN(11) {
	case 0:
		return stay.note("cancel", stay.guest, http.MethodPost, "/payment/cancel", map[string]any{"id": stay.id, "cancelReason": "변경"})
	case 1, 2:
		return stay.note("exchange", stay.guest, http.MethodPost, fmt.Sprintf("/v2/my-reservations/%d/exchange", stay.id),
			map[string]any{"room": stay.wish.Room, "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(time.Hour))})
	case 3:
		return stay.extend()
	case 4:
		key, err := stay.ownerKey()
		if err != nil || key == "" {
			return err
		}
		return stay.note("end", stay.guest, http.MethodPost, "/v2/keys/"+key+"/end", nil)
	case 5:
		return stay.rotateKey()
	case 6:
		return stay.cancelExtension()
	case 7:
		return stay.note("staff cancel", b.admin, http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", stay.id), nil)
	}
	return stay.note("move", b.admin, http.MethodPut, fmt.Sprintf("/admin/reservation/%d", stay.id), map[string]any{
		"room": fmt.Sprint(1 + b.rng.IntN(2)), "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(time.Hour)),
	})
}

// someStay returns a stay that is paid and not over, or nil.
func (b *randomBranch) someStay() (*random, error) {
	rows, err := b.s.DB.Pool.Query(b.s.ctx, `
		select id from reservation where state = 'DONE' and extends is null and coalesce(stay_end, end_at) > $1`, b.s.Clock.Now())
	if err != nil {
		return nil, err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	live := slices.DeleteFunc(slices.Clone(b.stays), func(r *random) bool { return !slices.Contains(ids, r.id) })
	if err != nil || len(live) == 0 {
		return nil, err
	}
	return live[b.rng.IntN(len(live))], nil
}

// soon returns a start in the next hours.
func (b *randomBranch) soon() time.Time {
	return b.s.Clock.Now().Truncate(10 * time.Minute).Add(time.Duration(1+b.rng.IntN(15)) * 10 * time.Minute)
}

func (b *randomBranch) buy() error {
	stay := &random{s: b.s, admin: b.admin, rng: b.rng, done: b.done, guest: b.s.buyer()}
	stay.wish = moneytest.Wish{Room: 1 + b.rng.IntN(2), Start: b.soon(), Method: sandbox.MethodCard, Mobile: fmt.Sprintf("0105%07d", len(b.stays))}
	order, err := stay.guest.Buy(b.s.ctx, stay.wish)
	if err != nil {
		b.done["not bought"]++
		return nil //nolint:nilerr // the time is taken
	}
	b.done["bought"]++
	if err := b.s.DB.Pool.QueryRow(b.s.ctx, `select id from reservation where order_id = $1`, order.OrderID).Scan(&stay.id); err != nil {
		return err
	}
	b.stays = append(b.stays, stay)
	return stay.guest.Login(b.s.ctx, stay.wish.Mobile)
}

// sendList sends the agent the present list, which it may have received and stored from then on.
func (b *randomBranch) sendList() error {
	return b.s.DB.InTx(b.s.ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
		b.list, err = postgres.PrepareList(ctx, tx, b.keys, "agent-gangnam", nil, now)
		b.done["list"]++
		b.held = append(b.held, b.list)
		return err
	})
}

// acknowledge delivers the acknowledgement of the list that was sent last, which may be an old one.
func (b *randomBranch) acknowledge() error {
	return b.s.DB.InTx(b.s.ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		_, _, err := postgres.AcknowledgeList(ctx, tx, "agent-gangnam", b.list.Epoch, b.list.Version, now)
		b.done["acknowledged"]++
		b.held = []postgres.List{b.list}
		return err
	})
}

// reportUnknown has the agent report, once or repeatedly, a list that the database does not know, as after a restoration. It may be any of those
// before, too.
func (b *randomBranch) reportUnknown() error {
	return b.s.DB.InTx(b.s.ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		for range 1 + b.rng.IntN(2) {
			if _, _, err := postgres.AcknowledgeList(ctx, tx, "agent-gangnam", b.list.Epoch, b.list.Version+9, now); err != nil {
				return err
			}
		}
		b.done["unknown list"]++
		return nil
	})
}

// disclose notes the passes whose PIN is shown to their guests now: from 30 minutes before the start.
func (b *randomBranch) disclose(t *testing.T) {
	t.Helper()
	rows, err := b.s.DB.Pool.Query(b.s.ctx, `
		select id from pass where ended_at is null and not_before <= $1::timestamptz + interval '28 minutes' and id <> all(coalesce($2, '{}'::uuid[]))`, b.s.Clock.Now(), b.disclosed)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		t.Fatal(err)
	}
	b.disclosed = append(b.disclosed, shown...)
}

// twoGuests lists the live reservations of a room during which the agent may accept the disclosed PIN of another stay.
func (b *randomBranch) twoGuests(t *testing.T) (overlaps string) {
	t.Helper()
	var passes []uuid.UUID
	var rooms []booking.RoomID
	var from, until []time.Time
	for _, list := range b.held {
		for _, p := range list.Passes {
			passes, rooms, from, until = append(passes, p.ID), append(rooms, p.Room), append(from, p.NotBefore), append(until, p.NotAfter)
		}
	}
	err := b.s.DB.Pool.QueryRow(b.s.ctx, `
		select coalesce(string_agg(distinct format('reservation %s (%s to %s, %s) in the window of the PIN of %s, %s to %s',
		                                  r.id, r.start_at, r.end_at, r.state, p.reservation_id, l.not_before, l.not_after), '; '), '')
		from unnest($3::uuid[], $4::bigint[], $5::timestamptz[], $6::timestamptz[]) l (pass_id, room_id, not_before, not_after) join pass p on p.id = l.pass_id
		join reservation r on r.room_id = l.room_id and coalesce(r.extends, r.id) <> p.reservation_id and r.quarantine_of is null
		  and r.start_at < l.not_after and coalesce(r.stay_end, r.end_at) > l.not_before
		where p.id = any($1) and l.not_after > $2 and r.state in ('HOLD', 'CONFIRMING', 'WAITING_FOR_DEPOSIT', 'DONE')
		  and (r.state <> 'HOLD' or r.expires_at > $2)`, b.disclosed, b.s.Clock.Now(), passes, rooms, from, until).Scan(&overlaps)
	if err != nil {
		t.Fatal(err)
	}
	return overlaps
}
