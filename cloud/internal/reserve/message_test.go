package reserve_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/queue"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// TestMessagesThroughFaults loses responses of the message provider, or has it fail for a while: the guest receives the
// message once or twice. The audit counts the messages.
func TestMessagesThroughFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]sandbox.Fault{
		"answer lost":       {Kind: sandbox.FaultDropAfterCommit},
		"answer lost twice": {Kind: sandbox.FaultDropAfterCommit, Times: 2},
		"down for a while":  {Kind: sandbox.FaultError, Status: 503, Times: 1},
		"slow":              {Kind: sandbox.FaultSlow, Delay: time.Second},
		"never comes there": {Kind: sandbox.FaultTimeout, Delay: time.Second, Times: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			fault.Target = sandbox.TargetMessages
			s.fault(t, fault)
			s.bought(t, sandbox.MethodCard)
			s.eventually(t, "the guest is notified", func() bool {
				return s.count(t, `select count(*) from message where state in ('SENT', 'FAILED')`) == 1
			})
		})
	}
}

// TestTemplateOfANewerRelease: during an upgrade, a replica of the last release claims a message whose template only the new release has.
// It leaves the message to a replica of the new one.
func TestTemplateOfANewerRelease(t *testing.T) {
	t.Parallel()
	s := open(t)
	newer := queue.Message{Template: "of-a-newer-release", Mobile: "01011112222"}
	err := s.DB.InTx(s.ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return s.Replica(t).Queue.Message(ctx, tx, newer)
	})
	if err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "an attempt", func() bool {
		return s.count(t, `select count(*) from message where error is not null and template = $1`, newer.Template) == 1
	})
	if n := s.count(t, `select count(*) from message where state = 'QUEUED' and next_at > created_at and template = $1`, newer.Template); n != 1 {
		t.Error("the message has been given up, want another attempt")
	}
	s.exec(t, `update message set state = 'SENT' where template = 'of-a-newer-release'`) // by a replica of the new release
}

// TestNoMessageBeforeCommit: if the confirming transaction fails at its last statement, no message is sent.
func TestNoMessageBeforeCommit(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.exec(t, `create function no() returns trigger language plpgsql as 'begin raise exception ''no''; end'`)
	s.exec(t, `create constraint trigger no after insert on message deferrable initially deferred for each row execute function no()`)
	b, order, w := s.order(t, sandbox.MethodCard)
	s.answer(t, b, "/payment/confirm", order, 503, "PaymentPendingException")
	s.wantState(t, order.OrderID, "CONFIRMING")
	if messages := s.Sandbox.Messages(w.Mobile); len(messages) > 0 {
		t.Errorf("notified before the commit: %v", messages)
	}
	s.exec(t, `drop trigger no on message`)
	s.await(t, order.OrderID, "DONE")
	s.answer(t, b, "/payment/confirm", order, 200, "")
}

// changeKey gives the guest another key.
func (s *shop) changeKey(t *testing.T, g guest) {
	t.Helper()
	hq := account.Principal{LoginType: account.LoginAdmin, AdminLoginID: "hq", Role: account.HQ}
	if _, err := s.Replica(t).RotateKey(s.ctx, booking.ReservationID(g.id), "분실", hq); err != nil {
		t.Fatal(err)
	}
}

