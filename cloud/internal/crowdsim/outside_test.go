package crowdsim

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/channel"
	"github.com/yeolda/yeolda/cloud/internal/partner"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// bookings is the number of bookings of the partner's guests.
const bookings = 5

// partnerChannel is a partner that reports bookings.
type partnerChannel struct {
	mu     sync.Mutex
	seq    int
	sent   []partnerBooking
	newest map[string]decided // by booking
}

// decided is the newest event that the service has decided about.
type decided struct {
	partnerBooking
	accepted bool
}

type partnerBooking struct {
	Type       string            `json:"type"`
	ExternalID string            `json:"externalId"`
	ListingID  string            `json:"listingId"`
	Seq        int               `json:"seq"`
	Start      time.Time         `json:"start"`
	End        time.Time         `json:"end"`
	Customer   map[string]string `json:"customer"`
}

// send signs an event and delivers it to a replica.
func (s *step) send(event partnerBooking) {
	body, timestamp := []byte(mustJSON(event)), fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, []byte(sandbox.DemoPartnerSecret))
	_, _ = mac.Write(append([]byte(timestamp+"."), body...))
	request, err := http.NewRequestWithContext(s.ctx, http.MethodPost, "http://"+s.front.host(s.rng.IntN(6))+"/partner/v1/events", bytes.NewReader(body))
	if err != nil {
		s.violation("%v", err)
		return
	}
	request.Header.Set("X-Partner-Id", sandbox.DemoPartnerID)
	request.Header.Set("X-Partner-Timestamp", timestamp)
	request.Header.Set("X-Partner-Signature", "v1="+hex.EncodeToString(mac.Sum(nil)))
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		s.violation("%v", err)
		return
	}
	defer response.Body.Close()
	answer, _ := io.ReadAll(response.Body)
	switch {
	case response.StatusCode < 500:
		s.partner.decide(event, response.StatusCode == http.StatusOK)
	case response.StatusCode != http.StatusServiceUnavailable || !s.restored(): // no time can be taken during a rebuild
		s.violation("partner event %s: %s", body, answer)
	}
	s.note(fmt.Sprint("partner ", response.StatusCode), s.name, string(body), string(answer))
}

// decide notes that the service has decided about an event.
func (p *partnerChannel) decide(event partnerBooking, accepted bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.newest == nil {
		p.newest = map[string]decided{}
	}
	if event.Seq > p.newest[event.ExternalID].Seq {
		p.newest[event.ExternalID] = decided{event, accepted}
	}
}

// partnerEvent makes, changes or cancels a booking of a partner, whose stay may be in another branch from then on.
func (s *step) partnerEvent() {
	p, n := &s.partner, s.rng.IntN(bookings)
	start := s.soon()
	p.mu.Lock()
	p.seq++
	event := partnerBooking{
		Type: pick(s.rng, "booking.created", "booking.updated", "booking.updated", "booking.cancelled"), ExternalID: fmt.Sprint("P-", n), Seq: p.seq,
		ListingID: pick(s.rng, "gangnam-1", "gangnam-2", "gangnam-3", "hongdae-1"), Start: start, End: start.Add(time.Duration(1+s.rng.IntN(9)) * 10 * time.Minute),
		Customer: map[string]string{"name": "박손님", "phone": partnerMobile(n)},
	}
	p.sent = append(p.sent, event)
	p.mu.Unlock()
	s.send(event)
}

func partnerMobile(n int) string { return fmt.Sprintf("0107000%04d", 100+n) }

// partnerAgain repeats an event, which may be outdated.
func (s *step) partnerAgain() {
	p, n := &s.partner, s.rng.IntN(600)
	p.mu.Lock()
	if len(p.sent) == 0 {
		p.mu.Unlock()
		return
	}
	event := p.sent[n%len(p.sent)]
	p.mu.Unlock()
	s.send(event)
}

// feed is a calendar with contents.
type feed struct {
	list []channel.Booking
}

func (f feed) Pull(context.Context, channel.Feed) (channel.Pulled, error) {
	return channel.Pulled{Bookings: f.list}, nil
}

