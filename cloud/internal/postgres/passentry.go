package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/money"
	"github.com/yeolda/yeolda/protocol"
)

// EnteredAfterRefund is the kind of the discrepancy about a guest who entered with the pass of a reservation that had been
// cancelled by then.
const EnteredAfterRefund = "entered-after-refund"

// StoredEntry is the result of storing an entry of an agent's journal.
type StoredEntry struct {
	New         bool
	Ack         uint64 // the agent may forget the entries up to this one; 0: none
	Broken      bool   // an entry is the first that does not continue the chain, or differs from an earlier report
	Missing     bool   // the entries between the last one and those stored will never come, and no restoration explains that
	Reservation booking.ReservationID
	AfterRefund bool // the reservation had been cancelled when the guest entered
}

// lossAge is how long an entry waits for its predecessors. The agent repeats all of them every ten seconds.
const lossAge = time.Minute

// ofJournal selects the rows of a journal ($2) by any credential of the branch of a user name ($1): a machine that is enrolled again
// continues its journal with the new one.
const ofJournal = `journal = $2 and username in (
	select c.username from agent_credential c join agent_credential own on own.branch_id = c.branch_id where own.username = $1)`

// StoreEntry stores an entry of the journal of an agent once, verifies that it continues the chain, and assigns it to its
// reservation. Entries may overtake each other: one that arrives before its predecessor is stored, and acknowledged with it. If
// the predecessor is not there after lossAge, it is lost. One that differs from an earlier report is stored beside it, in a journal of its own.
func StoreEntry(ctx context.Context, tx pgx.Tx, username string, e protocol.PassEntry, now time.Time) (s StoredEntry, err error) {
	end, err := lockJournal(ctx, tx, username, e.Journal)
	if err != nil {
		return s, err
	}
	if s.Reservation, err = reservationOfEntry(ctx, tx, end.branch, e); err != nil {
		return s, err
	}
	journal := e.Journal
	known, err := hashesOf(ctx, tx, username, journal, e.Entry)
	if err != nil {
		return s, err
	}
	// An entry that differs from the earlier report was changed on the way or on the machine, or its card was restored from an older image.
	// It is stored beside the first one: a guest who entered must not count as one who did not.
	if s.Broken = len(known) > 0 && !slices.Contains(known, e.Hash); s.Broken {
		journal = e.Journal + "/" + e.Hash
		if known, err = hashesOf(ctx, tx, username, journal, e.Entry); err != nil {
			return s, err
		}
	}
	if s.New = len(known) == 0; s.New {
		_, err = tx.Exec(ctx, `
			insert into pass_entry (username, journal, entry, branch_id, pass_id, reservation_id, device, at, outcome, reason, source, previous, hash, received_at)
			values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			username, journal, e.Entry, end.branch, null(e.Pass), null(s.Reservation), e.Device, e.At, e.Outcome, e.Reason, e.Source, e.Previous, e.Hash, now)
		if err != nil {
			return s, err
		}
		if s.AfterRefund, err = enteredAfterRefund(ctx, tx, s.Reservation, e); err != nil {
			return s, err
		}
	}
	if e.Entry <= end.entry {
		s.Ack = e.Entry // not the last one: those between may be others than before, and not be here
		return s, nil
	}
	err = s.continueJournal(ctx, tx, username, e.Journal, end, now)
	return s, err
}

// journalEnd is the last entry of a journal that continues the chain.
type journalEnd struct {
	entry  uint64
	hash   string
	broken *uint64 // the first entry that does not continue the chain
	branch booking.BranchID
}

// lockJournal locks the journal of an agent, which it begins if it is a new one.
func lockJournal(ctx context.Context, tx pgx.Tx, username, journal string) (end journalEnd, err error) {
	_, err = tx.Exec(ctx, `
		insert into pass_journal (username, journal, entry, hash)
		select $1, $2, coalesce(before.entry, 0), coalesce(before.hash, '')
		from (select) own left join (select entry, hash from pass_journal where `+ofJournal+` order by entry desc limit 1) before on true
		on conflict do nothing`, username, journal)
	if err != nil {
		return end, err
	}
	err = tx.QueryRow(ctx, `
		select j.entry, j.hash, j.broken, c.branch_id from pass_journal j join agent_credential c on c.username = j.username
		where j.username = $1 and j.journal = $2 for update of j`, username, journal).Scan(&end.entry, &end.hash, &end.broken, &end.branch)
	return end, err
}

// hashesOf returns the hashes with which an entry of a journal was reported.
func hashesOf(ctx context.Context, q Querier, username, journal string, entry uint64) (hashes []string, err error) {
	err = q.QueryRow(ctx, `select coalesce(array_agg(hash), '{}') from pass_entry where entry = $3 and `+ofJournal, username, journal, entry).Scan(&hashes)
	return hashes, err
}

// continueJournal moves the end of a journal over the stored entries that follow it, and over the gap before them if those in the gap are lost.
func (s *StoredEntry) continueJournal(ctx context.Context, tx pgx.Tx, username, journal string, end journalEnd, now time.Time) error {
	stored, err := entriesAfter(ctx, tx, username, journal, end.entry)
	if err != nil {
		return err
	}
	if first := stored[0]; first.Entry > end.entry+1 {
		if now.Sub(first.received) < lossAge {
			return nil // its predecessor may be on its way
		}
		restored, err := restoredSince(ctx, tx, username, journal, end.entry)
		if err != nil {
			return err
		}
		s.Missing, end.entry, end.hash = !restored, first.Entry-1, first.Previous
	}
	for _, next := range stored {
		if next.Entry != end.entry+1 {
			break
		}
		if end.broken == nil && (next.Hash != next.Chain() || next.Previous != end.hash) {
			end.broken, s.Broken = &next.Entry, true
		}
		end.entry, end.hash = next.Entry, next.Hash
	}
	s.Ack = end.entry
	_, err = tx.Exec(ctx, `update pass_journal set entry = $3, hash = $4, broken = $5 where username = $1 and journal = $2`,
		username, journal, end.entry, end.hash, end.broken)
	return err
}

// restoredSince reports whether the database was restored from a backup since it stored the entries of a journal up to a number, or since the
// credential was made: the agent no longer has what it had delivered in the lost time.
func restoredSince(ctx context.Context, q Querier, username, journal string, upTo uint64) (restored bool, err error) {
	err = q.QueryRow(ctx, `
		select exists (select from rebuild where begun_at > coalesce(
			(select max(stored_at) from pass_entry where entry <= $3 and `+ofJournal+`),
			(select created_at from agent_credential where username = $1)))`, username, journal, upTo).Scan(&restored)
	return restored, err
}

// receivedEntry is an entry and when it was first received.
type receivedEntry struct {
	protocol.PassEntry
	received time.Time
}

// entriesAfter returns the stored entries of a journal after a number, in order.
func entriesAfter(ctx context.Context, q Querier, username, journal string, after uint64) ([]receivedEntry, error) {
	rows, err := q.Query(ctx, `
		select journal, entry, coalesce(pass_id::text, ''), device, at, outcome, reason, source, previous, hash, received_at from pass_entry
		where entry > $3 and `+ofJournal+` order by entry`, username, journal, after)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (e receivedEntry, err error) {
		return e, row.Scan(&e.Journal, &e.Entry, &e.Pass, &e.Device, &e.At, &e.Outcome, &e.Reason, &e.Source, &e.Previous, &e.Hash, &e.received)
	})
}

// reservationOfEntry returns the reservation of an entry's pass; 0 if it is unknown. A code names no pass: it is that of the
// only reservation that had a code for these doors at that time.
func reservationOfEntry(ctx context.Context, q Querier, branch booking.BranchID, e protocol.PassEntry) (id booking.ReservationID, err error) {
	if e.Pass != "" {
		err = q.QueryRow(ctx, `select reservation_id from pass where id = $1 and branch_id = $2`, e.Pass, branch).Scan(&id)
		if errors.Is(err, pgx.ErrNoRows) {
			return 0, nil
		}
		return id, err
	}
	if e.Source != protocol.SourceCode || e.Outcome == protocol.EntryRefused {
		return 0, nil
	}
	var ids []booking.ReservationID
	step := int64(protocol.Step(e.At)) //nolint:gosec // a unix time
	err = q.QueryRow(ctx, `
		select array_agg(distinct coalesce(reservation_id, 0)) from pass_code
		where branch_id = $1 and device = $2 and step between $3 and $4`, branch, protocol.CodeDevice(e.Device), step-1, step+1).Scan(&ids)
	if err != nil || len(ids) != 1 {
		return 0, err
	}
	return ids[0], nil
}

// wasConfirmed is the condition that reservation r is or was confirmed. One whose deposit the bank has taken back counts as unpaid again.
const wasConfirmed = `(r.paid_at is not null or exists (
	select from ledger l where l.reservation_id = r.id and l.kind in ('deposit.done', 'confirm.done')))`

// enteredAfterRefund records a discrepancy if the guest of a cancelled reservation entered after its cancellation, or in the time of a
// cancelled extension: an agent that is offline still has the pass as it was. No money moves because of it.
func enteredAfterRefund(ctx context.Context, tx pgx.Tx, id booking.ReservationID, e protocol.PassEntry) (bool, error) {
	if id == 0 || e.Outcome != protocol.EntryOpened && e.Outcome != protocol.EntryUnknown {
		return false, nil
	}
	var subject string
	err := tx.QueryRow(ctx, `
		select coalesce(r.order_id, 'reservation-' || r.id) from reservation r
		where (r.id = $1 or r.extends = $1 and `+wasConfirmed+` and $2 > r.start_at - $3::interval + interval '1 second' and $2 < r.end_at and not exists (
			select from reservation r where r.id = $1 and r.state = 'DONE' and $2 < `+stayEnd+` - $3::interval))
		  and r.state in ('CANCELING', 'CANCELED') and $2 >= coalesce(r.canceled_at,
			(select max(f.created_at) from refund f where f.reservation_id = r.id and f.state <> 'REFUSED'))
		order by r.id limit 1`, id, e.At, booking.UnlockLead).Scan(&subject)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	detail := fmt.Sprintf("%s opened at %s by %s after the cancellation of reservation %d", e.Device, e.At.UTC().Format(time.RFC3339), e.Source, id)
	_, err = ReportDiscrepancy(ctx, tx, money.Discrepancy{OrderID: subject, Kind: EnteredAfterRefund, Detail: detail}) // its alert follows it
	return err == nil, err
}
