package torture

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

var reminders = flag.Int("reminders", 30, "stays whose reminders TestRemindersAfterCrashes sends")

// stays inserts so many paid stays that begin within the hour, each with a guest of its own to whom a confirmation was sent, and as
// many that were cancelled. Their numbers begin with 0103 and 0104.
const stays = `
	with houses as (insert into branch (code, name_ko) select 'house-' || n, '지점' from generate_series(1, ($1::integer + 9) / 10) n returning id),
	rooms as (insert into room (branch_id, no) select h.id, n from houses h, generate_series(1, 10) n returning id, branch_id),
	numbered as (select id, branch_id, row_number() over (order by id) n from rooms),
	stays as (
		insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, name, mobile, mobile_key, method, amount, doorlock_key, paid_at, created_at, canceled_at)
		select r.branch_id, r.id, s.state, 'CUSTOMER', t.at, t.at + interval '1 hour', tstzrange(t.at, t.at + interval '70 minutes'), '손님',
		       s.prefix || lpad(r.n::text, 7, '0'), s.prefix || lpad(r.n::text, 7, '0'), '카드', 1000,
		       case s.state when 'DONE' then gen_random_uuid() end, now() - interval '3 hours', now() - interval '3 hours', case s.state when 'CANCELED' then now() end
		from numbered r, (values ('DONE', '0103'), ('CANCELED', '0104')) s (state, prefix),
		     lateral (select now() + interval '50 minutes' as at) t
		where r.n <= $1
		returning id, branch_id)
	insert into message (reservation_id, branch_id, template, to_mobile, variables, state) select id, branch_id, 'reservation-confirmed', '', '', 'SENT' from stays`

// TestRemindersAfterCrashes kills the service while it sends reminders, again and again: with messages claimed and not sent, with
// messages sent and not marked, and at any other moment. Each stay gets one reminder, two at most, and a cancelled one none.
func TestRemindersAfterCrashes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(*reminders)*time.Second)
	defer cancel()
	r, err := newRig(ctx, t, 0, hurry, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.pool.Exec(ctx, stays, *reminders); err != nil {
		t.Fatal(err)
	}
	dice, service := rand.New(rand.NewPCG(1, 2)), r.replicas[0]
	crashes := max(3, *reminders/10)
	for n := range crashes {
		if n%3 < 2 {
			if err := service.crashAgain([]string{"message.claimed", "message.sent"}[n%3]); err != nil {
				t.Fatalf("crash %d: %v\n%s", n, err, r.tail())
			}
			continue
		}
		if err := service.start(""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(dice.IntN(200)) * time.Millisecond)
		service.kill()
	}
	if err := service.start(""); err != nil {
		t.Fatal(err)
	}
	err = r.until(func() (bool, error) {
		var ended int
		err := r.pool.QueryRow(ctx, `select count(*) from message where template = 'stay-reminder' and state in ('SENT', 'FAILED')`).Scan(&ended)
		return ended >= *reminders, err
	}, "every reminder is sent")
	if err != nil {
		t.Fatalf("%v\n%s", err, r.tail())
	}
	received := map[string]int{}
	for _, m := range r.box.Messages("") {
		if m.Template == "stay-reminder" {
			received[m.To]++
		}
	}
	copies := map[int]int{}
	for n := range *reminders {
		count := received[fmt.Sprintf("0103%07d", n+1)]
		if copies[count]++; count < 1 || count > 2 {
			t.Errorf("the guest of stay %d got %d reminders", n+1, count)
		}
	}
	if len(received) != *reminders {
		t.Errorf("%d guests got reminders, want %d", len(received), *reminders)
	}
	t.Logf("%d stays, %d crashes: %d got one reminder, %d two", *reminders, crashes, copies[1], copies[2])
}
