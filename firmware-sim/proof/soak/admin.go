package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// administrator views, moves, cancels and registers reservations, switches rooms and opens doors.
func (s *Soak) administrator(limited, ctx context.Context, dice *rand.Rand) {
	a := &purchase{client: s.newClient(), dice: dice}
	for limited.Err() == nil && !a.loginAdmin(ctx) {
		pause(limited, time.Second)
	}
	for limited.Err() == nil {
		switch n := dice.IntN(12); {
		case n < 3:
			a.openDoor(ctx)
		case n < 6:
			a.relocate(ctx)
		case n < 8:
			a.end(ctx)
		case n < 10:
			a.reserve(ctx)
		case n < 11:
			a.switchRoom(limited, ctx)
		default:
			a.collide(ctx)
		}
		pause(limited, between(dice, 100*time.Millisecond, 800*time.Millisecond))
	}
}

func (p *purchase) loginAdmin(ctx context.Context) bool {
	r := p.ask(ctx, p.anywhere(), http.MethodPost, "/admin/login", map[string]string{"id": world.AdminID, "password": world.AdminPassword})
	return r.status == http.StatusOK
}

// listed is a reservation as the list and its detail view show it.
type listed struct {
	id     string
	slot   record.Slot
	paid   bool
	status string // bookingStatus
}

// choose views a random afternoon of a random branch and picks a reservation.
func (p *purchase) choose(ctx context.Context, paid bool) (listed, bool) {
	wish := p.wish(p.dice)
	from := hourOf(wish.Start)
	r := p.ask(ctx, p.anywhere(), http.MethodGet, fmt.Sprintf("/admin/reservations?branch=%s&base_date=%s&base_hour=%d", wish.Branch, from.Format("20060102"), from.Hour()), nil)
	type entry struct {
		ID string `json:"id"`
	}
	var list struct{ Booking, Paid []entry }
	if !r.into(&list) {
		return listed{}, false
	}
	from2 := list.Booking
	if paid {
		from2 = list.Paid
	}
	if len(from2) == 0 {
		return listed{}, false
	}
	return p.detail(ctx, wish.Branch, from2[p.dice.IntN(len(from2))].ID)
}

func (p *purchase) detail(ctx context.Context, branch, id string) (listed, bool) {
	r := p.ask(ctx, p.anywhere(), http.MethodGet, "/admin/reservation/"+id, nil)
	var d struct {
		DataType, PaidStartDateTime, PaidEndDateTime, PaidRoom               string
		BookingStartDateTime, BookingEndDateTime, BookingRoom, BookingStatus string
	}
	if !r.into(&d) {
		return listed{}, false
	}
	l := listed{id: id, paid: d.DataType == "paid", status: d.BookingStatus}
	start, end, room := d.BookingStartDateTime, d.BookingEndDateTime, d.BookingRoom
	if l.paid {
		start, end, room, l.status = d.PaidStartDateTime, d.PaidEndDateTime, d.PaidRoom, "paid"
	}
	zone := p.world.In(branch, time.Now()).Location()
	from, err1 := time.ParseInLocation(wireTime, start, zone)
	until, err2 := time.ParseInLocation(wireTime, end, zone)
	no, err3 := strconv.Atoi(room)
	if err1 != nil || err2 != nil || err3 != nil {
		return listed{}, false
	}
	// The stored end is ten minutes before the real one (docs/specification.md, Time).
	l.slot = record.Slot{Branch: branch, Room: no, Start: from, End: until.Add(record.Margin)}
	return l, true
}

func (p *purchase) number(id string) int64 {
	n, _ := strconv.ParseInt(id, 10, 64) // ids of the service are numbers
	return n
}

// relocate moves a paid reservation to another room or time of the same afternoon.
func (p *purchase) relocate(ctx context.Context) {
	found, ok := p.choose(ctx, true)
	if !ok {
		return
	}
	to := found.slot
	to.Room = 1 + p.dice.IntN(world.Spare-1)
	shift := time.Duration(p.dice.IntN(7)-3) * record.Margin
	to.Start, to.End = to.Start.Add(shift), to.End.Add(shift)
	p.relocateTo(ctx, found, to)
}

