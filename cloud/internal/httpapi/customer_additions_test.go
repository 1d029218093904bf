package httpapi_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

func TestListsForThePages(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	var branches struct {
		Branches []struct {
			Branch, NameKo, NameEn, Address, Phone, TimeZone string
			BookingHorizonDays                               int
		}
	}
	c.Get("/v2/branches").OK(t).Into(t, &branches)
	if len(branches.Branches) != 3 || branches.Branches[0].Branch != "gangnam" || branches.Branches[0].NameKo == "" ||
		branches.Branches[0].TimeZone != "Asia/Seoul" || branches.Branches[0].BookingHorizonDays != 60 {
		t.Errorf("branches: %+v", branches)
	}
	var banks struct {
		Banks []struct {
			Code, Name string
			Issues     bool
		}
	}
	c.Get("/v2/banks").OK(t).Into(t, &banks)
	if len(banks.Banks) != len(booking.Banks()) {
		t.Errorf("%d banks, want %d", len(banks.Banks), len(booking.Banks()))
	}
	var site struct {
		Payment struct{ ClientKey, ScriptURL string }
	}
	c.Get("/v2/site").OK(t).Into(t, &site)
	if site.Payment.ClientKey == "" || !strings.HasSuffix(site.Payment.ScriptURL, "/v2/standard") {
		t.Errorf("site: %+v", site)
	}
}

func TestHoldIsShownToWhoHasIt(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	c.Get("/v2/hold").Fails(t, http.StatusUnauthorized, "ResourceTimeOutException", "")
	start := slot(s, 3*time.Hour)
	c.Post("/reservation", holdBody(1, start, 80*time.Minute)).OK(t)
	var hold struct {
		Branch, RoomNo, StartDateTime, EndDateTime, BookingStatus string
		Amount, RemainingSeconds                                  int
	}
	c.Get("/v2/hold").OK(t).Into(t, &hold)
	if hold.Branch != "gangnam" || hold.RoomNo != "1" || hold.StartDateTime != wire(start) || hold.EndDateTime != wire(start.Add(70*time.Minute)) ||
		hold.BookingStatus != "beforePaymentTab" || hold.Amount == 0 || hold.RemainingSeconds < 590 || hold.RemainingSeconds > 600 {
		t.Errorf("hold: %+v", hold)
	}
	s.Client(t).Get("/v2/hold").Fails(t, http.StatusUnauthorized, "ResourceTimeOutException", "")
	c.Delete("/reservation", nil).OK(t)
	c.Get("/v2/hold").Fails(t, http.StatusUnauthorized, "ResourceTimeOutException", "")
}

type receiptAnswer struct {
	Branch, RoomNo, Status, PaymentMethod string
	Amount                                int
	DoorlockKey, KeyLink                  *string
	Photo                                 *photoOfRoom
}

