package partner_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// fixture is a running service and its sandbox, whose partner channel is called sandbox too.
type fixture struct {
	*servicetest.Stack
	ctx    context.Context
	opened time.Time
}

func open(t *testing.T, change ...func(*config.Settings)) *fixture {
	t.Helper()
	s := servicetest.Start(t, append(change, func(set *config.Settings) {
		set.HTTP.RateLimits, set.Times.SweepEvery = "off", 100*time.Millisecond
	})...)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(func() {
		defer cancel()
		if err := errors.Join(moneytest.Settled(ctx, s.DB.Pool), moneytest.Audit(ctx, s.DB.Pool, s.Sandbox, 0)); err != nil {
			t.Error(err)
		}
	})
	return &fixture{s, ctx, s.Clock.Now()}
}

func (s *fixture) buyer() *moneytest.Buyer { return moneytest.NewBuyer(s.URL, s.Sandbox) }

func (s *fixture) admin(t *testing.T) *moneytest.Buyer {
	t.Helper()
	b := s.buyer()
	if err := b.LoginAdmin(s.ctx, "hq", "hq-demo"); err != nil {
		t.Fatal(err)
	}
	return b
}

// start returns a time some hours after the fixture was created, on a slot boundary.
func (s *fixture) start(hours int) time.Time {
	return s.opened.Truncate(10 * time.Minute).Add(time.Duration(hours) * time.Hour)
}

func (s *fixture) wish(room, hours int, method string) moneytest.Wish {
	return moneytest.Wish{Room: room, Start: s.start(hours), Method: method, Mobile: "01012345678"}
}

// blocks waits until the channel shows exactly these times, each written as room and start.
func (s *fixture) blocks(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	var got []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) { // the list belongs to another program, so there is no event to wait for
		got = nil
		for _, b := range s.Sandbox.Blocks() {
			got = append(got, fmt.Sprintf("%s-%d %s %v", b.Branch, b.Room, moneytest.Wire(b.Start), b.End.Sub(b.Start)))
		}
		if slices.Sort(got); slices.Equal(got, want) {
			return
		}
	}
	t.Fatalf("blocks %v, want %v", got, want)
}

func block(room int, start time.Time) string {
	return fmt.Sprintf("gangnam-%d %s 1h0m0s", room, moneytest.Wire(start))
}

func (s *fixture) id(t *testing.T, order string) (id int64) {
	t.Helper()
	if err := s.DB.Pool.QueryRow(s.ctx, `select id from reservation where order_id = $1`, order).Scan(&id); err != nil {
		t.Fatal(err)
	}
	return id
}

func must(t *testing.T, reply moneytest.Reply, err error) {
	t.Helper()
	if err := errors.Join(err, reply.OK()); err != nil {
		t.Fatal(err)
	}
}

