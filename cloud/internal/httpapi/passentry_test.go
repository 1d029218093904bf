package httpapi_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
	"github.com/yeolda/yeolda/protocol"
)

// TestEntriesAreStoredOnce sends a journal twice and expects each entry once in the door history, with the agent's time.
func TestEntriesAreStoredOnce(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	a, _ := listedKey(t, s)
	at := s.Clock.Now().Add(-20 * time.Minute)
	pass := a.List().Passes[0].Pass
	entries := []protocol.PassEntry{
		a.Enter(protocol.PassEntry{Pass: pass, Device: "front_1", At: at, Outcome: protocol.EntryOpened, Source: protocol.SourcePIN}),
		a.Enter(protocol.PassEntry{Device: "room_3", At: at.Add(time.Second), Outcome: protocol.EntryRefused, Reason: protocol.ReasonWrong, Source: protocol.SourcePIN}),
		a.Enter(protocol.PassEntry{Pass: pass, Device: "room_3", At: at.Add(2 * time.Second), Outcome: protocol.EntryOpened, Source: protocol.SourcePIN}),
	}
	for _, e := range append(entries, entries...) {
		if err := a.Publish(e); err != nil {
			t.Fatal(err)
		}
	}
	a.Until(t, "all entries acknowledged", func() bool { return len(a.Acked()) == 6 })
	var doors struct {
		Events []struct {
			At            time.Time
			Device, Kind  string
			Source        *string
			ReservationID *string
		}
	}
	cast.Manager.Get("/v2/admin/branches/gangnam/doors").OK(t).Into(t, &doors)
	var got []string
	for _, e := range doors.Events {
		if e.Source != nil && *e.Source == "pin" {
			got = append(got, fmt.Sprint(e.Device, " ", e.Kind, " ", e.At.Equal(at.UTC().Truncate(time.Millisecond)), " ", e.ReservationID != nil))
		}
	}
	want := []string{"room_3 pass-opened false true", "room_3 pass-refused false false", "front_1 pass-opened true true"}
	if !slices.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if n := count(t, s, `select count(*) from pass_journal where broken is not null`); n != 0 {
		t.Error("the chain counts as broken")
	}
	// An entry that denies what was said before breaks the chain.
	denied := entries[2]
	denied.Outcome = protocol.EntryRefused
	denied.Hash = denied.Chain()
	next := a.Enter(protocol.PassEntry{Device: "room_3", At: at.Add(time.Minute), Outcome: protocol.EntryRefused, Reason: protocol.ReasonWrong, Source: protocol.SourcePIN})
	next.Previous = denied.Hash
	next.Hash = next.Chain()
	if err := a.Publish(next); err != nil {
		t.Fatal(err)
	}
	a.Until(t, "the entry acknowledged", func() bool { return len(a.Acked()) == 7 })
	if n := count(t, s, `select count(*) from alert where kind = 'discrepancy' and branch = 'gangnam' and ended_at is null`); n != 1 {
		t.Errorf("alerts about a broken chain: got %d, want 1", n)
	}
}

// acknowledged sends an entry and waits until the service has acknowledged it.
func acknowledged(t *testing.T, a *agenttest.Agent, entry protocol.PassEntry) {
	t.Helper()
	e := a.Enter(entry)
	if err := a.Publish(e); err != nil {
		t.Fatal(err)
	}
	a.Until(t, "the acknowledgement", func() bool { got := a.Acked(); return len(got) > 0 && got[len(got)-1].Entry == e.Entry })
}