// TestOldKeyIsNotSent changes the key while the message with the previous one waits for another attempt, or cancels the
// stay: that message is not sent any more.
func TestOldKeyIsNotSent(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(t *testing.T, s *shop, g guest){
		"key-changed": func(t *testing.T, s *shop, g guest) { s.changeKey(t, g) },
		"reservation-canceled": func(t *testing.T, s *shop, g guest) {
			by := account.Principal{LoginType: booking.LoginMobile, LoginID: g.wish.Mobile}
			if err := s.Replica(t).Cancel(s.ctx, reserve.CancelRequest{ID: booking.ReservationID(g.id), By: by, Reason: "변심"}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.fault(t, sandbox.Fault{Target: sandbox.TargetMessages, Kind: sandbox.FaultError, Status: 503, Times: -1})
			g := s.guest(t, sandbox.MethodCard)
			s.eventually(t, "the message waits", func() bool {
				return s.count(t, `select count(*) from message where state = 'QUEUED' and attempt = 1 and template = 'reservation-confirmed' and reservation_id = $1`, g.id) == 1
			})
			change(t, s, g)
			s.Sandbox.ClearFaults()
			s.eventually(t, "no message waits", func() bool {
				return s.count(t, `select count(*) from message where state in ('QUEUED', 'SENDING') and reservation_id = $1`, g.id) == 0
			})
			if got := s.messages(g.wish.Mobile); !slices.Equal(got, []string{want}) {
				t.Errorf("messages %v, want %s only", got, want)
			}
		})
	}
}

// TestOvertakenMessages keeps messages waiting for the provider until another event has made them wrong. The guest receives the later
// messages only.
func TestOvertakenMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		overtake func(t *testing.T, s *shop) (mobile string)
		want     []string
		others   []string // that the guest may receive, too
	}{
		"a reminder with another key": {func(t *testing.T, s *shop) string {
			g := s.guest(t, sandbox.MethodCard)
			s.noneWaits(t)
			s.messagesFail(t)
			s.Clock.Stop(g.wish.Start.Add(-59 * time.Minute))
			s.waits(t, "stay-reminder")
			s.changeKey(t, g)
			return g.wish.Mobile
		}, []string{"reservation-confirmed", "key-changed"}, nil},
		"an account that was canceled": {func(t *testing.T, s *shop) string {
			s.messagesFail(t)
			_, order, w := s.bought(t, sandbox.MethodVirtualAccount)
			s.waits(t, "virtual-account-issued")
			by := account.Principal{LoginType: booking.LoginMobile, LoginID: w.Mobile}
			id := s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT")
			if err := s.Replica(t).Cancel(s.ctx, reserve.CancelRequest{ID: booking.ReservationID(id), By: by, Reason: "변심"}); err != nil {
				t.Fatal(err)
			}
			return w.Mobile
		}, []string{"reservation-ended"}, nil},
		"a deposit that arrives again": {func(t *testing.T, s *shop) string {
			s.messagesFail(t)
			_, order, w := s.bought(t, sandbox.MethodVirtualAccount)
			s.deposit(t, order.OrderID)
			s.waits(t, "deposit-confirmed")
			s.reverse(t, order.OrderID)
			s.waits(t, "deposit-reversed")
			s.deposit(t, order.OrderID)
			s.wantState(t, order.OrderID, "DONE")
			return w.Mobile
		}, []string{"deposit-confirmed"}, nil},
		"a link for a refund that has grown": {func(t *testing.T, s *shop) string {
			o := s.outage(t, "null", sandbox.MethodVirtualAccount)
			s.noneWaits(t)
			s.messagesFail(t)
			s.compensating(t, `{"afterMinutes":3,"wonPerMinute":200,"fullAfterMinutes":20}`)
			o.compensates(t, 3*time.Minute)
			s.waits(t, "refund-account")
			o.compensates(t, 20*time.Minute)
			return o.guest.wish.Mobile
		}, []string{"refund-account"}, []string{"virtual-account-issued", "deposit-confirmed", "stay-pin", "stay-door-failed", "stay-not-arrived"}},
		"a link for a refund that staff have made": {func(t *testing.T, s *shop) string {
			order, id := s.endedUnpaid(t)
			s.noneWaits(t)
			s.messagesFail(t)
			s.deposit(t, order)
			s.waits(t, "refund-account")
			if err := s.Replica(t).RetryRefund(s.ctx, reserve.RetryRefundRequest{ID: booking.ReservationID(id), Account: &guestAccount, By: hq}); err != nil {
				t.Fatal(err)
			}
			s.refundsDone(t, id)
			return s.mobile(t, id)
		}, []string{"refund-completed"}, []string{"virtual-account-issued", "deposit-overdue", "reservation-ended"}},
		"an extension of a stay that was canceled": {func(t *testing.T, s *shop) string {
			g, order := s.extendedUnnoticed(t)
			if err := s.Replica(t).AdminCancel(s.ctx, reserve.AdminCancelRequest{ID: booking.ReservationID(g.id), Status: "DONE", By: hq}); err != nil {
				t.Fatal(err)
			}
			s.await(t, order, "CANCELED")
			return g.wish.Mobile
		}, []string{"reservation-canceled", "reservation-canceled"}, []string{"reservation-confirmed"}},
		"an extension of a stay that was moved": {func(t *testing.T, s *shop) string {
			g, _ := s.extendedUnnoticed(t)
			start := g.wish.Start.Add(24 * time.Hour)
			err := s.Replica(t).Move(s.ctx, reserve.MoveRequest{ID: booking.ReservationID(g.id), Room: g.wish.Room, Times: local(start, start.Add(time.Hour)), By: hq})
			if err != nil {
				t.Fatal(err)
			}
			return g.wish.Mobile
		}, []string{"reservation-moved"}, []string{"reservation-confirmed"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			mobile := c.overtake(t, s)
			s.eventually(t, "no attempt began before that event", func() bool {
				return s.count(t, `select count(*) from message where state = 'SENDING'`) == 0
			})
			s.Sandbox.ClearFaults()
			s.noneWaits(t)
			got := slices.DeleteFunc(s.messages(mobile), func(m string) bool { return slices.Contains(c.others, m) })
			if !slices.Equal(got, c.want) {
				t.Errorf("messages %v, want %v", got, c.want)
			}
		})
	}
}

