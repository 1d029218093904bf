package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/protocol"
)

// Errors of rollouts.
var (
	// ErrRolloutOpen is returned while another rollout has not ended.
	ErrRolloutOpen = errors.New("postgres: a rollout is open")
	// ErrNoRollout is returned if no rollout is open.
	ErrNoRollout = errors.New("postgres: no rollout is open")
)

// The kinds of rollouts.
const (
	RolloutPackage  = "package"
	RolloutSettings = "settings"
)

// Rollout is an update of the agents in waves, or a change of their settings.
type Rollout struct {
	ID        int64
	Kind      string
	Version   string // of the package; of settings: a name for what each agent gets
	Waves     []int  // percent of the agents
	Wave      int    // the current one, from 1
	Settle    time.Duration
	Packages  map[string][]protocol.Package // by version
	Change    *SettingsChange               // nil: a package, or settings of a rollout of an earlier version
	State     string                        // running, reverting, stopped, done
	Reason    string                        // for the end
	CreatedBy string
	CreatedAt time.Time
	EndedAt   time.Time // zero: open
	Members   []RolloutMember
}

// SettingsChange replaces a text in the settings of agents.
type SettingsChange struct {
	Old string `json:"old"`
	New string `json:"new"`
}

// RolloutMember is an agent of a rollout, with what it reported last.
type RolloutMember struct {
	Username, Branch string
	Wave             int
	State            string // waiting, asked, healthy, failed, reverting, reverted, unreverted, skipped
	BeforeVersion    string // of the package, or of the settings
	BeforeFailed     int
	BeforeFailure    string // of the version, which the agent reported when it was asked and reports still; "": none
	AskedAt          time.Time
	Since            time.Time // the new version was seen first; zero: not yet
	Detail           string
	Failure          string // the reason why it failed; "": it did not

	Settings   string    // that the agent gets
	Goal, Back uint64    // the versions of its settings with them, and with the previous ones; 0: not made yet
	Pending    time.Time // settings were made then that the agent has not answered; zero: none

	Active  bool // the active agent of its branch
	Changed bool // it uses later settings than those of the rollout
	Online  bool // and connected
	Version string
	Failed  int // self-tests
	Update  *protocol.UpdateStatus
}