// A reservation that is paid, registered or waiting for its deposit is blocked at the channel and unblocked when it
// ends.
func TestBlocksFollowReservations(t *testing.T) {
	t.Parallel()
	s := open(t)
	admin := s.admin(t)
	at := s.start(3)
	paid, err := s.buyer().Buy(s.ctx, s.wish(1, 3, sandbox.MethodCard))
	if err != nil {
		t.Fatal(err)
	}
	waiting, err := s.buyer().Buy(s.ctx, s.wish(2, 3, sandbox.MethodVirtualAccount))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.buyer().Order(s.ctx, s.wish(4, 3, sandbox.MethodCard)); err != nil { // a hold is not published
		t.Fatal(err)
	}
	reply, err := admin.Post(s.ctx, "/admin/reservation", map[string]any{
		"branch": "gangnam", "room": 3, "startDateTime": moneytest.Wire(at), "endDateTime": moneytest.Wire(at.Add(time.Hour)),
	})
	must(t, reply, err)
	reply, err = admin.Post(s.ctx, "/admin/payment", map[string]any{"name": "김관리"})
	must(t, reply, err)
	s.blocks(t, block(1, at), block(2, at), block(3, at))

	// After a move the old time is offered again and the new one is not.
	later := at.Add(2 * time.Hour)
	reply, err = admin.Do(s.ctx, http.MethodPut, fmt.Sprintf("/admin/reservation/%d", s.id(t, paid.OrderID)), map[string]any{
		"room": "5", "startDateTime": moneytest.Wire(later), "endDateTime": moneytest.Wire(later.Add(time.Hour)),
	})
	must(t, reply, err)
	s.blocks(t, block(5, later), block(2, at), block(3, at))

	// When a deposit is overdue, the account is closed and the channel's block removed.
	s.Clock.Advance(11 * time.Minute)
	s.blocks(t, block(5, later), block(3, at))
	if p := s.Sandbox.Payments(waiting.OrderID); p[0].Status != sandbox.StatusCanceled {
		t.Errorf("the account is %s", p[0].Status)
	}

	// Cancellations by the guest, an administrator and the partner.
	reply, err = admin.Do(s.ctx, http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", s.id(t, paid.OrderID)), nil)
	must(t, reply, err)
	var registered int64
	if err := s.DB.Pool.QueryRow(s.ctx, `select id from reservation where method = '관리자'`).Scan(&registered); err != nil {
		t.Fatal(err)
	}
	reply, err = admin.Do(s.ctx, http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", registered), nil)
	must(t, reply, err)
	s.blocks(t)
}

// The channel fails, disconnects after accepting the block, or the reservation ends before the channel was notified:
// eventually the channel shows the actual reservations.
func TestBlocksThroughFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sandbox.Fault{
		"error":       {Kind: sandbox.FaultError, Status: 503},
		"answer lost": {Kind: sandbox.FaultDropAfterCommit},
		"slow":        {Kind: sandbox.FaultSlow, Delay: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			admin := s.admin(t)
			fault.Target = sandbox.TargetChannel
			if err := s.Sandbox.SetFault(fault); err != nil {
				t.Fatal(err)
			}
			if _, err := s.buyer().Buy(s.ctx, s.wish(1, 3, sandbox.MethodCard)); err != nil {
				t.Fatal(err)
			}
			s.Clock.Advance(10 * time.Second)
			s.blocks(t, block(1, s.start(3)))
			fault.Times = 2
			if err := s.Sandbox.SetFault(fault); err != nil {
				t.Fatal(err)
			}
			brief, err := s.buyer().Buy(s.ctx, s.wish(2, 3, sandbox.MethodCard))
			if err != nil {
				t.Fatal(err)
			}
			reply, err := admin.Do(s.ctx, http.MethodDelete, fmt.Sprintf("/admin/reservation/%d?bookingStatus=paid", s.id(t, brief.OrderID)), nil)
			must(t, reply, err)
			s.Clock.Advance(3 * time.Minute)
			for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) { // rows of another process
				var open int
				err := s.DB.Pool.QueryRow(s.ctx, `select count(*) from channel_block where state in ('WANTED', 'UNWANTED')`).Scan(&open)
				if err == nil && open == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("blocks remain open", err)
				}
				s.Clock.Advance(time.Second)
			}
			s.blocks(t, block(1, s.start(3)))
		})
	}
}

