package alert_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/protocol"
)

// The alert of a guest who has not arrived begins twenty minutes after the start and ends with the first sign of the guest. Only a
// contact that lists its kind receives a message.
func TestNoArrival(t *testing.T) {
	t.Parallel()
	notified := func(f *fixture, id string) {
		f.exec(`insert into message (reservation_id, template, to_mobile, variables, state) values ($1::bigint, 'reservation-confirmed', '010', '', 'SENT')`, id)
	}
	for name, tc := range map[string]struct {
		seen func(f *fixture, id string)
		open bool
	}{
		"nobody":              {func(*fixture, string) {}, true},
		"a press that failed": {func(f *fixture, id string) { f.press(id, "room_1", "FAILED", "branch offline") }, false},
		"the front door":      {func(f *fixture, id string) { f.press(id, "front", "SUCCESS", "") }, false},
		"the PIN": {func(f *fixture, id string) {
			f.exec(`insert into pass_entry (username, journal, entry, branch_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
				select 'agent-gangnam', 'j', 1, branch_id, id, 'room_1', $2, 'opened', '', 'pin', '', '', $2 from reservation where id = $1::bigint`, id, f.now)
		}, false},
		"staff opened": {func(f *fixture, id string) {
			f.exec(`insert into door_request (id, branch_id, requested_by, kind, device, devices, state, created_at, finished_at)
				select $2, branch_id, 'admin:hq', 'room', 'room_1', array['room_1'], 'SUCCESS', clock_timestamp(), clock_timestamp() from reservation where id = $1::bigint`, id, uuid.New())
		}, false},
		"the door moved": {func(f *fixture, _ string) {
			f.events(protocol.Event{Kind: protocol.EventDoorOpened, Device: "room_1"})
		}, false},
		"no lock":    {func(f *fixture, _ string) { f.exec(`update room set lock = 'none'`) }, false},
		"agent away": {func(f *fixture, _ string) { f.offline("gangnam") }, false},
		"stay cancelled": {func(f *fixture, id string) {
			f.exec(`update reservation set state = 'CANCELED' where id = $1::bigint`, id)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.pass(time.Minute)
			id := f.reservation("DONE")
			notified(f, id)
			open := func() bool {
				return f.list(`select count(*)::text from alert where kind = 'no-arrival' and ended_at is null`)[0] == "1"
			}
			f.pass(19 * time.Minute)
			if open() {
				t.Fatal("too early")
			}
			tc.seen(f, id)
			f.pass(2 * time.Minute)
			if open() != tc.open {
				t.Errorf("open %v, want %v", open(), tc.open)
			}
			if !tc.open {
				return
			}
			f.wantMessages()
			f.pass(40 * time.Minute)
			if open() {
				t.Error("open after the stay")
			}
		})
	}
	t.Run("a contact that lists the kind", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.contacts("gangnam", alert.Contact{Name: "점장", Channel: notify.SMS, To: "010-1111-1111", Kinds: []alert.Kind{alert.NoArrival}})
		f.pass(time.Minute)
		notified(f, f.reservation("DONE"))
		f.pass(22 * time.Minute)
		f.wantMessages("alert-began")
	})
	t.Run("a guest who was never notified", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t)
		f.pass(time.Minute)
		f.reservation("DONE")
		f.pass(22 * time.Minute)
		f.wantOpen()
	})
}
