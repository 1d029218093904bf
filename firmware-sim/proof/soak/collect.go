package soak

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// collect reads the records of the database, the provider and the locks.
func (s *Soak) collect(ctx context.Context) error {
	for _, read := range []func(context.Context) error{
		s.readHistory, s.readMoney, s.readDoors, s.readPartner, s.readLogs, s.readAppendOnly, s.readProvider, s.readMessages, s.readPulses, s.readProof, s.readAudit,
	} {
		if err := read(ctx); err != nil {
			return fmt.Errorf("collect: %w", err)
		}
	}
	return nil
}

// rows reads all rows of a query.
func rows[T any](ctx context.Context, s *Soak, sql string, scan func(pgx.CollectableRow) (T, error), args ...any) ([]T, error) {
	found, err := s.eyes.pool.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, scan)
}

func some[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (s *Soak) readHistory(ctx context.Context) (err error) {
	s.record.History, err = rows(ctx, s, `
		select v.seq, v.committed, v.id, b.code, r.no, v.start_at, v.end_at, v.state, v.source, v.expires_at, v.order_id, v.amount, v.method, v.key_hash, v.deleted,
		       lead(v.committed) over (partition by v.id order by v.seq)
		from (select *, pg_xact_commit_timestamp(xmin) as committed from proof.version) v join room r on r.id = v.room_id join branch b on b.id = v.branch_id order by v.seq`,
		func(row pgx.CollectableRow) (v record.Version, err error) {
			var expires, until *time.Time
			var order, method, key *string
			var amount *int
			err = row.Scan(&v.Seq, &v.At, &v.ID, &v.Slot.Branch, &v.Slot.Room, &v.Slot.Start, &v.Slot.End, &v.State, &v.Source, &expires, &order, &amount, &method, &key, &v.Deleted, &until)
			v.Expires, v.Until, v.Order, v.Amount, v.Method, v.Key = some(expires), some(until), some(order), some(amount), some(method), some(key)
			return v, err
		})
	if err != nil {
		return err
	}
	s.record.Switches, err = rows(ctx, s, `select b.code, r.no, pg_xact_commit_timestamp(w.xmin), w.enabled from proof.switched w join room r on r.id = w.room_id join branch b on b.id = r.branch_id order by w.seq`,
		pgx.RowToStructByPos[record.Switch])
	if err != nil {
		return err
	}
	s.record.Moves, err = rows(ctx, s, `
		select m.reservation_id, m.at, b.code, m.from_room, m.from_start, m.from_end, b.code, m.to_room, m.to_start, m.to_end
		from reservation_move m join reservation r on r.id = m.reservation_id join branch b on b.id = r.branch_id order by m.id`,
		func(row pgx.CollectableRow) (m record.Move, err error) {
			err = row.Scan(&m.Reservation, &m.At, &m.From.Branch, &m.From.Room, &m.From.Start, &m.From.End, &m.To.Branch, &m.To.Room, &m.To.Start, &m.To.End)
			return m, err
		})
	return err
}

func (s *Soak) readMoney(ctx context.Context) (err error) {
	s.record.Payments, err = rows(ctx, s, `select reservation_id, coalesce(payment_key, ''), coalesce(total_amount, 0) from payment`, pgx.RowToStructByPos[record.Payment])
	if err != nil {
		return err
	}
	s.record.Refunds, err = rows(ctx, s, `select reservation_id, state, amount, created_at from refund order by id`, pgx.RowToStructByPos[record.Refund])
	if err != nil {
		return err
	}
	s.record.Ledger, err = rows(ctx, s, `select id, at, reservation_id, coalesce(order_id, ''), kind, coalesce(amount, 0), coalesce(code, '') from ledger order by id`, pgx.RowToStructByPos[record.Entry])
	if err != nil {
		return err
	}
	s.record.Webhooks, err = rows(ctx, s, `select order_id, status, received_at, applied_at is not null from webhook_event order by id`, pgx.RowToStructByPos[record.Webhook])
	if err != nil {
		return err
	}
	s.record.Differences, err = rows(ctx, s, `select order_id from reconciliation_difference`, pgx.RowTo[string])
	return err
}

func (s *Soak) readDoors(ctx context.Context) (err error) {
	s.record.DoorRequests, err = rows(ctx, s, `
		select d.id::text, b.code, d.reservation_id, d.devices, d.state, d.created_at, d.granted_at, d.finished_at, coalesce(d.detail, '')
		from door_request d join branch b on b.id = d.branch_id order by d.created_at`,
		func(row pgx.CollectableRow) (d record.DoorRequest, err error) {
			var reservation *int64
			var granted, finished *time.Time
			err = row.Scan(&d.ID, &d.Branch, &reservation, &d.Devices, &d.State, &d.Created, &granted, &finished, &d.Detail)
			d.Reservation, d.Granted, d.Finished = some(reservation), some(granted), some(finished)
			return d, err
		})
	if err != nil {
		return err
	}
	s.record.StaffUnlocks, err = rows(ctx, s, `select coalesce(detail ->> 'requestId', '') from audit where action = 'door.unlock'`, pgx.RowTo[string])
	return err
}

func (s *Soak) readPartner(ctx context.Context) (err error) {
	s.record.Partner, err = rows(ctx, s, `select external_id, status, coalesce(reservation_id, 0) from partner_booking`, pgx.RowToStructByPos[record.PartnerBooking])
	if err != nil {
		return err
	}
	s.record.Bookings, err = s.bookings()
	s.record.Shared = s.partnerBranches()
	s.record.Zones = make(map[string]string)
	for _, b := range s.world.Branches {
		s.record.Zones[b.Code] = b.Zone.String()
	}
	return err
}

// bookings returns the guests' bookings at the partner.
func (s *Soak) bookings() ([]record.ChannelBooking, error) {
	var list struct {
		Bookings []struct {
			ID, Branch, Status string
			Room               int
			Start, End         time.Time
			Canceled           bool
		} `json:"bookings"`
	}
	if _, err := world.Ask(http.MethodGet, s.world.Sandbox+"/sandbox/channel/bookings", nil, &list); err != nil {
		return nil, err
	}
	var bookings []record.ChannelBooking
	for _, b := range list.Bookings {
		bookings = append(bookings, record.ChannelBooking{ID: b.ID, Slot: record.Slot{Branch: b.Branch, Room: b.Room, Start: b.Start, End: b.End}, Canceled: b.Canceled, Status: b.Status})
	}
	return bookings, nil
}

func (s *Soak) readLogs(context.Context) (err error) {
	s.record.Deadlocks, err = s.eyes.said("deadlock detected")
	return err
}

// readAppendOnly attempts forbidden changes and checks that the first part of the ledger is unchanged.
func (s *Soak) readAppendOnly(ctx context.Context) error {
	for _, attempt := range []string{"update ledger set amount = 1", "delete from ledger", "truncate ledger", "delete from audit", "truncate audit", "update audit set actor = 'nobody'"} {
		s.record.Tables++
		err := pgx.BeginFunc(ctx, s.eyes.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, attempt); err == nil {
				s.record.AppendOnly = append(s.record.AppendOnly, attempt)
			}
			return pgx.ErrTxCommitRollback // always roll back
		})
		if err == nil {
			return fmt.Errorf("%s was committed", attempt)
		}
	}
	var last int64
	if s.record.LedgerMark.Rows == 0 {
		return nil
	}
	return s.eyes.pool.QueryRow(ctx, ledgerPrint, s.eyes.mark).Scan(&s.record.LedgerMark.Rows, &s.record.LedgerMark.After, &last)
}