// extendedUnnoticed returns a guest who has paid an extension, and its order. The message about it waits for the provider.
func (s *shop) extendedUnnoticed(t *testing.T) (g guest, orderID string) {
	t.Helper()
	g = s.guest(t, sandbox.MethodCard)
	s.noneWaits(t)
	s.messagesFail(t)
	order := g.hold(t, s, g.end().Add(30*time.Minute))
	s.pay(t, g.Buyer, order, sandbox.MethodCard)
	s.waits(t, "stay-extended")
	return g, order.OrderID
}

// mobile returns the phone number of a reservation.
func (s *shop) mobile(t *testing.T, id int64) (mobile string) {
	t.Helper()
	if err := s.DB.Pool.QueryRow(s.ctx, `select mobile from reservation where id = $1`, id).Scan(&mobile); err != nil {
		t.Fatal(err)
	}
	return mobile
}

// messagesFail has the provider take no message.
func (s *shop) messagesFail(t *testing.T) {
	t.Helper()
	s.fault(t, sandbox.Fault{Target: sandbox.TargetMessages, Kind: sandbox.FaultError, Status: 503, Times: -1})
}

// waits waits until a message waits for another attempt.
func (s *shop) waits(t *testing.T, template string) {
	t.Helper()
	s.eventually(t, template+" waits", func() bool {
		return s.count(t, `select count(*) from message where state = 'QUEUED' and attempt > 0 and template = $1`, template) > 0
	})
}

// noneWaits waits until all messages are sent, or are not to be sent any more.
func (s *shop) noneWaits(t *testing.T) {
	t.Helper()
	s.eventually(t, "no message waits", func() bool {
		return s.count(t, `select count(*) from message where state in ('QUEUED', 'SENDING')`) == 0
	})
}

