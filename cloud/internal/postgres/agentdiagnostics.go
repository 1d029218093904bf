package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/protocol"
)

// ErrNoDiagnostics is returned for an agent that opens no window of diagnostics, because its version is too old.
var ErrNoDiagnostics = errors.New("postgres: the agent has no diagnostics")

const (
	// diagnosticsMessages is the number of messages that are stored for one request: an agent sends at most one per second.
	diagnosticsMessages = 700
	// diagnosticsBytes is the size of the log that is kept of each agent.
	diagnosticsBytes = 1 << 20
	// diagnosticsGrace is how long after its window an agent may still send: its window began later, by its own clock.
	diagnosticsGrace = "1 minute"
	// diagnosticsTTL is how long a log and a report are kept.
	diagnosticsTTL = time.Hour
)

// Diagnostics is the last window of diagnostics of an agent.
type Diagnostics struct {
	Request  string
	OpenedBy string // of the last request
	OpenedAt time.Time
	EndsAt   time.Time // or when it was closed
	DoctorAt time.Time // the report of the doctor was requested; zero: never
	Report   string
	ReportAt time.Time // zero: it has not arrived
}

// DiagnosticsState is what is known of the diagnostics of an agent.
type DiagnosticsState struct {
	Online bool
	Status *protocol.DiagnosticsStatus // as reported last; nil: the version of the agent is too old, or it was never connected
	Window *Diagnostics                // nil: none within the last hour
	Open   bool
	Log    []AgentLog
}

// Supported reports whether the agent is known to open windows.
func (s DiagnosticsState) Supported() bool { return s.Status != nil }

// Received reports whether the agent has received the last request since it started.
func (s DiagnosticsState) Received() bool {
	return s.Window != nil && s.Status != nil && s.Status.Request == s.Window.Request
}

// AgentLog is a part of the log of an agent.
type AgentLog struct {
	ID         int64
	ReceivedAt time.Time
	Dropped    uint64 // lines before these that the agent did not send
	Lines      []protocol.LogLine
}

// OpenDiagnostics opens a window of an agent, or extends the open one. The log before a new window is deleted. doctor requests the report of
// the doctor, too. It returns ErrNoAgent for an unknown or revoked credential, and ErrNoDiagnostics.
func OpenDiagnostics(ctx context.Context, tx pgx.Tx, username string, w Diagnostics, doctor bool) error {
	var old bool
	err := tx.QueryRow(ctx, `
		select report is not null and report -> 'diagnostics' is null from agent_credential
		where username = $1 and revoked_at is null for no key update`, username).Scan(&old)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNoAgent
	case err != nil:
		return err
	case old:
		return ErrNoDiagnostics
	}
	batch := new(pgx.Batch)
	batch.Queue(`
		delete from agent_log where username = $1
		and not exists (select from agent_diagnostics d where d.username = $1 and d.ends_at > $2 and d.closed_at is null)`, username, w.OpenedAt)
	batch.Queue(`
		insert into agent_diagnostics as d (username, request, opened_by, opened_at, ends_at, doctor_request, doctor_at)
		values ($1, $2, $3, $5, $6, case when $4 then $2 end, case when $4 then $5::timestamptz end)
		on conflict (username) do update set
			request = excluded.request, opened_by = excluded.opened_by, ends_at = excluded.ends_at, messages = 0, closed_at = null,
			opened_at = case when d.ends_at > $5 and d.closed_at is null then d.opened_at else excluded.opened_at end,
			doctor_request = case when $4 then excluded.doctor_request else d.doctor_request end,
			doctor_at = case when $4 then excluded.doctor_at else d.doctor_at end,
			report = case when not $4 then d.report end, report_at = case when not $4 then d.report_at end`,
		username, w.Request, w.OpenedBy, doctor, w.OpenedAt, w.EndsAt)
	return tx.SendBatch(ctx, batch).Close()
}

// CloseDiagnostics closes the window of an agent, and withdraws the request of a report that has not arrived. It reports false if none is
// open.
func CloseDiagnostics(ctx context.Context, tx pgx.Tx, username, request string, now time.Time) (bool, error) {
	tag, err := tx.Exec(ctx, `
		update agent_diagnostics set request = $2, closed_at = $3,
			doctor_request = case when report_at is not null then doctor_request end, doctor_at = case when report_at is not null then doctor_at end
		where username = $1 and ends_at > $3 and closed_at is null`, username, request, now)
	return tag.RowsAffected() > 0, err
}

// WaitingDiagnostics is a window whose request, to open or to close it, the agent has not received.
type WaitingDiagnostics struct {
	Agent    protocol.Agent
	Request  string
	EndsAt   time.Time
	Closed   bool
	Doctor   bool // the report of the doctor is missing
	KeyEpoch uint64
	Nonce    string
}

