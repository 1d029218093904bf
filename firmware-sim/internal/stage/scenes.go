package stage

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// scenes are the scenes by the name in their address.
var scenes = map[string]func(*telling){
	"open":    buyAndOpen,
	"stuck":   stuckLock,
	"offline": branchOffline,
	"deposit": lateDeposit,
	"move":    moveUnderGuest,
	"race":    twoBuyers,
}

// buyAndOpen: a guest buys a room, receives the key and opens both doors.
func buyAndOpen(t *telling) {
	t.tell("손님이 휴대폰에서 지금 비어 있는 룸을 찾아요.", "A guest looks for a room that is free now.",
		map[string]string{phone: t.Service + "/b/" + branch + "/" + time.Now().In(seoul).Format(time.DateOnly)})
	b := t.hold(0)
	t.tell(fmt.Sprintf("%d번 룸을 한 시간 맡아 두었어요. 이제 아무도 같은 시간을 살 수 없어요.", b.Room),
		fmt.Sprintf("Room %d is held for an hour. No one else can buy that time now.", b.Room), map[string]string{console: t.day(b)})
	t.pay(b, card)
	t.receive(b)
	t.tell(fmt.Sprintf("카드로 %s원을 냈어요. 열쇠가 메시지로 왔어요.", won(b.Price)),
		fmt.Sprintf("The guest paid %s won by card. The key arrived as a message.", won(b.Price)), map[string]string{messages: t.inbox(b)})
	t.tell("메시지의 링크가 열쇠예요. 앱도 회원 가입도 없어요.", "The link in the message is the key: no app, no account.", map[string]string{phone: b.page()})
	t.opens(b, "front", "현관이 열렸어요.", "The front door is open.")
	t.opens(b, "room", fmt.Sprintf("%d번 룸도 열렸어요. 도면에서 문이 움직였어요.", b.Room),
		fmt.Sprintf("Room %d is open, too. The floor plan shows its door.", b.Room))
}

// stuckLock: a lock does not move, and a one-time code opens the door once it is free.
func stuckLock(t *telling) {
	b := t.buy()
	t.breaks("stuck", b.door())
	t.tell(fmt.Sprintf("손님이 %d번 룸의 열쇠를 받았어요. 그런데 잠금장치가 걸려 움직이지 않아요.", b.Room),
		fmt.Sprintf("A guest has the key of room %d, but its lock is stuck.", b.Room), map[string]string{phone: b.page(), messages: t.inbox(b)})
	o := t.press(b, "room")
	t.do(func() error {
		if o.Status != "FAILED" || o.Code == "" {
			return fmt.Errorf("the stuck door: %s", o.Status)
		}
		return nil
	})
	t.tell("문이 열리지 않은 것을 감지선이 알아챘어요. 페이지는 열렸다고 하지 않고 일회용 번호를 보여 줘요.",
		"The sense line noticed that the door did not open. The page says so and shows a one-time code.",
		map[string]string{phone: b.result("room", o), console: t.day(b)})
	t.restore()
	t.types(b, o.Code+"#")
	t.tell("잠금장치가 풀리고, 손님이 키패드에 번호를 누르자 문이 열렸어요. 이 번호는 다시 쓸 수 없어요.",
		"The lock is free again; the guest typed the code at the keypad and the door opened. The code works only once.", nil)
}

// branchOffline: a branch loses its internet, and the PIN of the stay still opens its doors.
func branchOffline(t *telling) {
	b := t.buy()
	var facts struct {
		Online bool
		PIN    *struct {
			Code  string
			Ready bool
		}
	}
	read := func() error { return b.call(t.ctx, http.MethodGet, "/v2/keys/"+b.Key, nil, &facts) }
	var pin string
	t.await("the PIN of the stay", func() (bool, error) {
		err := read()
		if facts.PIN != nil && facts.PIN.Ready {
			pin = facts.PIN.Code
		}
		return pin != "", err
	})
	t.tell("손님의 열쇠 페이지에는 키패드 비밀번호도 있어요. 지점의 라즈베리 파이도 이 번호를 알아요.",
		"The key page has a PIN, too, and the Raspberry Pi of the branch knows it.", map[string]string{phone: b.page(), messages: t.inbox(b)})
	t.breaks("network-cut", "")
	t.tell("지점의 인터넷이 끊겼어요. 서비스가 알아챌 때까지 잠깐 기다려요.", "The branch has lost its internet. The service needs a moment to notice.",
		map[string]string{console: t.Service + "/console"})
	t.await("the branch to be offline", func() (bool, error) { err := read(); return !facts.Online, err })
	t.tell("열쇠 페이지가 연결이 끊겼다고 솔직하게 알려요.", "The key page says plainly that the branch is offline.", map[string]string{phone: b.page() + "?offline"})
	t.types(b, pin+"#")
	t.tell("손님이 키패드에 비밀번호를 눌렀고, 인터넷 없이 문이 열렸어요.", "The guest typed the PIN, and the door opened without internet.", nil)
	t.restore()
	t.await("the branch to be back", func() (bool, error) { err := read(); return facts.Online, err })
	t.tell("인터넷이 돌아왔어요. 그동안의 문 열림도 기록에 들어왔어요.", "The internet is back, and the record has the opening of the meantime.",
		map[string]string{phone: b.page(), console: t.Service + "/console/" + branch + "/doors"})
}

