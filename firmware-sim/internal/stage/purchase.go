package stage

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// branch is the branch in which the scenes play: open around the clock, with keypads of its agent.
const branch = "gangnam"

// guestName is the name of the guests of scenes.
const guestName = "김하늘"

// administrator is the demo's administrator of all branches.
var administrator = map[string]string{"id": "hq", "password": "hq-demo"}

const (
	slot = 10 * time.Minute
	stay = time.Hour
)

var seoul = time.FixedZone("KST", 9*3600)

func wireTime(at time.Time) string { return at.In(seoul).Format("200601021504") }

// booking is what a guest of a scene has bought.
type booking struct {
	*person
	Mobile     string
	Room       int
	Price      int
	Start, End time.Time
	Method     string // of the payment
	Order      string
	Key        string
}

// door is the name of the room's door in the simulator.
func (b *booking) door() string { return fmt.Sprintf("room_%d", b.Room) }

// page is the address of the key page.
func (b *booking) page() string { return b.service + "/k/" + b.Key }

// result is the address of the key page with the result of a press.
func (b *booking) result(door string, o opening) string {
	return b.page() + "?" + url.Values{"request": {o.Request}, "door": {door}}.Encode()
}

// inbox is the address of the guest's messages.
func (t *telling) inbox(b *booking) string {
	return t.Sandbox + "/?to=" + b.Mobile + "#messages"
}

// day is the address of the day in the console.
func (t *telling) day(b *booking) string {
	return t.Service + "/console/" + branch + "/day/" + b.Start.In(seoul).Format(time.DateOnly)
}

// room is a room on sale and its price of an hour in won.
type room struct{ No, Price int }

// rooms returns the rooms that are sold by the hour.
func (t *telling) rooms() ([]room, error) {
	var found struct {
		Rooms []struct {
			RoomNo  string
			Enabled bool
			Pricing struct{ Min60 int }
		}
	}
	today := time.Now().In(seoul).Format(time.DateOnly)
	if err := t.newPerson().call(t.ctx, http.MethodGet, "/v2/branches/"+branch+"/reservations?baseHour=0&date="+today, nil, &found); err != nil {
		return nil, err
	}
	var rooms []room
	for _, r := range found.Rooms {
		no, err := strconv.Atoi(r.RoomNo)
		if err != nil {
			return nil, fmt.Errorf("room %q: %w", r.RoomNo, err)
		}
		if r.Enabled && r.Pricing.Min60 > 0 {
			rooms = append(rooms, room{no, r.Pricing.Min60})
		}
	}
	return rooms, nil
}

// firstFree calls take with each room but one until the answer is not that its time is taken. from names the time to visitors.
func (t *telling) firstFree(from string, but int, take func(room) error) error {
	rooms, err := t.rooms()
	if err != nil {
		return err
	}
	for _, r := range rooms {
		if r.No == but {
			continue
		}
		if err := take(r); !refusedWith(err, http.StatusConflict) {
			return err
		}
	}
	return &obstacle{
		fmt.Sprintf("강남점에 %s부터 한 시간 비어 있는 룸이 없어요. 콘솔에서 예약을 취소한 다음 다시 눌러 주세요.", from),
		fmt.Sprintf("No room in Gangnam is free for an hour from %s. Cancel a reservation in the console and press again.", from),
	}
}

// hold lets a guest reserve the first room that is free for an hour, some time after the start of the current slot.
func (t *telling) hold(after time.Duration) *booking {
	b := &booking{person: t.newPerson(), Mobile: fmt.Sprintf("010%08d", rand.IntN(1e8))}
	t.do(func() error {
		return t.firstFree(clock(slotAfter(after)), 0, func(r room) error {
			b.Room, b.Price, b.Start = r.No, r.Price, slotAfter(after)
			b.End = b.Start.Add(stay)
			return b.reserve(t.ctx)
		})
	})
	t.guests = append(t.guests, b)
	return b
}

// slotAfter returns a time after the start of the current slot.
func slotAfter(d time.Duration) time.Time { return time.Now().Truncate(slot).Add(d) }

// won writes an amount below a million with its comma.
func won(amount int) string {
	if amount < 1000 {
		return strconv.Itoa(amount)
	}
	return fmt.Sprintf("%d,%03d", amount/1000, amount%1000)
}

func clock(at time.Time) string { return at.In(seoul).Format("15:04") }

func (b *booking) reserve(ctx context.Context) error {
	return b.call(ctx, http.MethodPost, "/reservation", map[string]any{
		"branch": branch, "room": b.Room, "startDateTime": wireTime(b.Start), "endDateTime": wireTime(b.End),
	}, nil)
}

// release releases a held room.
func (t *telling) release(b *booking) {
	t.do(func() error { return b.call(t.ctx, http.MethodDelete, "/reservation", nil, nil) })
}