// providerCall is a request in the ledger of the sandbox.
type providerCall struct {
	At                                          time.Time
	Method, Path, IdempotencyKey, OrderID, Keys string
	Status                                      int
}

func (c providerCall) recorded() record.Call {
	return record.Call{At: c.At, Method: c.Method, Path: c.Path, IdempotencyKey: c.IdempotencyKey, Order: c.OrderID, Keys: c.Keys, Status: c.Status}
}

func (s *Soak) readProvider(context.Context) error {
	var ledger struct {
		Charged, Refunded int
		Calls, Foreign    []providerCall
	}
	if _, err := world.Ask(http.MethodGet, s.world.Sandbox+"/sandbox/ledger", nil, &ledger); err != nil {
		return err
	}
	p := record.Provider{Charged: ledger.Charged, Refunded: ledger.Refunded}
	for _, c := range ledger.Calls {
		p.Calls = append(p.Calls, c.recorded())
	}
	for _, c := range ledger.Foreign {
		p.Foreign = append(p.Foreign, c.recorded())
	}
	var list struct {
		Payments []struct {
			PaymentKey, OrderID, Status string
			TotalAmount, BalanceAmount  int
			ApprovedAt                  *time.Time
			Cancels                     []struct {
				CancelAmount int
				CanceledAt   time.Time
			}
			VirtualAccount *struct{ DueDate string }
		}
	}
	if _, err := world.Ask(http.MethodGet, s.world.Sandbox+"/sandbox/payments", nil, &list); err != nil {
		return err
	}
	for _, one := range list.Payments {
		payment := record.ProviderPayment{Key: one.PaymentKey, Order: one.OrderID, Status: one.Status, Total: one.TotalAmount, Balance: one.BalanceAmount,
			Approved: some(one.ApprovedAt), Account: one.VirtualAccount != nil}
		for _, c := range one.Cancels {
			payment.Canceled += c.CancelAmount
			payment.Cancels = append(payment.Cancels, c.CanceledAt)
		}
		p.Payments = append(p.Payments, payment)
	}
	s.record.Provider = p
	return nil
}

