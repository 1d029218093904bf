package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/protocol"
)

// ErrSettingsChanged is returned if the last version of an agent's settings is not the one that a change began with.
var ErrSettingsChanged = errors.New("postgres: the settings of the agent have changed")

// ErrNoSettings is returned for a version of settings that does not exist.
var ErrNoSettings = errors.New("postgres: no such settings")

// keptSettings is the number of versions that are kept of each agent.
const keptSettings = 100

// The states of settings.
const (
	SettingsAsked      = "asked" // sent until the agent answers
	SettingsInUse      = "in-use"
	SettingsRefused    = string(protocol.SettingsRefused)
	SettingsRolledBack = string(protocol.SettingsRolledBack)
)

// AgentSettings is a version of the settings of an agent.
type AgentSettings struct {
	Version   uint64
	Text      string
	CreatedBy string
	CreatedAt time.Time
	State     string // one of the constants; replaced: was in use; superseded: a later version came before the answer
	Detail    string
	StateAt   time.Time // the state began
}

// maxReportedVersion bounds the number of a version that an agent may claim to have.
const maxReportedVersion = 1_000_000_000

// NewSettings is the next version of the settings of an agent.
type NewSettings struct {
	Username string
	Base     *uint64 // the last version known to the author; nil: any
	Text     string
	By       string // the actor in the audit log
}

// InsertSettings adds the next version of the settings of an agent, which is then sent to it. Its number is higher than every one that
// the agent has received: after a restore the database lacks the latest ones. It returns ErrNoAgent for an unknown or revoked credential, and ErrSettingsChanged.
func InsertSettings(ctx context.Context, tx pgx.Tx, s NewSettings, now time.Time) (version uint64, err error) {
	var last, received uint64
	err = tx.QueryRow(ctx, `
		select least(coalesce((report -> 'settings' ->> 'highest')::numeric, 0), $2) from agent_credential
		where username = $1 and revoked_at is null for no key update`, s.Username, maxReportedVersion).Scan(&received)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, ErrNoAgent
	}
	if err != nil {
		return 0, err
	}
	// A statement of its own: one that waits for the lock does not see the version of the editor before it.
	err = tx.QueryRow(ctx, `select coalesce(max(version), 0) from agent_settings where username = $1`, s.Username).Scan(&last)
	if err != nil {
		return 0, err
	}
	received = max(received, last)
	if s.Base != nil && *s.Base != last && *s.Base != received {
		return 0, ErrSettingsChanged
	}
	last = received
	batch := new(pgx.Batch)
	batch.Queue(`update agent_settings set state = 'superseded', state_at = $2 where username = $1 and state = 'asked'`, s.Username, now)
	batch.Queue(`insert into agent_settings (username, version, settings, created_by, created_at, state_at) values ($1, $2, $3, $4, $5, $5)`,
		s.Username, last+1, s.Text, s.By, now)
	batch.Queue(`delete from agent_settings where username = $1 and version <= $2 and state <> 'in-use'`, s.Username, int64(last+1)-keptSettings)
	return last + 1, tx.SendBatch(ctx, batch).Close()
}

// SettingsOf returns the versions of the settings of an agent without their texts, the newest first.
func SettingsOf(ctx context.Context, q Querier, username string) ([]AgentSettings, error) {
	return settings(ctx, q, `
		select version, '', created_by, created_at, state, detail, state_at from agent_settings where username = $1 order by version desc`, username)
}

// SettingsVersion returns a version of the settings of an agent; 0: the last one. It returns ErrNoSettings.
func SettingsVersion(ctx context.Context, q Querier, username string, version uint64) (AgentSettings, error) {
	found, err := settings(ctx, q, `
		select version, settings, created_by, created_at, state, detail, state_at from agent_settings
		where username = $1 and (version = $2 or $2 = 0) order by version desc limit 1`, username, version)
	if err != nil || len(found) == 0 {
		return AgentSettings{}, errors.Join(err, ErrNoSettings)
	}
	return found[0], nil
}

// SettingsReport returns what an agent has reported about its settings last; nil: nothing yet, or it takes none. It returns ErrNoAgent.
func SettingsReport(ctx context.Context, q Querier, username string) (status *protocol.SettingsStatus, err error) {
	err = q.QueryRow(ctx, `select report -> 'settings' from agent_credential where username = $1`, username).Scan(&status)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrNoAgent
	}
	return status, err
}

func settings(ctx context.Context, q Querier, sql string, args ...any) ([]AgentSettings, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[AgentSettings])
}

// OpenSettings is a version of settings that an agent has not answered.
type OpenSettings struct {
	Agent    protocol.Agent
	Version  uint64
	Text     string
	Online   bool
	KeyEpoch uint64                   // of the grant keys in use
	Status   *protocol.SettingsStatus // as reported last; nil: never, or the agent takes no settings
}

