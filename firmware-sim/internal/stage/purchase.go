package stage

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// branch is the branch in which the scenes play: open around the clock, with keypads of its agent.
const branch = "gangnam"

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

// hold lets a guest reserve the first room that is free for an hour from a slot on.
func (t *telling) hold(start time.Time) *booking {
	b := &booking{person: t.newPerson(), Mobile: fmt.Sprintf("010%08d", rand.IntN(1e8)), Start: start, End: start.Add(stay)}
	t.do(func() error {
		var found struct {
			Rooms []struct {
				RoomNo  string
				Enabled bool
				Pricing struct{ Min60 int }
			}
		}
		if err := b.call(t.ctx, http.MethodGet, "/v2/branches/"+branch+"/reservations?baseHour=0&date="+start.In(seoul).Format(time.DateOnly), nil, &found); err != nil {
			return err
		}
		for _, r := range found.Rooms {
			no, err := strconv.Atoi(r.RoomNo)
			if err != nil || !r.Enabled || r.Pricing.Min60 == 0 {
				continue
			}
			b.Room, b.Price = no, r.Pricing.Min60
			if err := b.reserve(t.ctx); err == nil || unlessRefused(err) != nil {
				return err
			}
		}
		return errors.New("every room is taken; try again in an hour")
	})
	return b
}

func (b *booking) reserve(ctx context.Context) error {
	return b.call(ctx, http.MethodPost, "/reservation", map[string]any{
		"branch": branch, "room": b.Room, "startDateTime": wireTime(b.Start), "endDateTime": wireTime(b.End),
	}, nil)
}

// release gives a held room back.
func (t *telling) release(b *booking) {
	t.do(func() error { return b.call(t.ctx, http.MethodDelete, "/reservation", nil, nil) })
}

// pay pays for a held room in the sandbox, with its names of the methods.
func (t *telling) pay(b *booking, method string) {
	t.do(func() error {
		var order struct{ OrderID string }
		if err := b.call(t.ctx, http.MethodPost, "/payment", map[string]any{"amount": b.Price, "name": "김하늘", "mobileNum": b.Mobile}, &order); err != nil {
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
	if t.err == nil {
		t.stays = append(t.stays, b.Key)
	}
}

// buy lets a guest buy a room from now on by card, and waits for the key.
func (t *telling) buy() *booking {
	b := t.hold(time.Now().Truncate(slot))
	t.pay(b, "카드")
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

// staff sends a request of an administrator about a guest's reservation. address is its path with %s for the id.
func (t *telling) staff(of *booking, method, address string, body any) error {
	hq := t.newPerson()
	if err := hq.call(t.ctx, http.MethodPost, "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil); err != nil {
		return err
	}
	var found struct{ Reservations []struct{ ID string } }
	if err := hq.call(t.ctx, http.MethodGet, "/v2/admin/reservations?query="+of.Mobile, nil, &found); err != nil {
		return err
	}
	if len(found.Reservations) != 1 {
		return fmt.Errorf("%d reservations of the guest", len(found.Reservations))
	}
	return hq.call(t.ctx, method, fmt.Sprintf(address, found.Reservations[0].ID), body, nil)
}