func (p *purchase) relocateTo(ctx context.Context, found listed, to record.Slot) {
	p.relocateAt(ctx, p.anywhere(), found, to)
}

func (p *purchase) relocateAt(ctx context.Context, at int, found listed, to record.Slot) {
	r := p.ask(ctx, at, http.MethodPut, "/admin/reservation/"+found.id, map[string]string{
		"room": strconv.Itoa(to.Room), "startDateTime": wire(to.Start), "endDateTime": wire(to.End), "reason": "요청"})
	p.op(record.Op{Kind: record.Relocate, ID: p.number(found.id), Slot: found.slot, To: to}, r)
}

// collide has two administrators swap the rooms of two reservations at once, and move the same one.
func (p *purchase) collide(ctx context.Context) {
	one, ok := p.choose(ctx, true)
	if !ok {
		return
	}
	other, ok := p.choose(ctx, true)
	if !ok || other.slot.Branch != one.slot.Branch || other.id == one.id {
		other = one
	}
	second := *p
	second.dice = rand.New(rand.NewPCG(p.dice.Uint64(), 1))
	var both sync.WaitGroup
	to, back := one.slot, other.slot
	to.Room, back.Room = other.slot.Room%(world.Spare-1)+1, one.slot.Room%(world.Spare-1)+1
	both.Go(func() { p.relocateTo(ctx, one, to) })
	both.Go(func() { second.relocateTo(ctx, other, back) })
	both.Wait()
}

// end cancels a reservation, sometimes with outdated data.
func (p *purchase) end(ctx context.Context) {
	found, ok := p.choose(ctx, oneIn(p.dice, 3))
	if !ok {
		return
	}
	if oneIn(p.dice, 10) {
		r := p.ask(ctx, p.anywhere(), http.MethodDelete, bookingPath(found.id, "nonsense"), refundAccount(map[string]any{}))
		p.wrong("a cancellation of what it is not", r, 400, 404)
	}
	for range 4 {
		r := p.ask(ctx, p.anywhere(), http.MethodDelete, bookingPath(found.id, found.status), refundAccount(map[string]any{}))
		if p.op(record.Op{Kind: record.AdminEnd, ID: p.number(found.id), Slot: found.slot}, r).Known() {
			return
		}
		pause(ctx, 2*time.Second)
	}
}

// reserve registers a reservation without payment, or issues a virtual account for it.
func (p *purchase) reserve(ctx context.Context) {
	slot, owner := p.wish(p.dice), p.owners.Add(1)
	own := &purchase{client: p.client, dice: p.dice, owner: owner, slot: slot, mobile: fmt.Sprintf("010%08d", owner)}
	r := p.ask(ctx, p.anywhere(), http.MethodPost, "/admin/reservation", map[string]any{
		"branch": slot.Branch, "room": slot.Room, "startDateTime": wire(slot.Start), "endDateTime": wire(slot.End)})
	taken := p.op(record.Op{Kind: record.AdminTake, Owner: owner, Slot: slot}, r)
	if p.left.Owner != 0 && (taken.OK() || !taken.Known()) {
		// The cookie of an unused hold is sent too: the service releases that hold for the new one.
		p.op(record.Op{Kind: record.Release, Owner: p.left.Owner, Slot: p.left.Slot}, r)
		p.left = record.Op{}
	}
	if !taken.OK() {
		return
	}
	if oneIn(p.dice, 6) {
		p.left = taken
		return
	}
	if oneIn(p.dice, 3) {
		r = p.ask(ctx, p.anywhere(), http.MethodPost, "/admin/v2/virtual-accounts", map[string]any{
			"amount": 12000, "orderName": "예약", "name": "홍길동", "mobileNum": own.mobile, "bankCode": "20"})
		p.op(record.Op{Kind: record.Account, Owner: owner, Slot: slot, Amount: 12000}, r)
		return
	}
	r = p.ask(ctx, p.anywhere(), http.MethodPost, "/admin/payment", map[string]any{"name": "손님", "mobileNum": own.mobile, "notify": oneIn(p.dice, 2)})
	p.op(record.Op{Kind: record.Keep, Owner: owner, Slot: slot}, r)
}