// TestKeyForNumberAndAddressIsRetried: both messages of a corrected address are sent, although one was created after the other.
func TestKeyForNumberAndAddressIsRetried(t *testing.T) {
	t.Parallel()
	s := open(t)
	g := s.guest(t, sandbox.MethodCard)
	s.noneWaits(t)
	s.messagesFail(t)
	address := "corrected@mail.example"
	err := s.Replica(t).CorrectContact(s.ctx, reserve.ContactCorrection{ID: booking.ReservationID(g.id), Email: &address, Reason: "오타", By: hq})
	if err != nil {
		t.Fatal(err)
	}
	s.eventually(t, "both messages wait", func() bool {
		return s.count(t, `select count(*) from message where state = 'QUEUED' and attempt > 0 and template = $1`, "key-changed") == 2
	})
	s.Sandbox.ClearFaults()
	s.noneWaits(t)
	for _, to := range []string{address, g.wish.Mobile} {
		if got := s.messages(to); !slices.Contains(got, "key-changed") {
			t.Errorf("messages to %s: %v, want key-changed", to, got)
		}
	}
}

// TestCorrectedContactLearnsOfTheRefund: a message about a returned part waits while the contact is corrected. The corrected contact receives
// it, and the previous one does not.
func TestCorrectedContactLearnsOfTheRefund(t *testing.T) {
	t.Parallel()
	s := open(t)
	const mobile = "010-9999-5544"
	g := s.guest(t, sandbox.MethodCard)
	s.noneWaits(t)
	s.messagesFail(t)
	if _, err := s.Replica(t).RefundPart(s.ctx, part(g.id, 1000)); err != nil {
		t.Fatal(err)
	}
	s.waits(t, "part-refunded")
	s.eventually(t, "no attempt is being made", func() bool {
		return s.count(t, `select count(*) from message where state = 'SENDING'`) == 0
	})
	s.correctedTo(t, g.id, mobile)
	s.Sandbox.ClearFaults()
	s.noneWaits(t)
	for to, want := range map[string][]string{mobile: {"key-changed", "part-refunded"}, g.wish.Mobile: {"reservation-confirmed"}} {
		if got := slices.Sorted(slices.Values(s.messages(to))); !slices.Equal(got, want) {
			t.Errorf("messages to %s: %v, want %v", to, got, want)
		}
	}
}

// TestClaimedMessageAfterACorrection: the contact is corrected while a sender has claimed messages to the previous one, and then fails. They are
// not tried again: the corrected contact receives the account that awaits the deposit, and the message about the refund.
func TestClaimedMessageAfterACorrection(t *testing.T) {
	t.Parallel()
	const mobile = "010-9999-5533"
	for template, begin := range map[string]func(*testing.T, *shop) (id int64, previous string){
		"part-refunded": func(t *testing.T, s *shop) (int64, string) {
			g := s.guest(t, sandbox.MethodCard)
			s.noneWaits(t)
			s.messagesFail(t)
			if _, err := s.Replica(t).RefundPart(s.ctx, part(g.id, 1000)); err != nil {
				t.Fatal(err)
			}
			return g.id, g.wish.Mobile
		},
		"virtual-account-issued": func(t *testing.T, s *shop) (int64, string) {
			s.messagesFail(t)
			_, order, wish := s.bought(t, sandbox.MethodVirtualAccount)
			return s.wantState(t, order.OrderID, "WAITING_FOR_DEPOSIT"), wish.Mobile
		},
	} {
		t.Run(template, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			id, previous := begin(t, s)
			s.waits(t, template)
			s.eventually(t, "a sender claims the message", func() bool {
				return s.count(t, `with claimed as (
					update message set state = 'SENDING', next_at = $2::timestamptz + interval '1 hour'
					where template = $1 and state = 'QUEUED' returning 1) select count(*) from claimed`, template, s.Clock.Now()) == 1
			})
			s.correctedTo(t, id, mobile)
			s.Sandbox.ClearFaults()
			s.exec(t, `update message set next_at = $1 where state = 'SENDING'`, s.Clock.Now()) // the sender has crashed
			s.noneWaits(t)
			if got := s.messages(mobile); !slices.Contains(got, template) {
				t.Errorf("messages to the corrected contact: %v, want %s", got, template)
			}
			if got := s.messages(previous); slices.Contains(got, template) {
				t.Errorf("messages to the previous contact: %v, want no %s", got, template)
			}
		})
	}
}

