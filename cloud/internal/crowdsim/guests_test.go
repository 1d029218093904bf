package crowdsim

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// guest has two phone numbers, and a browser for each. The first one pays.
type guest struct {
	mobile  [2]string
	browser [2]*moneytest.Buyer

	mu       sync.Mutex
	loggedIn [2]bool
}

// mobiles returns the phone numbers of a guest, and owner the guest of a number.
func mobiles(n int) [2]string {
	return [2]string{fmt.Sprintf("0104000%04d", n+1), fmt.Sprintf("0106000%04d", n+1)}
}

// otherMobile returns the other number of the guest with a number.
func otherMobile(mobile string) string {
	for n := range guests {
		if m := mobiles(n); m[0] == mobile {
			return m[1]
		} else if m[1] == mobile {
			return m[0]
		}
	}
	return mobile
}

func owner(mobile string) string {
	digits := strings.ReplaceAll(mobile, "-", "")
	return digits[max(0, len(digits)-4):]
}

func (w *world) guest(n int) *guest {
	return &guest{mobile: mobiles(n), browser: [2]*moneytest.Buyer{w.browser(), w.browser()}}
}

func (s *step) guest() *guest { return s.guests[s.rng.IntN(guests)] }

// loginTimeout is how long a guest waits for a code, which a fault may have lost.
const loginTimeout = 3 * time.Second

// login logs one of the numbers of a guest in, which needs a reservation with it.
func (s *step) login(g *guest, number int) (*moneytest.Buyer, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.loggedIn[number] {
		ctx, cancel := context.WithTimeout(s.ctx, loginTimeout)
		defer cancel()
		err := g.browser[number].Login(ctx, g.mobile[number])
		g.loggedIn[number] = err == nil
		s.note("login", s.name, g.mobile[number], err)
	}
	return g.browser[number], g.loggedIn[number]
}

// session returns one of the sessions of a guest.
func (s *step) session() (*moneytest.Buyer, bool) { return s.login(s.guest(), s.rng.IntN(3)/2) }

// transfer is the refund account of a guest, or of a stranger.
func (s *step) transfer(body map[string]any) map[string]any {
	body["refundReceiveAccountBank"], body["refundReceiveAccountNumber"] = "20", "1002123456789"
	body["refundReceiveAccountHolderName"] = pick(s.rng, "홍길동", "홍길동", "다른 사람")
	return body
}