// releaseRooms releases the rooms of the guests of earlier scenes. A refusal does not matter: a hold expires, and a visitor may
// have cancelled the reservation.
func (t *telling) releaseRooms() {
	for ; t.err == nil && len(t.guests) > 0; t.guests = t.guests[1:] {
		b := t.guests[0]
		t.do(func() error {
			if b.Order == "" {
				return unlessRefused(b.call(t.ctx, http.MethodDelete, "/reservation", nil, nil))
			}
			return unlessRefused(t.cancel(b))
		})
	}
}

// cancel cancels a guest's reservation as the administrator, whatever its state, and refunds what is paid.
func (t *telling) cancel(b *booking) error {
	found, err := t.find(b)
	if err != nil || found.BookingStatus == "" {
		return err
	}
	var account any
	if b.Method == virtualAccount && found.BookingStatus == "paid" {
		account = map[string]string{"refundReceiveAccountBank": "20", "refundReceiveAccountNumber": "1002123456789", "refundReceiveAccountHolderName": guestName}
	}
	return t.hq.call(t.ctx, http.MethodDelete, "/admin/reservation/"+found.ID+"?bookingStatus="+found.BookingStatus, account, nil)
}

// Methods of payment, as the sandbox names them.
const (
	card           = "카드"
	virtualAccount = "가상계좌"
)

// pay pays for a held room in the sandbox. With a virtual account the deposit is still to come.
func (t *telling) pay(b *booking, method string) {
	b.Method = method
	t.do(func() error {
		var order struct{ OrderID string }
		if err := b.call(t.ctx, http.MethodPost, "/payment", map[string]any{"amount": b.Price, "name": guestName, "mobileNum": b.Mobile}, &order); err != nil {
			return err
		}
		b.Order = order.OrderID
		var payment struct{ PaymentKey string }
		if err := b.ask(t.ctx, http.MethodPost, t.Sandbox+"/sandbox/payments", map[string]any{"orderId": b.Order, "amount": b.Price, "method": method}, &payment); err != nil {
			return err
		}
		return b.call(t.ctx, http.MethodPost, "/payment/confirm", map[string]any{"paymentKey": payment.PaymentKey, "orderId": b.Order, "amount": b.Price}, nil)
	})
}

// receive waits for the message with the key.
func (t *telling) receive(b *booking) {
	t.await("the message with the key", func() (bool, error) {
		var inbox struct {
			Messages []struct{ Variables map[string]string }
		}
		err := b.ask(t.ctx, http.MethodGet, t.Sandbox+"/sandbox/messages?to="+b.Mobile, nil, &inbox)
		for _, m := range inbox.Messages {
			if key := m.Variables["doorlockKey"]; key != "" {
				b.Key = key
			}
		}
		return b.Key != "", err
	})
}

// buy lets a guest buy a room from now on by card, and waits for the key.
func (t *telling) buy() *booking {
	b := t.hold(0)
	t.pay(b, card)
	t.receive(b)
	return b
}

// opens presses a button that must open its door, and tells it.
func (t *telling) opens(b *booking, door, ko, en string) {
	o := t.press(b, door)
	t.do(func() error {
		if o.Status != "SUCCESS" {
			return fmt.Errorf("the %s door: %s", door, o.Status)
		}
		return nil
	})
	t.tell(ko, en, map[string]string{phone: b.result(door, o)})
}

// types enters digits at the keypad of the guest's room, which must accept them.
func (t *telling) types(b *booking, digits string) {
	t.do(func() error {
		var entry struct {
			Accepted bool
			Reason   string
		}
		keypad := fmt.Sprintf("%s/sim/branches/%s/keypads/%s", t.Simulator, branch, b.door())
		err := b.ask(t.ctx, http.MethodPost, keypad, map[string]string{"digits": digits}, &entry)
		if err == nil && !entry.Accepted {
			err = fmt.Errorf("the keypad: %s", entry.Reason)
		}
		return err
	})
}

// reservation is a guest's reservation as the administrator finds it.
type reservation struct {
	ID            string
	BookingStatus string // empty once it has ended
}

// find finds a guest's reservation as the administrator, who logs in for that.
func (t *telling) find(b *booking) (reservation, error) {
	if t.hq == nil {
		hq := t.newPerson()
		if err := hq.call(t.ctx, http.MethodPost, "/admin/login", administrator, nil); err != nil {
			return reservation{}, err
		}
		t.hq = hq
	}
	var found struct{ Reservations []reservation }
	if err := t.hq.call(t.ctx, http.MethodGet, "/v2/admin/reservations?query="+b.Mobile, nil, &found); err != nil {
		return reservation{}, err
	}
	if len(found.Reservations) != 1 {
		return reservation{}, fmt.Errorf("%d reservations of the guest", len(found.Reservations))
	}
	return found.Reservations[0], nil
}