// switchRoom takes a room out of service for a moment: any room, or the spare one while a client requests it.
func (p *purchase) switchRoom(limited, ctx context.Context) {
	slot := p.wish(p.dice)
	var asking sync.WaitGroup
	if oneIn(p.dice, 2) {
		slot.Room = world.Spare
		guest := p.newPurchase(rand.New(rand.NewPCG(p.dice.Uint64(), 2)))
		guest.slot = slot
		asking.Go(func() {
			if guest.takeAt(ctx, guest.anywhere()) {
				r := guest.ask(ctx, guest.anywhere(), http.MethodDelete, "/reservation", nil)
				guest.op(record.Op{Kind: record.Release, Owner: guest.owner, Slot: slot}, r)
			}
		})
	}
	path := fmt.Sprintf("/admin/machines/%s/%d", slot.Branch, slot.Room)
	set := func(on bool) record.Op {
		r := p.ask(ctx, p.anywhere(), http.MethodPatch, path, map[string]bool{"enabled": on})
		return p.op(record.Op{Kind: record.SwitchRoom, Slot: slot}, r)
	}
	o := set(false)
	asking.Wait()
	if o.Known() && !o.OK() {
		return
	}
	pause(limited, between(p.dice, 0, 2*time.Second))
	for range 20 {
		if set(true).Known() {
			return
		}
		pause(ctx, 2*time.Second)
	}
}

// openDoor presses a button without a key.
func (p *purchase) openDoor(ctx context.Context) {
	slot := p.wish(p.dice)
	kind, path := "front", "/admin/door/v2/unlock/"+slot.Branch+"/front"
	if oneIn(p.dice, 2) {
		kind, path = "room", fmt.Sprintf("/admin/door/v2/unlock/%s/room/%d", slot.Branch, slot.Room)
	}
	at := p.anywhere()
	r := p.ask(ctx, at, http.MethodPost, path, nil)
	press := record.Press{Branch: slot.Branch, Kind: kind, Staff: true, Call: r.call, Return: r.ret, Status: r.status, Type: r.kind}
	p.await(ctx, r, &press, at, "/admin/door/v2/unlock/subscribe", "")
}

// clumsy sends invalid requests.
func (s *Soak) clumsy(limited, ctx context.Context, dice *rand.Rand) {
	c := s.newClient()
	for limited.Err() == nil {
		slot := s.wish(dice)
		mark := s.world.Mark(slot.Branch, time.Now())
		good := s.day(slot.Branch, 2).Add(9 * time.Hour)
		cases := []struct {
			what       string
			branch     string
			room       int
			start, end time.Time
			want       int
		}{
			{"off the grid", slot.Branch, slot.Room, good.Add(5 * time.Minute), good.Add(35 * time.Minute), 400},
			{"over five hours", slot.Branch, slot.Room, good, good.Add(5*time.Hour + 10*time.Minute), 400},
			{"an end before the start", slot.Branch, slot.Room, good.Add(time.Hour), good, 400},
			{"an end at the start", slot.Branch, slot.Room, good, good, 400},
			{"the past", slot.Branch, slot.Room, mark.Add(-record.Margin), mark.Add(2 * record.Margin), 400},
			{"beyond the horizon", slot.Branch, slot.Room, good.AddDate(0, 0, 70), good.AddDate(0, 0, 70).Add(time.Hour), 400},
			{"an unknown room", slot.Branch, 99, good, good.Add(time.Hour), 404},
			{"an unknown branch", "nowhere", slot.Room, good, good.Add(time.Hour), 404},
		}
		wrong := cases[dice.IntN(len(cases))]
		r := c.ask(ctx, dice.IntN(len(s.world.Replicas)), http.MethodPost, "/reservation", map[string]any{
			"branch": wrong.branch, "room": wrong.room, "startDateTime": wire(wrong.start), "endDateTime": wire(wrong.end)})
		if !strings.Contains(r.text, "<") {
			s.wrong(wrong.what, r, wrong.want)
		}
		pause(limited, between(dice, 200*time.Millisecond, time.Second))
	}
}