// DiagnosticsToSend returns the requests that connected agents have not received since they started.
func DiagnosticsToSend(ctx context.Context, q Querier, now time.Time) ([]WaitingDiagnostics, error) {
	rows, err := q.Query(ctx, `
		select b.code, d.username, d.request, d.ends_at, d.closed_at is not null, d.doctor_request is not null and d.report_at is null, a.key_epoch,
		       a.report -> 'diagnostics' ->> 'nonce'
		from agent_diagnostics d join agent_credential a on a.username = d.username join branch b on b.id = a.branch_id
		where d.ends_at > $1 and a.online and a.revoked_at is null and a.report -> 'diagnostics' ->> 'nonce' is not null
		  and coalesce(a.report -> 'diagnostics' ->> 'request', '') <> d.request`, now)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (w WaitingDiagnostics, err error) {
		err = row.Scan(&w.Agent.Branch, &w.Agent.Username, &w.Request, &w.EndsAt, &w.Closed, &w.Doctor, &w.KeyEpoch, &w.Nonce)
		return w, err
	})
}

// InsertAgentLog stores a part of the log of an agent whose window is open, and deletes the oldest parts beyond the size that is
// kept. It reports false if the window is not open, or if the agent has sent too much.
func InsertAgentLog(ctx context.Context, tx pgx.Tx, username string, m protocol.DiagnosticsLog, now time.Time) (bool, error) {
	lines, err := json.Marshal(m.Lines)
	if err != nil {
		return false, err
	}
	tag, err := tx.Exec(ctx, `
		with open as (
			update agent_diagnostics set messages = messages + 1
			where username = $1 and ends_at > $2::timestamptz - interval '`+diagnosticsGrace+`' and closed_at is null and messages < $3 returning username
		)
		insert into agent_log (username, received_at, dropped, lines, size) select username, $2, $4, $5::text::jsonb, octet_length($5::text) from open`,
		username, now, diagnosticsMessages, int64(min(m.Dropped, 1<<62)), string(lines))
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	_, err = tx.Exec(ctx, `
		delete from agent_log where id in (
			select id from (select id, sum(size) over (order by id desc) as total from agent_log where username = $1) l where total > $2)`,
		username, diagnosticsBytes)
	return true, err
}

// PutDoctorReport stores the report of the doctor of an agent. It reports false if it was not asked for, or has arrived before. An agent
// that did not receive the request of the report examines its machine for a later one, which asks for the missing report too.
func PutDoctorReport(ctx context.Context, q Querier, username string, m protocol.DiagnosticsReport, now time.Time) (bool, error) {
	tag, err := q.Exec(ctx, `
		update agent_diagnostics set report = $3, report_at = $4
		where username = $1 and doctor_request is not null and $2 in (doctor_request, request) and report_at is null and closed_at is null and ends_at > $4::timestamptz - interval '`+diagnosticsGrace+`'`,
		username, m.Request, m.Text, now)
	return tag.RowsAffected() > 0, err
}

// DiagnosticsOf returns the diagnostics of an agent, with the parts of its log behind the one with the id after. It returns
// ErrNoAgent for an unknown or revoked credential.
func DiagnosticsOf(ctx context.Context, q Querier, username string, after int64, now time.Time) (DiagnosticsState, error) {
	var s DiagnosticsState
	var w Diagnostics
	var request, by, report *string
	var opened, ends, doctorAt, reportAt *time.Time
	err := q.QueryRow(ctx, `
		select a.online, a.report -> 'diagnostics', d.request, d.opened_by, d.opened_at, coalesce(d.closed_at, d.ends_at), d.doctor_at, d.report, d.report_at
		from agent_credential a left join agent_diagnostics d on d.username = a.username and d.ends_at > $2
		where a.username = $1 and a.revoked_at is null`, username, now.Add(-diagnosticsTTL)).
		Scan(&s.Online, &s.Status, &request, &by, &opened, &ends, &doctorAt, &report, &reportAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return s, ErrNoAgent
	}
	if err != nil {
		return s, err
	}
	if request != nil {
		w = Diagnostics{*request, value(by), value(opened), value(ends), value(doctorAt), value(report), value(reportAt)}
		s.Window, s.Open = &w, w.EndsAt.After(now)
	}
	rows, err := q.Query(ctx, `
		select id, received_at, dropped, lines from agent_log where username = $1 and id > $2 and received_at > $3 order by id`,
		username, after, now.Add(-diagnosticsTTL))
	if err != nil {
		return s, err
	}
	s.Log, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (l AgentLog, err error) {
		var dropped int64
		err = row.Scan(&l.ID, &l.ReceivedAt, &dropped, &l.Lines)
		l.Dropped = uint64(dropped)
		return l, err
	})
	return s, err
}

// PruneDiagnostics deletes logs and reports that are too old.
func PruneDiagnostics(ctx context.Context, q Querier, now time.Time) error {
	_, err := q.Exec(ctx, `
		with l as (delete from agent_log where received_at < $1)
		delete from agent_diagnostics where ends_at < $1`, now.Add(-diagnosticsTTL))
	return err
}