func (s *Soak) readMessages(context.Context) error {
	var list struct {
		Messages []message `json:"messages"`
	}
	if _, err := world.Ask(http.MethodGet, s.world.Sandbox+"/sandbox/messages", nil, &list); err != nil {
		return err
	}
	for _, m := range list.Messages {
		s.record.Messages = append(s.record.Messages, record.Message{At: m.At, To: m.To, Template: m.Template, Key: hashed(m.Variables["doorlockKey"])})
	}
	return nil
}

// hashed returns the hash of a key as the database stores it, or "" without a key.
func hashed(key string) string {
	if key == "" {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
}

func (s *Soak) readPulses(context.Context) error {
	s.record.Locked = map[string]bool{}
	for _, b := range s.world.Branches {
		var list struct {
			Actuations []struct {
				At                time.Time
				Device, RequestID string
				EnergizedMs       int64
			}
		}
		if _, err := world.Ask(http.MethodGet, s.world.Simulator+"/sim/branches/"+b.Code+"/actuations", nil, &list); err != nil {
			return err
		}
		for _, a := range list.Actuations {
			s.record.Pulses = append(s.record.Pulses, record.Pulse{Branch: b.Code, Device: a.Device, Request: a.RequestID, At: a.At, Energized: time.Duration(a.EnergizedMs) * time.Millisecond})
		}
		locks, err := s.locked(b)
		if err != nil {
			return err
		}
		maps.Copy(s.record.Locked, locks)
	}
	return nil
}

// readProof asks the service to prove its rules on its own rows.
func (s *Soak) readProof(ctx context.Context) error {
	admin := s.newClient()
	admin.ask(ctx, 0, http.MethodPost, "/admin/login", map[string]string{"id": world.AdminID, "password": world.AdminPassword})
	var proof struct {
		Report struct {
			Rules []struct {
				ID      string
				Checked int
				Found   []struct{ Subject, Detail string }
			}
		}
	}
	if r := admin.ask(ctx, 0, http.MethodGet, "/v2/admin/proof", nil); !r.into(&proof) {
		return fmt.Errorf("the service's own proof: %d %s", r.status, r.text)
	}
	for _, rule := range proof.Report.Rules {
		result := record.ProofRule{ID: rule.ID, Checked: rule.Checked}
		for _, f := range rule.Found {
			result.Found = append(result.Found, f.Subject+": "+f.Detail)
		}
		s.record.Proof = append(s.record.Proof, result)
	}
	return nil
}

// auditTimeout bounds the time until rows and entries of the audit log are linked, which takes a minute at most.
const auditTimeout = 2 * time.Minute

// readAudit runs `yeolda audit verify`. It waits until rows have been linked and no entry is without its place.
func (s *Soak) readAudit(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, auditTimeout)
	defer cancel()
	for {
		var err error
		if s.record.Audit, err = s.verifyAudit(ctx); err != nil {
			return err
		}
		a := s.record.Audit
		if a.Problem != "" || a.Rows > 0 && a.Unlinked == 0 || limited.Err() != nil {
			return ctx.Err()
		}
		pause(limited, 2*time.Second)
	}
}

func (s *Soak) verifyAudit(ctx context.Context) (a record.Audit, err error) {
	out, err := s.world.Command(ctx, "audit", "verify")
	if stopped := new(exec.ExitError); errors.As(err, &stopped) && stopped.ExitCode() == 1 {
		return record.Audit{Problem: err.Error()}, nil
	}
	if err != nil {
		return a, err
	}
	for line := range strings.Lines(out) {
		count, what, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			return a, fmt.Errorf("audit verify: %q: %w", line, err)
		}
		switch {
		case strings.HasPrefix(what, "rows of money"):
			a.Rows = n
		case strings.HasPrefix(what, "entries are not linked"):
			a.Unlinked = n
		default:
			a.Entries = n
		}
	}
	return a, nil
}