// buy goes through a purchase, which the guest may leave at any step.
func (s *step) buy() {
	g, start := s.guest(), s.soon()
	wish := map[string]any{"branch": "gangnam", "room": 1 + s.rng.IntN(6), "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(time.Hour))}
	if s.call(g.browser[0], http.MethodPost, "/reservation", wish).HTTP != http.StatusOK {
		return
	}
	if s.rng.IntN(8) > 0 {
		s.pay(g, true)
	}
}

// pay registers and pays what the browser of a guest holds.
func (s *step) pay(g *guest, register bool) {
	type hold struct {
		Amount                int
		ClientKey             string
		RoomNo, StartDateTime string
	}
	var held, registered hold
	if !s.read(s.call(g.browser[0], http.MethodGet, "/v2/hold", nil), &held) {
		return
	}
	order := moneytest.Confirm{Amount: held.Amount}
	if register {
		body := map[string]any{"amount": held.Amount, "name": "홍길동", "mobileNum": g.mobile[0]}
		if s.rng.IntN(2) == 0 {
			body["cashReceipt"] = cashReceipt
		}
		if !s.read(s.call(g.browser[0], http.MethodPost, "/payment", body), &order) {
			return
		}
		if !s.read(s.call(g.browser[0], http.MethodGet, "/v2/hold", nil), &registered) {
			return
		}
		if registered.RoomNo != held.RoomNo || registered.StartDateTime != held.StartDateTime {
			return // another tab of the browser has another hold, whose seller may be another one
		}
		held = registered
	}
	s.confirm(g, order, held.ClientKey)
}

// cashReceipt is the cash receipt that a guest wants.
var cashReceipt = map[string]string{"type": "personal", "number": "01012345678"}

// confirm goes through the payment widget and confirms, sometimes twice.
func (s *step) confirm(g *guest, order moneytest.Confirm, clientKey string) {
	method := cmp.Or(s.method, pick(s.rng, sandbox.MethodCard, sandbox.MethodCard, sandbox.MethodEasyPay, sandbox.MethodVirtualAccount, sandbox.MethodVirtualAccount))
	twice := s.rng.IntN(4) == 0
	key, err := s.box.Authenticate(sandbox.Checkout{OrderID: order.OrderID, Amount: order.Amount, Method: method, Bank: "20", ClientKey: clientKey})
	if err != nil {
		s.note("not authenticated", s.name, err)
		return
	}
	order.PaymentKey = key
	tabs := []moneytest.Confirm{order}
	if s.rng.IntN(4) == 0 { // the guest goes through the widget in a second tab, too, and may return from neither, one or both
		other := order
		if other.PaymentKey, err = s.box.Authenticate(sandbox.Checkout{OrderID: order.OrderID, Amount: order.Amount, Method: method, Bank: "20", ClientKey: clientKey}); err == nil {
			tabs = pick(s.rng, tabs, []moneytest.Confirm{other}, []moneytest.Confirm{order, other}, []moneytest.Confirm{other, order})
		}
	}
	var wg sync.WaitGroup
	for _, tab := range tabs {
		for range map[bool]int{false: 1, true: 2}[twice] {
			if len(tabs) == 1 {
				s.call(g.browser[0], http.MethodPost, "/payment/confirm", tab)
				continue
			}
			one := s.beside()
			wg.Go(func() { one.call(g.browser[0], http.MethodPost, "/payment/confirm", tab) })
		}
	}
	wg.Wait()
	if method == sandbox.MethodVirtualAccount && s.rng.IntN(2) == 0 {
		_, _ = s.box.Deposit(order.OrderID) // it bounces if the account is closed already
	}
}

// stay is a reservation of a session with its key.
type stay struct {
	ID          int64
	DoorlockKey string
}

// stay returns one of the stays of a session that have keys.
func (s *step) stay(b *moneytest.Buyer) (stay, bool) {
	n := s.rng.IntN(60)
	var list struct{ Keys []stay }
	if !s.read(s.call(b, http.MethodGet, "/v2/my-keys", nil), &list) || len(list.Keys) == 0 {
		return stay{}, false
	}
	return list.Keys[n%len(list.Keys)], true
}

// guestWithStay logs a guest in, and returns one of the guest's stays.
func (s *step) guestWithStay() (g *guest, one stay, ok bool) {
	g = s.guest()
	b, ok := s.login(g, 0)
	if ok {
		one, ok = s.stay(b)
	}
	return g, one, ok
}

func (s *step) extend() {
	g, one, ok := s.guestWithStay()
	if !ok {
		return
	}
	var times struct {
		Options []struct{ EndDateTime string }
	}
	if !s.read(s.call(g.browser[0], http.MethodGet, "/v2/keys/"+one.DoorlockKey+"/extension", nil), &times) || len(times.Options) == 0 {
		return
	}
	end := times.Options[s.rng.IntN(60)%len(times.Options)].EndDateTime
	var order moneytest.Confirm
	if s.read(s.call(g.browser[0], http.MethodPost, "/v2/keys/"+one.DoorlockKey+"/extension", map[string]string{"endDateTime": end}), &order) {
		var held struct{ ClientKey string }
		if s.read(s.call(g.browser[0], http.MethodGet, "/v2/hold", nil), &held) {
			s.confirm(g, order, held.ClientKey)
		}
	}
}

func (s *step) exchange() {
	g, one, ok := s.guestWithStay()
	if !ok {
		return
	}
	start := s.soon()
	body := s.transfer(map[string]any{"room": 1 + s.rng.IntN(6), "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(time.Hour))})
	var result struct{ Moved bool }
	if s.read(s.call(g.browser[0], http.MethodPost, fmt.Sprintf("/v2/my-reservations/%d/exchange", one.ID), body), &result) && !result.Moved {
		s.pay(g, true)
	}
}

func (s *step) cancel() {
	b, ok := s.session()
	n := s.rng.IntN(60)
	var list []struct{ ID int64 }
	if ok && s.read(s.call(b, http.MethodGet, "/my-reservations", nil), &list) && len(list) > 0 {
		s.atOnce(b, "/payment/cancel", s.transfer(map[string]any{"id": list[n%len(list)].ID, "cancelReason": "변심"}))
	}
}

func (s *step) end() {
	b, ok := s.session()
	if !ok {
		return
	}
	if one, ok := s.stay(b); ok {
		s.call(b, http.MethodPost, "/v2/keys/"+one.DoorlockKey+"/end", nil)
	}
}

func (s *step) release() { s.call(s.guest().browser[0], http.MethodDelete, "/reservation", nil) }

func (s *step) correctOwn() {
	g := s.guest()
	s.call(g.browser[0], http.MethodPost, "/v2/receipt/contact", map[string]string{"mobileNum": pick(s.rng, g.mobile[0], g.mobile[1])})
}

// enterAccount enters the guest's account at the last refund link that the guest has received.
func (s *step) enterAccount() {
	g := s.guest()
	mobile := pick(s.rng, g.mobile[0], g.mobile[1])
	body := map[string]string{"refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "홍길동"}
	for _, m := range s.box.Messages(mobile) {
		if m.Template == "refund-account" {
			s.call(g.browser[0], http.MethodPost, "/v2/refund-accounts/"+path.Base(m.Variables["link"]), body)
			return
		}
	}
}

// read decodes the data of a success.
func (s *step) read(reply moneytest.Reply, into any) bool {
	if reply.HTTP != http.StatusOK {
		return false
	}
	if err := json.Unmarshal(reply.Data, into); err != nil {
		s.violation("data %s: %v", reply.Data, err)
		return false
	}
	return true
}