// TestMessagesKeepTheirOrder changes the key twice while the provider is slow: the latest key arrives last.
func TestMessagesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetMessages, Kind: sandbox.FaultSlow, Delay: time.Second, Times: 1})
	g := s.guest(t, sandbox.MethodCard)
	s.eventually(t, "the message is being sent", func() bool {
		return s.count(t, `select count(*) from message where state = 'SENDING' and reservation_id = $1`, g.id) == 1
	})
	s.changeKey(t, g)
	s.changeKey(t, g)
	s.eventually(t, "three messages", func() bool { return len(s.messages(g.wish.Mobile)) == 3 })
	if got := s.messages(g.wish.Mobile); !strings.HasPrefix(got[0], "reservation-confirmed") || got[1] != "key-changed" || got[2] != "key-changed" {
		t.Errorf("messages %v", got)
	}
	if last := s.Sandbox.Messages(g.wish.Mobile)[2]; !strings.Contains(last.Text, s.key(t, g.id)) {
		t.Errorf("the last message does not have the key of the stay: %s", last.Text)
	}
}

// TestKeyIsMailed has the message provider refuse a key for two minutes: then it is sent to the e-mail address.
func TestKeyIsMailed(t *testing.T) {
	t.Parallel()
	s := open(t)
	fail := func(requests int) {
		t.Helper()
		s.fault(t, sandbox.Fault{Target: sandbox.TargetMessages, Kind: sandbox.FaultError, Status: 503, Times: requests})
	}
	fail(-1)
	g := s.guest(t, sandbox.MethodCard)
	s.exec(t, `update reservation set email = 'guest@example.com', email_key = 'guest@example.com' where id = $1`, g.id)
	s.exec(t, `update message set to_email = 'guest@example.com' where reservation_id = $1`, g.id)
	s.eventually(t, "the last attempt by phone", func() bool {
		return s.count(t, `select count(*) from message where reservation_id = $1 and state = 'QUEUED' and attempt = 5`, g.id) == 1
	})
	s.Sandbox.ClearFaults()
	fail(phoneRequests) // not the mail, which is the same sandbox's
	s.eventually(t, "the key is mailed", func() bool {
		return s.count(t, `select count(*) from message where reservation_id = $1 and state = 'SENT' and channel = 'mail'`, g.id) == 1
	})
	if mails := s.Sandbox.Messages("guest@example.com"); len(mails) != 1 || !strings.Contains(mails[0].Text, g.key) {
		t.Errorf("mails %v, want one with the key", mails)
	}
}

// phoneRequests is the number of requests in an attempt to send a message to a phone.
const phoneRequests = 2

// TestKeySurvivesALongOutage has the message provider refuse everything for an hour: the guest receives the key as soon as it is back.
func TestKeySurvivesALongOutage(t *testing.T) {
	t.Parallel()
	s := open(t)
	s.fault(t, sandbox.Fault{Target: sandbox.TargetMessages, Kind: sandbox.FaultError, Status: 503, Times: -1})
	g := s.guest(t, sandbox.MethodCard)
	for attempt := range 12 {
		s.eventually(t, "another attempt", func() bool {
			return s.count(t, `select count(*) from message where reservation_id = $1 and state = 'QUEUED' and attempt > $2`, g.id, attempt) == 1
		})
		s.Clock.Advance(5 * time.Minute)
	}
	s.Sandbox.ClearFaults()
	s.eventually(t, "the key arrives", func() bool { return len(s.messages(g.wish.Mobile)) > 0 })
	if last := s.Sandbox.Messages(g.wish.Mobile)[0]; !strings.Contains(last.Text, g.key) {
		t.Errorf("the message does not have the key of the stay: %s", last.Text)
	}
}