// TestEntryAfterRefund delivers an entry by the pass of a guest whose stay was refunded while the branch was offline: it is a
// discrepancy with an alert, and moves no money.
func TestEntryAfterRefund(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	a, _ := listedKey(t, s)
	pass := a.List().Passes[0].Pass
	enter := func(at time.Time, outcome protocol.EntryOutcome) {
		t.Helper()
		acknowledged(t, a, protocol.PassEntry{Pass: pass, Device: "room_3", At: at, Outcome: outcome, Source: protocol.SourcePIN})
	}
	differences := func() int {
		return count(t, s, `select count(*) from reconciliation_difference where kind = 'entered-after-refund' and resolved_at is null`)
	}
	a.Fail(agenttest.Faults{IgnoreLists: true})
	id := live(t, s, 3)
	before := s.Clock.Now()
	cast.HQ.Delete("/admin/reservation/"+id+"?bookingStatus=paid", map[string]string{"reason": "테스트"}).OK(t)
	enter(before.Add(-time.Minute), protocol.EntryOpened)
	enter(s.Clock.Now().Add(time.Second), protocol.EntryRefused)
	if n := differences(); n != 0 {
		t.Fatalf("%d discrepancies before an entry after the refund", n)
	}
	refunds := count(t, s, `select count(*) from refund`)
	enter(s.Clock.Now().Add(time.Second), protocol.EntryOpened)
	if n := differences(); n != 1 {
		t.Errorf("%d discrepancies, want 1", n)
	}
	if n := count(t, s, `select count(*) from refund`); n != refunds {
		t.Errorf("%d refunds, want %d", n, refunds)
	}
	alerts := func() int {
		return count(t, s, `select count(*) from alert where kind = 'discrepancy' and ended_at is null`)
	}
	if n := alerts(); n != 1 {
		t.Errorf("%d alerts, want 1", n)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update reconciliation_difference set resolved_at = now(), resolved_by = 'hq', resolution = 'x'`); err != nil {
		t.Fatal(err)
	}
	if n := alerts(); n != 0 {
		t.Errorf("%d alerts after the discrepancy was resolved, want 0", n)
	}
}

// TestEntryAfterTheEndOfARegisteredStay expects the discrepancy of a reservation without an order in the lists and alerts of its branch.
func TestEntryAfterTheEndOfARegisteredStay(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	a := keypadAgent(t, s)
	register(t, cast.Manager, 3, cast.start)
	id := reservationAt(t, s, 3, cast.start)
	pass := only(t, s, `select id::text from pass where reservation_id = $1 and ended_at is null`, id)
	cast.Manager.Delete("/admin/reservation/"+id+"?bookingStatus=paid", map[string]string{"reason": "테스트"}).OK(t)
	acknowledged(t, a, protocol.PassEntry{Pass: pass, Device: "room_3", At: s.Clock.Now().Add(time.Second), Outcome: protocol.EntryOpened, Source: protocol.SourcePIN})
	var queue struct {
		Items []struct{ Kind, Branch, ReservationID string }
	}
	cast.Manager.Get("/v2/admin/money-desk").OK(t).Into(t, &queue)
	if len(queue.Items) != 1 || queue.Items[0].Kind != "entered-after-refund" || queue.Items[0].Branch != "gangnam" || queue.Items[0].ReservationID != id {
		t.Errorf("queue of the manager: %+v, want the entry after the end of reservation %s", queue.Items, id)
	}
	if n := count(t, s, `select count(*) from alert where kind = 'discrepancy' and branch = 'gangnam' and ended_at is null`); n != 1 {
		t.Errorf("%d alerts of the branch, want 1", n)
	}
	if _, err := s.DB.Pool.Exec(t.Context(), `update reconciliation_difference set resolved_at = now(), resolved_by = 'hq', resolution = 'x'`); err != nil {
		t.Fatal(err)
	}
	if n := count(t, s, `select count(*) from alert where kind = 'discrepancy' and ended_at is null`); n != 0 {
		t.Errorf("%d alerts after the discrepancy was resolved, want 0", n)
	}
}

// TestEntryAfterRefundOfAnExtension expects a discrepancy if a guest enters in the time of an extension that was refunded: an agent that is
// offline still has the pass with the longer window.
func TestEntryAfterRefundOfAnExtension(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	cast := newCast(t, s)
	a := keypadAgent(t, s)
	id, key := cast.running(t)
	end := cast.start.Add(time.Hour)
	extend(t, s, s.Client(t), key, end.Add(time.Hour))
	pass := only(t, s, `select id::text from pass where reservation_id = $1 and ended_at is null`, id)
	extension := only(t, s, `select id::text from reservation where extends = $1 and state = 'DONE'`, id)
	entered := func(at time.Time) (discrepancies int) {
		t.Helper()
		acknowledged(t, a, protocol.PassEntry{Pass: pass, Device: "room_1", At: at, Outcome: protocol.EntryOpened, Source: protocol.SourcePIN})
		return count(t, s, `select count(*) from reconciliation_difference where kind = 'entered-after-refund'`)
	}
	if n := entered(end.Add(20 * time.Minute)); n != 0 {
		t.Errorf("entry during the paid extension: %d discrepancies", n)
	}
	var record struct {
		Stay    *struct{ ByKey *string }
		Movable bool
	}
	cast.HQ.Get("/v2/admin/reservations/"+extension).OK(t).Into(t, &record)
	if record.Stay == nil || record.Movable {
		t.Errorf("the record of the extension is %+v, want the visit of the stay, with which it moves", record)
	}
	cast.HQ.Delete("/admin/reservation/"+extension+"?bookingStatus=paid", map[string]string{"reason": "테스트"}).OK(t)
	if n := entered(end.Add(-10 * time.Minute)); n != 0 {
		t.Errorf("entry in the time that is still paid: %d discrepancies", n)
	}
	if n := entered(end.Add(30 * time.Minute)); n != 1 {
		t.Errorf("entry in the time of the refunded extension: %d discrepancies, want 1", n)
	}
}

// TestEntriesOvertakeEachOther publishes a journal out of order: the entries are acknowledged with their predecessors and break
// no chain. A gap that stays for a minute is a discrepancy.
func TestEntriesOvertakeEachOther(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a := keypadAgent(t, s)
	entries := wrongPINs(s, a, 6)
	// publish sends an entry and waits for its row.
	publish := func(n int) {
		t.Helper()
		if err := a.Publish(entries[n-1]); err != nil {
			t.Fatal(err)
		}
		until(t, "the entry is stored", func() bool {
			return count(t, s, fmt.Sprintf(`select count(*) from pass_entry where entry = %d`, n)) == 1
		})
	}
	acked := func(upTo uint64) {
		t.Helper()
		a.Until(t, "the acknowledgement", func() bool {
			got := a.Acked()
			return len(got) > 0 && got[len(got)-1].Entry == upTo
		})
	}
	broken := func() int {
		return count(t, s, `select count(*) from alert where kind = 'discrepancy'`) + count(t, s, `select count(*) from pass_journal where broken is not null`)
	}
	for _, n := range []int{3, 2, 3, 1} {
		publish(n)
	}
	acked(3)
	publish(6)
	publish(6)
	publish(4)
	acked(4)
	if broken() != 0 {
		t.Fatal("entries that overtook each other break the chain")
	}
	s.Clock.Advance(2 * time.Minute)
	publish(6) // 5 is lost
	acked(6)
	if got := broken(); got != 1 {
		t.Errorf("alerts about a lost entry: got %d, want 1", got)
	}
	publish(5)
	acked(5)
}

// TestEntriesLostByARestoration restores the database: it lacks entries that an agent has delivered since the backup, and no longer has. They raise no
// alert at each branch; entries that are lost later do.
func TestEntriesLostByARestoration(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a := keypadAgent(t, s)
	entries := wrongPINs(s, a, 8)
	deliver(t, a, 2, entries[:2]...)
	err := s.DB.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		return errors.Join(postgres.BeginRebuild(ctx, tx), postgres.EndRebuild(ctx, tx, now))
	})
	if err != nil {
		t.Fatal(err)
	}
	// lost delivers an entry whose predecessors never come.
	lost := func(e protocol.PassEntry, alerts int) {
		t.Helper()
		if err := a.Publish(e); err != nil {
			t.Fatal(err)
		}
		until(t, "the entry is stored", func() bool {
			return count(t, s, fmt.Sprintf(`select count(*) from pass_entry where entry = %d`, e.Entry)) == 1
		})
		s.Clock.Advance(2 * time.Minute)
		deliver(t, a, e.Entry, e)
		if got := count(t, s, `select count(*) from alert where kind = 'discrepancy'`); got != alerts {
			t.Errorf("entry %d: got %d alerts, want %d", e.Entry, got, alerts)
		}
	}
	lost(entries[4], 0)
	deliver(t, a, 6, entries[5])
	lost(entries[7], 1)
}

// wrongPINs returns the next entries of an agent's journal, of wrong PINs.
func wrongPINs(s *servicetest.Stack, a *agenttest.Agent, n int) (entries []protocol.PassEntry) {
	for range n {
		entries = append(entries, a.Enter(protocol.PassEntry{Device: "room_3", At: s.Clock.Now(), Outcome: protocol.EntryRefused, Reason: protocol.ReasonWrong, Source: protocol.SourcePIN}))
	}
	return entries
}

// deliver publishes entries of a journal and waits until entry ack is acknowledged.
func deliver(t *testing.T, by *agenttest.Agent, ack uint64, entries ...protocol.PassEntry) {
	t.Helper()
	for _, e := range entries {
		if err := by.Publish(e); err != nil {
			t.Fatal(err)
		}
	}
	by.Until(t, fmt.Sprint("the acknowledgement of entry ", ack), func() bool {
		got := by.Acked()
		return len(got) > 0 && got[len(got)-1].Entry == ack
	})
}

// TestJournalContinuesAfterEnrolment continues a journal with another credential of the branch, as a machine does that was enrolled
// again: no entry is lost, is shown twice or counts as missing, and an entry that was changed still breaks the chain.
func TestJournalContinuesAfterEnrolment(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a := keypadAgent(t, s)
	entries := wrongPINs(s, a, 6)
	deliver(t, a, 2, entries[:2]...)
	if err := a.Publish(entries[3]); err != nil { // the third is on its way
		t.Fatal(err)
	}
	until(t, "the entry is stored", func() bool { return count(t, s, `select count(*) from pass_entry`) == 3 })

	const username = "agent-gangnam-again"
	hash := sha256.Sum256([]byte(username + "-demo"))
	if err := postgres.InsertAgent(t.Context(), s.DB.Pool, "gangnam", postgres.NewCredential{Username: username, SecretHash: hash[:]}); err != nil {
		t.Fatal(err)
	}
	again := agenttest.Connect(t, agenttest.Config{Branch: "gangnam", ClientID: username, Dial: agenttest.TCP(s.MQTT), Inventory: keypads(), Keys: demoGrantKeys(t)})
	deliver(t, again, 5, entries[1:5]...)
	if n := count(t, s, `select count(*) from pass_entry`); n != 5 {
		t.Errorf("got %d entries, want 5", n)
	}
	if n := count(t, s, `select count(*) from alert where kind = 'discrepancy'`); n != 0 {
		t.Errorf("got %d alerts, want none", n)
	}
	changed := entries[0]
	changed.Outcome = protocol.EntryOpened
	changed.Hash = changed.Chain()
	if err := again.Publish(changed); err != nil {
		t.Fatal(err)
	}
	deliver(t, again, 6, entries[5])
	until(t, "an alert about the changed entry", func() bool {
		return count(t, s, `select count(*) from alert where kind = 'discrepancy'`) == 1
	})
}

// TestJournalOfRestoredCard continues a journal on a card that was restored from an older image, so its entries have numbers of entries
// that the cloud has. None is lost: a guest who entered must not count as one who did not.
func TestJournalOfRestoredCard(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	a := keypadAgent(t, s)
	entries := wrongPINs(s, a, 6)
	deliver(t, a, 6, entries...)

	restored := slices.Clone(entries[:4])
	for i := 2; i < 4; i++ {
		restored[i].Outcome, restored[i].Reason, restored[i].Previous = protocol.EntryOpened, "", restored[i-1].Hash
		restored[i].Hash = restored[i].Chain()
	}
	deliver(t, a, 3, restored[2])
	deliver(t, a, 4, restored[2:]...) // the first of them again
	deliver(t, a, 2, restored[1])     // older entries of the image are known, and cover none that may not be here
	if n := count(t, s, `select count(*) from pass_entry where outcome = 'opened'`); n != 2 {
		t.Errorf("got %d openings, want both of the restored card", n)
	}
	if n := count(t, s, `select count(*) from pass_entry`); n != 8 {
		t.Errorf("got %d entries, want 8", n)
	}
	if n := count(t, s, `select count(*) from alert where kind = 'discrepancy'`); n != 1 {
		t.Errorf("got %d alerts, want 1", n)
	}
}
