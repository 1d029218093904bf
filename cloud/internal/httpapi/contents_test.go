package httpapi_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// unlimited turns rate limits off, for tests with many attempts.
func unlimited(t *testing.T) *servicetest.Stack {
	return servicetest.Start(t, func(set *config.Settings) { set.HTTP.RateLimits = "off" })
}

// contents is a digest of all tables that requests may change.
func contents(t *testing.T, s *servicetest.Stack) map[string]string {
	t.Helper()
	awaitQuiet(t, s)
	rows, err := s.DB.Pool.Query(t.Context(), `
		select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and relname !~ $1 order by relname`,
		`^(river_leader|river_client|river_queue|goose_db_version|work_success|doctor_check|canary|clock_watch)`)
	if err != nil {
		t.Fatal(err)
	}
	var tables []string
	var name string
	for rows.Next() {
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	// Changes by background work are excluded: the hash chain and the links of the audit log, postponed jobs, the times of the
	// next status checks.
	background := map[string]string{"audit": "case when x.action <> 'audit.link' then x.id::text end", "river_job": "x.id::text", "payment": "x.reservation_id::text"}
	digests := map[string]string{}
	for _, table := range tables {
		switch table {
		case "reconciliation_run", // the service compares its payments with the provider's every few minutes
			"audit_link",          // a job links earlier rows into the audit log
			"event", "event_head": // a job places earlier events; a change of a request shows in its own table
			continue
		}
		columns := cmp.Or(background[table], "x::text")
		digests[table] = only(t, s, `select coalesce(md5(string_agg(`+columns+`, '|' order by `+columns+`)), '') from `+table+` x`)
	}
	return digests
}

// unchanged fails the test if the database has changed.
func unchanged(t *testing.T, s *servicetest.Stack, before map[string]string) {
	t.Helper()
	for table, digest := range contents(t, s) {
		if digest != before[table] {
			t.Errorf("something was written to %s", table)
		}
	}
}

// awaitQuiet waits until earlier background work has finished.
func awaitQuiet(t *testing.T, s *servicetest.Stack) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if only(t, s, `select count(*)::text from river_job where state not in ('completed', 'discarded', 'cancelled', 'scheduled')`) == "0" &&
			only(t, s, `select count(*)::text from message where state in ('QUEUED', 'SENDING')`) == "0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("background work does not end")
		}
	}
}