// calendar has a replica read the calendar of another partner, in which some bookings are new, moved or missing.
func (s *step) calendar() {
	var list []channel.Booking
	for n := range 3 {
		start := s.slot(2 + n*6 + s.rng.IntN(6))
		if s.rng.IntN(3) > 0 {
			list = append(list, channel.Booking{ExternalID: fmt.Sprint("C-", n), Start: start, End: start.Add(30 * time.Minute)})
		}
	}
	s.readCalendar(s.rng.IntN(6), list)
}

func (s *step) readCalendar(replica int, list []channel.Booking) {
	stack := s.replicas[replica%len(s.replicas)]
	hash := []byte{1}
	listing, err := postgres.ListingByToken(s.ctx, stack.DB.Pool, "gangnam", 5, hash)
	if err == nil {
		verbs := stack.Replica(s.t)
		reader := &partner.Service{DB: stack.DB, Reserve: verbs, Keys: verbs.Keys, ICal: feed{list: list}, Log: verbs.Log}
		err = reader.Import(s.ctx, listing)
	}
	if err != nil {
		s.violation("calendar: %v", err)
	}
	s.note("calendar", s.name, list)
}

// account returns the order of one of the virtual accounts; empty: there is none.
func (s *step) account(status sandbox.Status) string {
	n := s.rng.IntN(600)
	var orders []string
	for _, p := range s.box.Payments("") {
		if p.VirtualAccount != nil && p.Status == status {
			orders = append(orders, p.OrderID)
		}
	}
	if len(orders) == 0 {
		return ""
	}
	return orders[n%len(orders)]
}

// dashboard has the operator cancel an order in the provider's dashboard, completely or in part.
func (s *step) dashboard() {
	n, part := s.rng.IntN(600), 1+s.rng.IntN(12000)
	var paid []sandbox.Payment
	for _, p := range s.box.Payments("") {
		if p.ApprovedAt != nil && p.BalanceAmount > 0 {
			paid = append(paid, p)
		}
	}
	if len(paid) == 0 {
		return
	}
	p, request := paid[n%len(paid)], toss.CancelRequest{Reason: "고객 요청"}
	if part < p.BalanceAmount && s.rng.IntN(3) > 0 {
		request.Amount = &part
	}
	if p.VirtualAccount != nil {
		request.RefundAccount = &toss.RefundAccount{Bank: "20", Number: "1002123456789", Holder: "홍길동"}
	}
	for _, keys := range s.rows(s.t, `select key_set from payment where payment_key = $1`, p.PaymentKey) {
		_, err := s.replicas[0].Replica(s.t).Payments.Cancel(s.ctx, toss.KeySet(keys), fmt.Sprint("dashboard-", p.PaymentKey, part), p.PaymentKey, request)
		s.note("dashboard", s.name, p.OrderID, part, err)
	}
}

func (s *step) deposit() {
	if order := s.account(sandbox.StatusWaitingForDeposit); order != "" {
		s.bank("deposit", order, s.box.Deposit)
	}
}

func (s *step) reverse() {
	if order := s.account(sandbox.StatusDone); order != "" {
		s.bank("reverse", order, s.box.Reverse)
	}
}

func (s *step) bank(what, order string, move func(string) (*sandbox.Delivery, error)) {
	delivery, err := move(order)
	if err == nil && s.rng.IntN(2) == 0 {
		_, err = delivery.First(s.ctx)
	}
	s.note(what, s.name, order, err)
}

// callbackAgain delivers a callback of the provider again, which may be outdated.
func (s *step) callbackAgain() {
	n := s.rng.IntN(600)
	s.front.mu.Lock()
	list := s.front.received
	s.front.mu.Unlock()
	if len(list) == 0 {
		return
	}
	m := list[n%len(list)]
	m.header = m.header.Clone()
	m.header.Set(toss.RetriedCountHeader, "1")
	s.note(fmt.Sprint("callback ", s.front.deliver(s.ctx, m, n).Code), s.name, string(m.body))
}
