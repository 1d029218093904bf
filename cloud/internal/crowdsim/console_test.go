package crowdsim

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
)

const conflicts = `state = 'CONFLICT'`

// issue issues a virtual account for one of the guests, who may pay into it. Sometimes two tabs of the administrator issue it at once.
func (s *step) issue() {
	start, admin, m := s.soon(), s.admin(), mobiles(s.rng.IntN(guests))
	hold := map[string]any{"branch": "gangnam", "room": 1 + s.rng.IntN(6), "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(time.Hour))}
	if s.call(admin, http.MethodPost, "/admin/reservation", hold).HTTP != http.StatusOK {
		return
	}
	body := map[string]any{"amount": 1000 + s.rng.IntN(20000), "orderName": "룸", "name": "홍길동", "mobileNum": m[0], "bankCode": "20"}
	var wg sync.WaitGroup
	for range 1 + s.rng.IntN(3)/2 {
		one := s.beside()
		wg.Go(func() { one.call(admin, http.MethodPost, "/admin/v2/virtual-accounts", body) })
	}
	wg.Wait()
}

// switchRoom disables a room, or enables it.
func (s *step) switchRoom() {
	s.call(s.admin(), http.MethodPatch, fmt.Sprintf("/admin/machines/gangnam/%d", 1+s.rng.IntN(6)), map[string]bool{"enabled": s.rng.IntN(3) > 0})
}

// dropConflict drops a booking that a partner has sold although its time was taken.
func (s *step) dropConflict() {
	s.act(conflicts, http.MethodDelete, "/admin/reservation/%s?bookingStatus=conflict", nil)
}

// resolveConflict gives the guest of such a booking another room or time.
func (s *step) resolveConflict() {
	start := s.soon()
	s.act(conflicts, http.MethodPut, "/admin/reservation/%s", map[string]any{
		"room": strconv.Itoa(1 + s.rng.IntN(6)), "startDateTime": moneytest.Wire(start), "endDateTime": moneytest.Wire(start.Add(time.Duration(1+s.rng.IntN(6)) * 10 * time.Minute)),
	})
}

// erase erases a guest from what is over.
func (s *step) erase() {
	m := mobiles(s.rng.IntN(guests))
	s.call(s.admin(), http.MethodPost, "/v2/admin/personal-data/erase", map[string]string{"contact": m[s.rng.IntN(3)/2]})
}

// block blocks the phone number of a guest, or unblocks it.
func (s *step) block() {
	if s.rng.IntN(3) == 0 {
		s.act(`mobile_key is not null`, http.MethodPut, "/v2/admin/reservations/%s/guest/block", map[string]string{"reason": "노쇼"})
		return
	}
	s.act(`mobile_key in (select mobile_key from guest_block)`, http.MethodDelete, "/v2/admin/reservations/%s/guest/block", nil)
}

// look opens the screens of administrators and guests.
func (s *step) look() {
	month := s.clock.Now().In(time.FixedZone("KST", 9*60*60)).Format("2006-01")
	day := month + "-01"
	admin := s.admin()
	for _, path := range []string{
		"/v2/admin/branches/gangnam/money?yearMonth=" + month, "/v2/admin/branches/gangnam/payments?limit=3&yearMonth=" + month,
		"/v2/admin/settlement?month=" + month, "/v2/admin/money-desk", "/v2/admin/overview", "/v2/admin/reservations?query=0104",
		"/v2/admin/reports/occupancy?by=hour&from=" + day + "&to=" + day, "/v2/admin/alerts?state=all",
	} {
		s.screen(admin, path)
	}
	if id := s.any(`true`); id != "" {
		s.screen(admin, "/v2/admin/reservations/"+id)
		s.screen(admin, "/admin/reservation/"+id)
		s.screen(admin, "/v2/admin/reservations/"+id+"/why")
	}
	g, one, ok := s.guestWithStay()
	if !ok {
		return
	}
	for _, path := range []string{"/v2/receipt", "/v2/keys/" + one.DoorlockKey, "/v2/keys/" + one.DoorlockKey + "/why?branch=gangnam&door=room", fmt.Sprintf("/v2/my-reservations/%d/refund", one.ID)} {
		s.screen(g.browser[0], path)
	}
}

func (s *step) screen(b *moneytest.Buyer, path string) { s.call(b, http.MethodGet, path, nil) }

// cancelAsShown cancels a stay with the amount that its guest was shown.
func (s *step) cancelAsShown() {
	g, one, ok := s.guestWithStay()
	if !ok {
		return
	}
	var quote struct{ Amount int }
	if !s.read(s.call(g.browser[0], http.MethodGet, fmt.Sprintf("/v2/my-reservations/%d/refund", one.ID), nil), &quote) {
		return
	}
	s.call(g.browser[0], http.MethodPost, "/payment/cancel", s.transfer(map[string]any{"id": one.ID, "cancelReason": "변심", "refundAmount": quote.Amount}))
}