// InsertRollout adds a rollout to the active agent of each branch; one of settings, to its members. Connected agents come first, so
// that the first wave shows something. It returns ErrRolloutOpen.
func InsertRollout(ctx context.Context, tx pgx.Tx, r Rollout, now time.Time) error {
	packages, err := json.Marshal(r.Packages)
	if err != nil {
		return err
	}
	var id int64
	err = tx.QueryRow(ctx, `
		insert into agent_rollout (kind, version, waves, settle, packages, change, created_by, created_at) values ($1, $2, $3, $4, $5, $6, $7, $8)
		on conflict do nothing returning id`, r.Kind, r.Version, r.Waves, r.Settle, packages, r.Change, r.CreatedBy, now).Scan(&id)
	if errors.Is(err, pgx.ErrNoRows) {
		return ErrRolloutOpen
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into agent_rollout_member (rollout_id, username, branch, settings, wave)
		select $1, a.username, a.code, a.settings, (
			select min(w.place) from unnest($2::integer[]) with ordinality w (percent, place)
			where a.place <= ceil(a.total * w.percent / 100.0))
		from (
			select a.username, b.code, s.settings, row_number() over (order by a.online desc, md5(a.username)) as place, count(*) over () as total
			from agent_credential a join branch b on b.id = a.branch_id
			left join unnest($4::text[], $5::text[]) s (username, settings) on s.username = a.username
			where a.active and a.revoked_at is null and ($3 = 'package' or s.username is not null)
		) a`, id, r.Waves, r.Kind, array(r.Members, func(m RolloutMember) string { return m.Username }),
		array(r.Members, func(m RolloutMember) string { return m.Settings }))
	return err
}

const rolloutColumns = `id, kind, version, waves, wave, settle, packages, change, state, reason, created_by, created_at, ended_at`

// LastRollout returns the last rollout with its agents. It returns ErrNoRollout if there was none.
func LastRollout(ctx context.Context, q Querier) (Rollout, error) {
	return rollout(ctx, q, `select `+rolloutColumns+` from agent_rollout order by id desc limit 1`)
}

// LockLastRollout returns the last rollout and locks it. It returns ErrNoRollout if there was none.
func LockLastRollout(ctx context.Context, tx pgx.Tx) (Rollout, error) {
	return rollout(ctx, tx, `select `+rolloutColumns+` from agent_rollout order by id desc limit 1 for update`)
}

// LockRollout returns the open rollout and locks it. It returns ErrNoRollout, also if another replica works on it.
func LockRollout(ctx context.Context, tx pgx.Tx) (Rollout, error) {
	return rollout(ctx, tx, `select `+rolloutColumns+` from agent_rollout where ended_at is null for update skip locked`)
}

func rollout(ctx context.Context, q Querier, sql string) (r Rollout, err error) {
	var ended *time.Time
	err = q.QueryRow(ctx, sql).Scan(&r.ID, &r.Kind, &r.Version, &r.Waves, &r.Wave, &r.Settle, &r.Packages, &r.Change, &r.State, &r.Reason, &r.CreatedBy, &r.CreatedAt, &ended)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, ErrNoRollout
	}
	if err != nil {
		return r, err
	}
	r.EndedAt = value(ended)
	rows, err := q.Query(ctx, `
		select m.username, m.branch, m.wave, m.state, m.before_version, m.before_failed, m.asked_at, m.since, m.detail, m.failure, m.before_failure,
		       coalesce(m.settings, ''), coalesce(m.goal, 0), coalesce(m.back, 0), coalesce(a.active and a.revoked_at is null, false),
		       coalesce(a.online and a.active and a.revoked_at is null, false), a.report,
		       (select max(s.state_at) from agent_settings s where s.username = m.username and s.state = 'asked')
		from agent_rollout_member m left join agent_credential a on a.username = m.username
		where m.rollout_id = $1 order by m.wave, m.username`, r.ID)
	if err != nil {
		return r, err
	}
	r.Members, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (m RolloutMember, err error) {
		var asked, since, pending *time.Time
		var report *AgentReport
		err = row.Scan(&m.Username, &m.Branch, &m.Wave, &m.State, &m.BeforeVersion, &m.BeforeFailed, &asked, &since, &m.Detail, &m.Failure, &m.BeforeFailure,
			&m.Settings, &m.Goal, &m.Back, &m.Active, &m.Online, &report, &pending)
		m.AskedAt, m.Since, m.Pending = value(asked), value(since), value(pending)
		if report != nil {
			m.Version, m.Update = report.Version, report.Update
			if r.Kind == RolloutSettings {
				m.settings(r.Version, report.Settings)
			}
			for _, t := range report.SelfTest {
				if !t.OK {
					m.Failed++
				}
			}
		}
		return m, err
	})
	return r, err
}

// settings sets Version and Update to what the agent reports about its settings: the name of the rollout if it uses those of the
// rollout, otherwise the number of the version. The version for the way back has the number of the previous one.
func (m *RolloutMember) settings(name string, s *protocol.SettingsStatus) {
	m.Version, m.Update = "0", nil
	if s == nil {
		return
	}
	switch {
	case m.Goal != 0 && s.Version == m.Goal:
		m.Version = name
	case m.Back != 0 && s.Version == m.Back:
		m.Version = m.BeforeVersion
	default:
		m.Version = strconv.FormatUint(s.Version, 10)
		m.Changed = m.Goal != 0 && s.Version > max(m.Goal, m.Back)
	}
	if e := s.Ended; e != nil && m.Goal != 0 && e.Version == m.Goal {
		m.Update = &protocol.UpdateStatus{Version: name, State: protocol.UpdateFailed, Detail: e.Detail}
		if e.State == protocol.SettingsRolledBack {
			m.Update.State = protocol.UpdateRolledBack
		}
	}
}

// PutRollout stores the progress of a rollout.
func PutRollout(ctx context.Context, tx pgx.Tx, r Rollout) error {
	batch := new(pgx.Batch)
	optional := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	batch.Queue(`update agent_rollout set wave = $2, state = $3, reason = $4, ended_at = $5 where id = $1`,
		r.ID, r.Wave, r.State, r.Reason, optional(r.EndedAt))
	for _, m := range r.Members {
		batch.Queue(`
			update agent_rollout_member set state = $3, before_version = $4, before_failed = $5, asked_at = $6, since = $7, detail = $8,
				goal = nullif($9, 0), back = nullif($10, 0), wave = $11, failure = $12, before_failure = $13
			where rollout_id = $1 and username = $2
			  and (state, before_version, before_failed, asked_at, since, detail, coalesce(goal, 0), coalesce(back, 0), wave, failure, before_failure)
				is distinct from ($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`,
			r.ID, m.Username, m.State, m.BeforeVersion, m.BeforeFailed, optional(m.AskedAt), optional(m.Since), m.Detail, int64(m.Goal), int64(m.Back),
			m.Wave, m.Failure, m.BeforeFailure)
	}
	return tx.SendBatch(ctx, batch).Close()
}

// ReopenRollout opens a rollout that has ended, and stores its packages and its progress. It returns ErrRolloutOpen if another one is
// open.
func ReopenRollout(ctx context.Context, tx pgx.Tx, r Rollout) error {
	packages, err := json.Marshal(r.Packages)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `update agent_rollout set packages = $2, ended_at = null where id = $1`, r.ID, packages)
	if IsUniqueViolation(err, "agent_rollout_open") {
		return ErrRolloutOpen
	}
	if err != nil {
		return err
	}
	return PutRollout(ctx, tx, r)
}