// A booking at the channel is imported, moved and cancelled; one for an occupied time is rejected and affects no
// reservation.
func TestBookingsComeIn(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.start(3)
	booked, delivery, err := s.Sandbox.Book(sandbox.Booking{Branch: "gangnam", Room: 1, Start: at, End: at.Add(time.Hour), Name: "박손님", Phone: "010-7777-8888"})
	if err != nil {
		t.Fatal(err)
	}
	s.decided(t, delivery, 200, "ACCEPTED")
	if err := s.buyer().Hold(s.ctx, s.wish(1, 3, sandbox.MethodCard)); err == nil {
		t.Error("the time was sold twice")
	}
	s.blocks(t) // the partner knows its own bookings
	if messages := s.Sandbox.Messages("01077778888"); len(messages) > 1 {
		t.Errorf("%d messages", len(messages))
	}

	// Our reservation occupies the time, so the partner refuses its guest.
	if _, err := s.buyer().Buy(s.ctx, s.wish(2, 3, sandbox.MethodCard)); err != nil {
		t.Fatal(err)
	}
	_, delivery, err = s.Sandbox.Book(sandbox.Booking{Branch: "gangnam", Room: 2, Start: at.Add(30 * time.Minute), End: at.Add(90 * time.Minute), Name: "늦은이"})
	if err != nil {
		t.Fatal(err)
	}
	s.decided(t, delivery, 409, "CONFLICT")
	if delivery, err = s.Sandbox.MoveBooking(booked.ID, at.Add(4*time.Hour), at.Add(5*time.Hour)); err != nil {
		t.Fatal(err)
	}
	s.decided(t, delivery, 200, "ACCEPTED")
	if err := s.buyer().Hold(s.ctx, s.wish(1, 3, sandbox.MethodCard)); err != nil {
		t.Errorf("the previous time is not free: %v", err)
	}
	if delivery, err = s.Sandbox.CancelBooking(booked.ID); err != nil {
		t.Fatal(err)
	}
	s.decided(t, delivery, 200, "ACCEPTED")
	if err := s.buyer().Hold(s.ctx, s.wish(1, 7, sandbox.MethodCard)); err != nil {
		t.Errorf("the cancelled time is not free: %v", err)
	}
	_, delivery, err = s.Sandbox.Book(sandbox.Booking{Branch: "gangnam", Room: 77, Start: at, End: at.Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	s.decided(t, delivery, 422, "REJECTED")
}

func (s *fixture) decided(t *testing.T, delivery *sandbox.Delivery, status int, decision string) {
	t.Helper()
	reply, err := delivery.First(s.ctx)
	if err != nil || reply.Status != status || !strings.Contains(string(reply.Body), `"status":"`+decision+`"`) {
		t.Fatalf("answer %d %s (%v), want %d %s", reply.Status, reply.Body, err, status, decision)
	}
}

// event sends a signed message like the partner does.
func (s *fixture) event(t *testing.T, body map[string]any) (int, map[string]any) {
	t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return s.signed(t, http.MethodPost, "/partner/v1/events", string(content), sandbox.DemoPartnerSecret)
}

func (s *fixture) signed(t *testing.T, method, path, body, secret string) (int, map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(s.ctx, method, s.Root+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = io.WriteString(mac, timestamp+"."+body)
	request.Header.Set("X-Partner-Id", sandbox.DemoPartnerID)
	request.Header.Set("X-Partner-Timestamp", timestamp)
	request.Header.Set("X-Partner-Signature", "v1="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatalf("%d: %v", response.StatusCode, err)
	}
	return response.StatusCode, answer
}

// Events may arrive twice, late and in any order: the newest one counts, and an outdated one receives its original
// answer.
func TestEventsOutOfOrder(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.start(3)
	event := func(kind, id string, seq, room int, start time.Time) map[string]any {
		return map[string]any{
			"type": "booking." + kind, "externalId": id, "listingId": fmt.Sprintf("gangnam-%d", room), "seq": seq,
			"start": start, "end": start.Add(time.Hour), "customer": map[string]string{"name": "박손님", "phone": ""},
		}
	}
	want := func(what string, body map[string]any, status int) any {
		t.Helper()
		got, answer := s.event(t, body)
		if got != status {
			t.Errorf("%s: %d %v, want %d", what, got, answer, status)
		}
		return answer["reservationId"]
	}
	first := want("made", event("created", "A", 1, 1, at), 200)
	if again := want("made again", event("created", "A", 1, 1, at), 200); again != first {
		t.Errorf("reservation %v, then %v", first, again)
	}
	want("changed", event("updated", "A", 3, 1, at.Add(2*time.Hour)), 200)
	want("changed before that", event("updated", "A", 2, 1, at.Add(4*time.Hour)), 200)
	want("cancelled before it was made", event("cancelled", "B", 2, 2, at), 200)
	want("made after it was cancelled", event("created", "B", 1, 2, at), 200)
	want("changed unheard of", event("updated", "C", 7, 3, at), 200)
	want("in the way", event("created", "D", 1, 3, at), 409)
	want("in the way again", event("created", "D", 1, 3, at), 409)
	want("out of the way", event("updated", "D", 2, 3, at.Add(3*time.Hour)), 200)
	want("over", event("created", "E", 1, 4, at.Add(-48*time.Hour)), 409)
	want("six hours", func() map[string]any {
		e := event("created", "F", 1, 4, at)
		e["end"] = at.Add(6 * time.Hour)
		return e
	}(), 409)
	want("unknown type", event("exploded", "G", 1, 4, at), 422)
	want("no times", map[string]any{"type": "booking.created", "externalId": "H", "listingId": "gangnam-4", "seq": 1}, 400)
	var live int
	err := s.DB.Pool.QueryRow(s.ctx, `
		select count(*) from reservation where source = 'PARTNER' and state = 'DONE' and
		  ((start_at = $1 and room_id = (select r.id from room r join branch b on b.id = r.branch_id where r.no = 1 and b.code = 'gangnam'))
		   or start_at in ($2, $3))`, at.Add(2*time.Hour), at, at.Add(3*time.Hour)).Scan(&live)
	if err != nil || live != 3 {
		t.Errorf("%d bookings stand, want 3 (%v)", live, err)
	}
	for name, secret := range map[string]string{"wrong secret": "not-the-secret-of-the-partner", "no secret": ""} {
		if status, _ := s.signed(t, http.MethodPost, "/partner/v1/events", `{"type":"booking.created"}`, secret); status != 401 {
			t.Errorf("%s: %d", name, status)
		}
	}
}

func TestAvailability(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.start(3)
	if _, err := s.buyer().Buy(s.ctx, s.wish(1, 3, sandbox.MethodCard)); err != nil {
		t.Fatal(err)
	}
	ask := func(listing string, from, to time.Time) (int, map[string]any) {
		path := fmt.Sprintf("/partner/v1/availability?listingId=%s&from=%s&to=%s", listing, from.UTC().Format(time.RFC3339), to.UTC().Format(time.RFC3339))
		return s.signed(t, http.MethodGet, path, "", sandbox.DemoPartnerSecret)
	}
	for name, c := range map[string]struct {
		listing  string
		from, to time.Time
		status   int
		free     any
	}{
		"taken":          {"gangnam-1", at, at.Add(time.Hour), 200, false},
		"its margin":     {"gangnam-1", at.Add(time.Hour), at.Add(70 * time.Minute), 200, false},
		"behind it":      {"gangnam-1", at.Add(70 * time.Minute), at.Add(2 * time.Hour), 200, true},
		"another room":   {"gangnam-2", at, at.Add(time.Hour), 200, true},
		"another planet": {"mars-1", at, at.Add(time.Hour), 422, nil},
		"backwards":      {"gangnam-1", at.Add(time.Hour), at, 400, nil},
	} {
		if status, answer := ask(c.listing, c.from, c.to); status != c.status || answer["available"] != c.free {
			t.Errorf("%s: %d %v", name, status, answer)
		}
	}
}

// A stay keeps its branch. If the partner moves its booking to a room of another one, the stay ends and another one begins there, with a key of its
// own. Staff of another branch who enter a booking with the same id, as if the partner counted in each branch, leave the stay alone.
func TestBookingOfAnotherBranch(t *testing.T) {
	t.Parallel()
	s := open(t)
	at := s.start(3)
	// hongdae has a weekly day off; gangnam is never closed.
	if _, err := s.DB.Pool.Exec(s.ctx, `update branch h set schedule = g.schedule from branch g where h.code = 'hongdae' and g.code = $1`, "gangnam"); err != nil {
		t.Fatal(err)
	}
	stays := func(what, want string) {
		t.Helper()
		var got string
		err := s.DB.Pool.QueryRow(s.ctx, `
			select coalesce(string_agg(concat_ws(' ', b.code, o.code || '-' || m.no, r.state), ', ' order by r.id), '')
			from reservation r join branch b on b.id = r.branch_id join room m on m.id = r.room_id join branch o on o.id = m.branch_id
			where r.source = $1`, "PARTNER").Scan(&got)
		if err != nil || got != want {
			t.Errorf("%s: the stays are %q, want %q (%v)", what, got, want, err)
		}
	}
	event := func(seq int, listing string) {
		t.Helper()
		if status, answer := s.event(t, map[string]any{
			"type": "booking.updated", "externalId": "A", "listingId": listing, "seq": seq,
			"start": at, "end": at.Add(time.Hour), "customer": map[string]string{"name": "박손님", "phone": "010-7777-8888"},
		}); status != 200 {
			t.Fatalf("event %d: %d %v", seq, status, answer)
		}
	}
	event(1, "gangnam-1")
	stays("booked", "gangnam gangnam-1 DONE")
	event(2, "hongdae-2")
	stays("moved by the partner", "gangnam gangnam-1 CANCELED, hongdae hongdae-2 DONE")
	var keys int
	err := s.DB.Pool.QueryRow(s.ctx, `
		select count(*) from access_key k join reservation r on r.id = k.reservation_id where k.revoked_at is null and r.state = $1`, "DONE").Scan(&keys)
	if err != nil || keys != 1 {
		t.Errorf("%d keys open doors, want that of hongdae (%v)", keys, err)
	}

	admin := s.admin(t)
	enter := func(branch string) moneytest.Reply {
		t.Helper()
		reply, err := admin.Post(s.ctx, "/v2/admin/branches/"+branch+"/partner-bookings", map[string]any{
			"partner": "naver", "externalId": "N-1", "roomNo": "3", "startDateTime": moneytest.Wire(at), "endDateTime": moneytest.Wire(at.Add(time.Hour)),
		})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	const before = "gangnam gangnam-1 CANCELED, hongdae hongdae-2 DONE, gangnam gangnam-3 DONE"
	must(t, enter("gangnam"), nil)
	if reply := enter("hongdae"); reply.HTTP != http.StatusBadRequest || !strings.Contains(reply.Raw, "externalId") {
		t.Errorf("entered in another branch: %d %s, want 400 for externalId", reply.HTTP, reply.Raw)
	}
	stays("entered in another branch", before)
	var entered struct{ ID string }
	if err := json.Unmarshal(enter("gangnam").Data, &entered); err != nil {
		t.Fatal(err)
	}
	reply, err := admin.Do(s.ctx, http.MethodDelete, "/admin/reservation/"+entered.ID+"?bookingStatus=paid", nil)
	must(t, reply, err)
	must(t, enter("hongdae"), nil)
	stays("entered in another branch once the stay has ended", "gangnam gangnam-1 CANCELED, hongdae hongdae-2 DONE, gangnam gangnam-3 CANCELED, hongdae hongdae-3 DONE")
}

// Manual channel: staff enter, change and cancel a booking made at a partner.
func TestEnteredByHand(t *testing.T) {
	t.Parallel()
	s := open(t)
	admin, at := s.admin(t), s.start(3)
	entry := map[string]any{
		"partner": "naver", "externalId": "N-1", "roomNo": "1", "name": "박손님", "mobileNum": "010-7777-8888",
		"startDateTime": moneytest.Wire(at), "endDateTime": moneytest.Wire(at.Add(time.Hour)),
	}
	const path = "/v2/admin/branches/gangnam/partner-bookings"
	reply, err := admin.Post(s.ctx, path, entry)
	must(t, reply, err)
	s.blocks(t, block(1, at)) // at the other partner
	entry["startDateTime"], entry["endDateTime"] = moneytest.Wire(at.Add(2*time.Hour)), moneytest.Wire(at.Add(3*time.Hour))
	moved, err := admin.Post(s.ctx, path, entry)
	must(t, moved, err)
	if string(moved.Data) != string(reply.Data) {
		t.Errorf("after the change: got %s, before %s", moved.Data, reply.Data)
	}
	s.blocks(t, block(1, at.Add(2*time.Hour)))
	entry["externalId"] = "N-2"
	if reply, err := admin.Post(s.ctx, path, entry); err != nil || reply.HTTP != http.StatusConflict {
		t.Errorf("booking an occupied time: %d %s (%v)", reply.HTTP, reply.Raw, err)
	}
	var entered struct{ ID string }
	if err := json.Unmarshal(moved.Data, &entered); err != nil {
		t.Fatal(err)
	}
	reply, err = admin.Do(s.ctx, http.MethodDelete, "/admin/reservation/"+entered.ID+"?bookingStatus=paid", nil)
	must(t, reply, err)
	s.blocks(t)
}

// The bookings of a partner that reports them itself are not entered by hand: its next calendar, which has other ids, would cancel them, and its
// events would count as outdated. Its other rooms are.
func TestConnectedPartnerIsNotEnteredByHand(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.calendar(t, 1, "t") // of spacecloud
	at := s.start(3)
	if status, answer := s.event(t, map[string]any{"type": "booking.created", "externalId": "A", "listingId": "gangnam-4", "seq": 1, "start": at, "end": at.Add(time.Hour)}); status != 200 {
		t.Fatalf("event: %d %v", status, answer)
	}
	var gateway string
	if err := s.DB.Pool.QueryRow(s.ctx, `select min(partner) from channel_listing where channel = $1`, "gateway").Scan(&gateway); err != nil {
		t.Fatal(err)
	}
	admin := s.admin(t)
	for _, c := range []struct {
		partner, room string
		status        int
	}{{"spacecloud", "1", 400}, {"spacecloud", "2", 200}, {gateway, "3", 400}} {
		reply, err := admin.Post(s.ctx, "/v2/admin/branches/gangnam/partner-bookings", map[string]any{
			"partner": c.partner, "externalId": "N-" + c.room, "roomNo": c.room, "startDateTime": moneytest.Wire(at), "endDateTime": moneytest.Wire(at.Add(time.Hour)),
		})
		if err != nil || reply.HTTP != c.status || c.status == 400 && !strings.Contains(reply.Raw, "(partner)") {
			t.Errorf("%s, room %s: %d %s (%v), want %d", c.partner, c.room, reply.HTTP, reply.Raw, err, c.status)
		}
	}
}