// lateDeposit: money arrives while a cancellation has failed at the provider, so the guest gets what they paid for.
func lateDeposit(t *telling) {
	b := t.hold(2 * stay)
	t.pay(b, virtualAccount)
	t.tell(fmt.Sprintf("손님이 %d번 룸을 잡고 가상계좌로 %s원을 보내기로 했어요.", b.Room, won(b.Price)),
		fmt.Sprintf("A guest took room %d and will transfer %s won to a virtual account.", b.Room, won(b.Price)), map[string]string{messages: t.inbox(b), console: t.day(b)})
	t.do(func() error { return t.cancelInDoubt(b) })
	t.tell("입금이 늦어져 직원이 취소를 눌렀지만, 결제사가 계좌를 닫지 못했어요. 서비스는 취소됐다고 말하지 않고 그 시간을 지켜요.",
		"The transfer is late and staff cancel, but the provider fails to close the account. The service does not claim a cancellation and keeps the time.",
		map[string]string{messages: t.Sandbox + "/#calls"})
	t.do(func() error {
		return b.ask(t.ctx, http.MethodPost, t.Sandbox+"/sandbox/deposits", map[string]string{"orderId": b.Order}, nil)
	})
	t.restore()
	t.receive(b)
	t.tell("바로 그때 돈이 들어왔어요. 돈과 예약은 어긋나지 않아요. 예약이 확정되고 손님은 열쇠를 받았어요.",
		"Just then the money arrives. Money and reservation agree: the stay is confirmed, and the guest has the key.",
		map[string]string{messages: t.inbox(b), phone: b.page(), console: t.day(b)})
}

// cancelInDoubt cancels as the administrator while the provider fails, so that the outcome is unknown. The service tries
// again after some seconds, so the provider fails until the scene restores it, after the deposit.
func (t *telling) cancelInDoubt(b *booking) error {
	const times = 1000
	fault := map[string]any{"target": "cancel", "kind": "error", "status": 500, "times": times}
	if err := b.ask(t.ctx, http.MethodPost, t.sandboxFaults(), fault, nil); err != nil {
		return err
	}
	err := t.cancel(b)
	if refused := (*refusal)(nil); !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable || refused.ErrorType != "PaymentPendingException" {
		return fmt.Errorf("the cancellation has an outcome, want none: %w", cmp.Or(err, errors.New("success")))
	}
	var left struct{ Faults []struct{ Times int } }
	if err := b.ask(t.ctx, http.MethodGet, t.sandboxFaults(), nil, &left); err != nil {
		return err
	}
	if len(left.Faults) != 1 || left.Faults[0].Times >= times {
		return fmt.Errorf("the provider has the faults %+v left, want one that was used", left.Faults)
	}
	return nil
}

// moveUnderGuest: staff move a stay while the guest looks at the key page.
func moveUnderGuest(t *telling) {
	b := t.buy()
	t.tell(fmt.Sprintf("손님이 %d번 룸의 열쇠 페이지를 보고 있어요.", b.Room), fmt.Sprintf("A guest looks at the key page of room %d.", b.Room),
		map[string]string{phone: b.page(), console: t.day(b)})
	old := b.Room
	t.move(b)
	t.tell(fmt.Sprintf("직원이 예약을 %d번에서 %d번 룸으로 옮겼어요. 손님은 메시지를 받고, 페이지는 바뀐 룸을 말해요.", old, b.Room),
		fmt.Sprintf("Staff moved the stay from room %d to room %d. The guest gets a message, and the page names the new room.", old, b.Room),
		map[string]string{phone: b.page() + "?fresh=moved", messages: t.inbox(b)})
	t.opens(b, "room", fmt.Sprintf("같은 열쇠로 %d번 룸이 열렸어요. 옛 룸은 이제 열리지 않아요.", b.Room),
		fmt.Sprintf("The same key opens room %d. It no longer opens the old one.", b.Room))
}

// move moves a stay to another room as the administrator.
func (t *telling) move(b *booking) {
	t.do(func() error {
		found, err := t.find(b)
		if err != nil {
			return err
		}
		return t.firstFree(clock(b.Start), b.Room, func(r room) error {
			b.Room = r.No
			return t.hq.call(t.ctx, http.MethodPut, "/admin/reservation/"+found.ID, map[string]any{
				"room": strconv.Itoa(r.No), "startDateTime": wireTime(b.Start), "endDateTime": wireTime(b.End),
			}, nil)
		})
	})
}

// twoBuyers: two guests want the same slot at the same time.
func twoBuyers(t *telling) {
	free := t.hold(3 * stay)
	t.release(free)
	at := clock(free.Start)
	t.tell(fmt.Sprintf("두 손님이 같은 순간에 %d번 룸 %s를 눌러요.", free.Room, at),
		fmt.Sprintf("Two guests press room %d at %s in the same instant.", free.Room, at), map[string]string{console: t.day(free)})
	var buyers [2]*booking
	var outcomes [2]error
	t.do(func() error {
		var racers sync.WaitGroup
		for i := range buyers {
			buyer := *free
			buyer.person = t.newPerson()
			buyers[i] = &buyer
			racers.Go(func() { outcomes[i] = buyer.reserve(t.ctx) })
		}
		racers.Wait()
		t.guests = append(t.guests, buyers[:]...)
		won, lost := outcomes[0], outcomes[1]
		if won != nil {
			won, lost = lost, won
		}
		if won != nil || !refusedWith(lost, http.StatusConflict) {
			return fmt.Errorf("two buyers without exactly one refusal: %w", cmp.Or(errors.Join(outcomes[:]...), errors.New("both hold the room")))
		}
		return nil
	})
	t.tell("한 손님만 시간을 얻었어요. 다른 손님은 바로 알게 되고, 돈은 움직이지 않았어요.",
		"One guest got the time. The other one knows at once, and no money moved.", nil)
}