func TestReceiptOfACardLeadsToTheKey(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	c.Get("/v2/receipt").Fails(t, http.StatusUnauthorized, "ResourceTimeOutException", "")
	start := slot(s, 3*time.Hour)
	confirm := order(t, s, c, 1, start, time.Hour, 30000, "카드")
	c.Get("/v2/receipt").Fails(t, http.StatusUnauthorized, "ResourceTimeOutException", "")
	c.Post("/payment/confirm", confirm).OK(t)
	var receipt receiptAnswer
	c.Get("/v2/receipt").OK(t).Into(t, &receipt)
	if receipt.Status != "DONE" || receipt.Amount != 30000 || receipt.DoorlockKey == nil || receipt.KeyLink == nil ||
		!strings.HasSuffix(*receipt.KeyLink, "/k/"+*receipt.DoorlockKey) {
		t.Fatalf("receipt: %+v", receipt)
	}
	s.Client(t).Get("/v2/receipt").Fails(t, http.StatusUnauthorized, "ResourceTimeOutException", "")
	if receipt.Photo != nil {
		t.Errorf("photo of a room without one: %+v", receipt.Photo)
	}
	s.Admin(t, "hq", "hq-demo").Post("/v2/admin/branches/gangnam/rooms/1/photos", map[string]any{
		"data": base64.StdEncoding.EncodeToString(jpegOf(t, 480, 320)), "alt": map[string]string{"ko": "소파", "en": "Sofa"}}).OK(t)
	if c.Get("/v2/receipt").OK(t).Into(t, &receipt); receipt.Photo == nil || receipt.Photo.Alt["ko"] != "소파" {
		t.Errorf("photo of the receipt: %+v", receipt.Photo)
	}

	var key struct {
		Branch, RoomNo, State, StartDateTime, WindowFrom, ServerTime string
		Online                                                       bool
	}
	stranger := s.Client(t) // the key is the only credential
	stranger.Get("/v2/keys/"+*receipt.DoorlockKey).OK(t).Into(t, &key)
	if key.Branch != "gangnam" || key.RoomNo != "1" || key.State != "before" || key.Online || key.StartDateTime != wire(start) {
		t.Errorf("key: %+v", key)
	}
	if from, err := time.Parse(time.RFC3339, key.WindowFrom); err != nil || !from.Equal(start.Add(-2*time.Minute)) {
		t.Errorf("the window begins at %s, the reservation at %s", key.WindowFrom, start)
	}
	stranger.Get("/v2/keys/00000000-0000-4000-8000-000000000000").Fails(t, http.StatusBadRequest, "ResourceNotExistException", "")
	stranger.Get("/v2/keys/nonsense").Fails(t, http.StatusBadRequest, "ResourceNotExistException", "")
}

