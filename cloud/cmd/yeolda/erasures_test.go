package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// A person is erased after a backup. The restored backup brings the person back until the service has erased it again.
func TestErasureSurvivesARestore(t *testing.T) {
	s := newShell(t)
	shop := servicetest.Start(t)
	s.Setenv("YEOLDA_DATABASE_URL", shop.Settings.Database.URL)
	guest := shop.Client(t)
	guest.Post("/franchise/inquiries", map[string]any{"name": "박지울", "mobileNum": "010-8888-0001", "email": "jiul@example.com", "region": "부산", "message": "지울입니다", "privacyConsent": true}).OK(t)
	shop.Client(t).Post("/franchise/inquiries", map[string]any{"name": "이하나", "mobileNum": "010-7777-6666", "email": "hana@example.com", "region": "부산", "message": "x", "privacyConsent": true}).OK(t)
	if _, err := shop.DB.Pool.Exec(t.Context(), `
		insert into reservation (branch_id, room_id, start_at, end_at, occupied, state, source, name, mobile, mobile_key, email, email_key)
		select m.branch_id, m.id, now() - interval '10 days', now() - interval '10 days' + interval '1 hour',
			tstzrange(now() - interval '10 days', now() - interval '10 days' + interval '1 hour'), 'DONE', 'CUSTOMER', '박지울', '010-8888-0001', '01088880001', 'jiul@example.com', 'jiul@example.com'
		from room m order by m.id limit 1`); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	old, later := filepath.Join(dir, "old"), filepath.Join(dir, "later")
	s.ok("backup", old)
	erased := shop.Admin(t, "hq", "hq-demo")
	for _, contact := range []string{"010-8888-0001", "jiul@example.com"} {
		erased.Post("/v2/admin/personal-data/erase", map[string]string{"contact": contact}).OK(t)
	}
	s.ok("backup", later) // adds to the list of erasures
	list, err := os.ReadFile(filepath.Join(dir, "erasures"))
	if err != nil || len(strings.Fields(string(list))) != 2 || strings.Contains(string(list), "8888") || strings.Contains(string(list), "jiul") {
		t.Fatalf("list of erasures: %q, %v", list, err)
	}

	restored := pgtest.Empty(t, shop.Settings.Database.URL)
	s.Setenv("YEOLDA_DATABASE_URL", restored)
	s.ok("restore", old)
	if !strings.Contains(everything(t, restored), "박지울") {
		t.Fatal("the backup does not contain the person: nothing was tested")
	}
	again := servicetest.Start(t, func(set *config.Settings) {
		set.Database.URL = restored
		set.Secrets = shop.Settings.Secrets
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		left, err := postgres.PendingErasures(t.Context(), again.DB.Pool)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("not erased again: %v %v", left, err)
		}
		if len(left) == 0 {
			break
		}
	}
	content := everything(t, restored)
	for _, trace := range []string{"지울", "01088880001", "8888-0001", "jiul"} {
		if at := strings.Index(content, trace); at >= 0 {
			t.Errorf("%q is in the restored database: %s", trace, content[max(0, at-100):at+len(trace)])
		}
		if strings.Contains(again.Log.String(), trace) {
			t.Errorf("%q is in the log", trace)
		}
	}
	if !strings.Contains(content, "이하나") {
		t.Error("another person was erased")
	}
	s.ok("audit", "verify")
}

// The lists of two machines were joined by hand and name a person twice. A backup adds to such a list, too.
func TestErasureIsAddedToAJoinedList(t *testing.T) {
	s := newShell(t).withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	conn, err := pgx.Connect(t.Context(), os.Getenv("YEOLDA_DATABASE_URL"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	const known, erased = "0123456789abcdef", "fedcba9876543210"
	if _, err := conn.Exec(t.Context(), `insert into erasure_pending values ('`+erased+`')`); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	list := filepath.Join(dir, "erasures")
	if err := os.WriteFile(list, []byte(known+"\n"+known+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ok("backup", filepath.Join(dir, "backup"))
	if got, err := os.ReadFile(list); err != nil || string(got) != known+"\n"+erased+"\n" {
		t.Errorf("got %q, %v, want both persons once", got, err)
	}
}

// everything returns all rows of a database as text.
func everything(t *testing.T, url string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var all strings.Builder
	for table := range rows(t, url) {
		var content json.RawMessage
		if err := conn.QueryRow(t.Context(), `select coalesce(jsonb_agg(to_jsonb(x)), '[]') from `+pgx.Identifier{table}.Sanitize()+` x`).Scan(&content); err != nil {
			t.Fatal(err)
		}
		all.Write(content)
	}
	return all.String()
}