// ReopenSettings opens versions again: each last one that its agent has lost, with its SD card, and those that an agent uses although a
// later one came before its answer, because it refused that one or returned from it. It ends those that an agent has left for a version
// which the database lost by a restoration. It reads the reports of all agents.
func ReopenSettings(ctx context.Context, q Querier, now time.Time) error {
	batch := new(pgx.Batch)
	batch.Queue(`
		update agent_settings s set state = 'asked', state_at = $1 from agent_credential a
		where s.username = a.username and a.online and a.revoked_at is null
		  and (s.state = 'in-use' and (a.report -> 'settings' ->> 'highest')::numeric < s.version
		         and not exists (select from agent_settings later where later.username = s.username and later.version > s.version)
		       or s.state = 'superseded' and (a.report -> 'settings' ->> 'version')::numeric = s.version)`, now)
	batch.Queue(`
		update agent_settings s set state = case s.state when 'asked' then 'superseded' else 'replaced' end, state_at = $1 from agent_credential a
		where s.username = a.username and a.online and a.revoked_at is null and s.state in ('asked', 'in-use')
		  and (a.report -> 'settings' ->> 'version')::numeric <> s.version
		  and (a.report -> 'settings' ->> case s.state when 'asked' then 'highest' else 'version' end)::numeric >
		      (select max(last.version) from agent_settings last where last.username = s.username)`, now)
	return q.SendBatch(ctx, batch).Close()
}

// LockOpenSettings returns the settings that are to be sent or have been answered, and locks them; those on which another replica
// works are omitted.
func LockOpenSettings(ctx context.Context, tx pgx.Tx) ([]OpenSettings, error) {
	rows, err := tx.Query(ctx, `
		select b.code, s.username, s.version, s.settings, a.online, a.key_epoch, a.report -> 'settings'
		from agent_settings s join agent_credential a on a.username = s.username join branch b on b.id = a.branch_id
		where s.state = 'asked' and a.revoked_at is null order by s.username for update of s skip locked`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (o OpenSettings, err error) {
		err = row.Scan(&o.Agent.Branch, &o.Agent.Username, &o.Version, &o.Text, &o.Online, &o.KeyEpoch, &o.Status)
		return o, err
	})
}

// EndSettings stores the answer of an agent to a version of its settings.
func EndSettings(ctx context.Context, tx pgx.Tx, username string, version uint64, state, detail string, now time.Time) error {
	batch := new(pgx.Batch)
	if state == SettingsInUse {
		batch.Queue(`update agent_settings set state = 'replaced', state_at = $2 where username = $1 and state = 'in-use'`, username, now)
		batch.Queue(`update agent_settings set state = 'superseded', state_at = $3 where username = $1 and version < $2 and state = 'asked'`,
			username, version, now)
	}
	batch.Queue(`update agent_settings set state = $3, detail = $4, state_at = $5 where username = $1 and version = $2`,
		username, version, state, detail, now)
	return tx.SendBatch(ctx, batch).Close()
}

// CopySettings gives a new credential the settings of the machine that it replaces, as its first version: those in use, or else the
// last ones that were not found wrong. from is the user name of that machine; empty: the branch's active credential, or else the one
// that was seen last.
func CopySettings(ctx context.Context, tx pgx.Tx, username, from string, now time.Time) error {
	_, err := tx.Exec(ctx, `
		insert into agent_settings (username, version, settings, created_by, created_at, state_at)
		select $1, 1, s.settings, 'agent:' || s.username, $3, $3
		from agent_credential new join agent_credential old on old.branch_id = new.branch_id and old.username <> new.username
		join agent_settings s on s.username = old.username
		where new.username = $1 and ($2 = '' or old.username = $2) and s.state in ('in-use', 'asked', 'superseded', 'replaced')
		order by old.active and old.revoked_at is null desc, old.seen_at desc nulls last, old.username, s.state = 'in-use' desc, s.version desc
		limit 1`, username, from, now)
	return err
}

// SettingsOfAll returns the settings that active agents use, by user name.
func SettingsOfAll(ctx context.Context, q Querier) (texts map[string]string, err error) {
	rows, err := q.Query(ctx, `
		select s.username, s.settings from agent_settings s join agent_credential a on a.username = s.username
		where s.state = 'in-use' and a.active and a.revoked_at is null`)
	if err != nil {
		return nil, err
	}
	texts = make(map[string]string)
	var username, text string
	_, err = pgx.ForEachRow(rows, []any{&username, &text}, func() error {
		texts[username] = text
		return nil
	})
	return texts, err
}