// TestGuestCorrectsNumber lets the browser that bought a stay correct the phone number until a door has opened.
func TestGuestCorrectsNumber(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	guest := s.Client(t)
	guest.Post("/payment/confirm", order(t, s, guest, 1, slot(s, 3*time.Hour), time.Hour, 30000, "카드")).OK(t)
	var receipt struct {
		ID, OrderID, DoorlockKey, MobileNum, KeyMessage string
		Correctable                                     bool
	}
	awaitDelivery := func(state string) {
		t.Helper()
		eventually(t, "the receipt shows "+state, func() bool {
			guest.Get("/v2/receipt").OK(t).Into(t, &receipt)
			return receipt.KeyMessage == state
		})
	}
	awaitDelivery("sent")
	if _, err := s.DB.Pool.Exec(t.Context(), `update message set state = 'FAILED'`); err != nil {
		t.Fatal(err)
	}
	awaitDelivery("failed")
	old := receipt.DoorlockKey
	const path = "/v2/receipt/contact"
	correction := map[string]string{"mobileNum": "010-9999-8888"}
	says(t, "another browser", s.Client(t).Post(path, correction), holdExpired)
	for _, number := range []string{"", "abc", "0101", strings.Repeat("1", 21)} {
		guest.Post(path, map[string]string{"mobileNum": number}).Fails(t, http.StatusBadRequest, "IllegalArguemntError", "")
	}
	guest.Get("/v2/receipt").OK(t).Into(t, &receipt)
	if receipt.DoorlockKey != old || !receipt.Correctable {
		t.Fatalf("a rejected request changed the purchase: %+v", receipt)
	}

	says(t, "another purchase", guest.Post(path, map[string]string{"mobileNum": "010-9999-8888", "orderId": "of another window"}), reply{409, "ResourceConflictException", "예약 정보가 변경되었습니다. 다시 확인해 주세요."})
	correction["orderId"] = receipt.OrderID
	guest.Post(path, correction).OK(t)
	awaitDelivery("sent")
	if receipt.DoorlockKey == old || receipt.MobileNum != "010-9999-8888" {
		t.Fatalf("after the correction: %+v", receipt)
	}
	awaitMessage(t, s, "01099998888", func(m sandbox.Message) bool { return m.Variables["doorlockKey"] == receipt.DoorlockKey })
	says(t, "the key that went to the wrong number", guest.Get("/v2/keys/"+old), unknownKey)
	if actor := only(t, s, `select actor from audit where action = 'reservation.contact'`); actor != "customer" {
		t.Errorf("the correction is recorded as that of %s", actor)
	}

	if _, err := s.DB.Pool.Exec(t.Context(), `
		insert into door_request (id, branch_id, requested_by, kind, device, devices, state, reservation_id, created_at, finished_at)
		select gen_random_uuid(), branch_id, 'customer', 'front', 'front', '{}', 'SUCCESS', id, $1, $1 from reservation where state = 'DONE'`, s.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	guest.Get("/v2/receipt").OK(t).Into(t, &receipt)
	says(t, "a guest who has entered", guest.Post(path, correction), reply{400, "IllegalArguemntError", "연락처를 고칠 수 없는 예약입니다."})
	if receipt.Correctable {
		t.Error("a guest after the first opening is offered a correction")
	}
}

// TestReceiptNamesTheAddressOfTheKey: the number takes no message, so the key goes out by e-mail, and the receipt shows that.
func TestReceiptNamesTheAddressOfTheKey(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	var receipt struct {
		KeyMessage string
		KeyMailed  *bool
	}
	for _, c := range []struct {
		room, price int
		rejected    bool
	}{{1, 30000, false}, {2, 25000, true}} {
		if c.rejected {
			if err := s.Sandbox.SetFault(sandbox.Fault{Target: sandbox.TargetMessages, Kind: sandbox.FaultError, Code: "1062"}); err != nil {
				t.Fatal(err)
			}
		}
		guest := s.Client(t)
		guest.Post("/payment/confirm", order(t, s, guest, c.room, slot(s, 3*time.Hour), time.Hour, c.price, "카드")).OK(t)
		eventually(t, "the key is sent", func() bool {
			guest.Get("/v2/receipt").OK(t).Into(t, &receipt)
			return receipt.KeyMessage == "sent"
		})
		if receipt.KeyMailed == nil || *receipt.KeyMailed != c.rejected {
			t.Errorf("rejected by the phone provider %v: the receipt has keyMailed %v", c.rejected, receipt.KeyMailed)
		}
	}
}

// TestCorrectionsAreLimited bounds the messages that a guest can have sent to numbers of other people.
func TestCorrectionsAreLimited(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	guest := s.Client(t)
	guest.Post("/payment/confirm", order(t, s, guest, 1, slot(s, 3*time.Hour), time.Hour, 30000, "카드")).OK(t)
	correction := map[string]string{"mobileNum": "010-9999-8888"}
	for range 3 {
		guest.Post("/v2/receipt/contact", correction).OK(t)
	}
	guest.Post("/v2/receipt/contact", correction).Fails(t, http.StatusTooManyRequests, "TooManyRequestsError", "")
}

func TestReceiptOfAVirtualAccountFollowsTheDeposit(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	c := s.Client(t)
	confirm := order(t, s, c, 2, slot(s, 3*time.Hour), time.Hour, 25000, "가상계좌")
	c.Post("/payment/confirm", confirm).OK(t)
	var receipt receiptAnswer
	c.Get("/v2/receipt").OK(t).Into(t, &receipt)
	if receipt.Status != "WAITING_FOR_DEPOSIT" || receipt.DoorlockKey != nil || receipt.KeyLink != nil {
		t.Fatalf("before the deposit: %+v", receipt)
	}
	delivery, err := s.Sandbox.Deposit(confirm["orderId"].(string))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := delivery.First(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); receipt.Status != "DONE"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("after the deposit: %+v", receipt)
		}
		c.Get("/v2/receipt").OK(t).Into(t, &receipt)
	}
	if receipt.KeyLink == nil {
		t.Error("no key after the deposit")
	}
	c.Get("/v2/my-keys").Fails(t, http.StatusUnauthorized, "AuthenticationError", "")
}
