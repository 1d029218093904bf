package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

func TestForTools(t *testing.T) {
	t.Parallel()
	for have, want := range map[string]string{
		"postgres://u:geheim@h:5433/db?sslmode=verify-full&pool_max_conns=9": "postgres://u@h:5433/db?sslmode=verify-full",
		"postgresql://h/db": "postgresql://h/db",
		"postgres:///postgres?host=%2Frun%2Fa%20b&port=5432": "postgres:///postgres?host=%2Frun%2Fa%20b&port=5432",
		"host=h password=geheim dbname=db pool_max_conns=3":  "host=h  dbname=db",
		`host=h password='ge \' heim' dbname=db`:             "host=h  dbname=db",
		"postgres://u@h/db?password=geheim&sslmode=disable":  "postgres://u@h/db?sslmode=disable",
	} {
		if got := forTools(have); got != want {
			t.Errorf("%s: %s, want %s", have, got, want)
		}
	}
}

// rows counts the rows of every table.
func rows(t *testing.T, url string) map[string]int {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	found, err := conn.Query(t.Context(), `select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for _, table := range tables {
		var n int
		if err := conn.QueryRow(t.Context(), `select count(*) from `+pgx.Identifier{table}.Sanitize()).Scan(&n); err != nil {
			t.Fatal(err)
		}
		all[table] = n
	}
	return all
}

// startedOn stores what a service stores at its first start.
func startedOn(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `insert into installation (sealed, grant_keys) values ('', '{}')`); err != nil {
		t.Fatal(err)
	}
}

func TestBackupAndRestore(t *testing.T) {
	s := newShell(t).withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	url := os.Getenv("YEOLDA_DATABASE_URL")
	file := filepath.Join(t.TempDir(), "backup")
	s.ok("backup", file)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if _, errOut, code := s.run("", "restore", file); code == 0 || !strings.Contains(errOut, "not empty") {
		t.Errorf("over a database in use: %d %s", code, errOut)
	}
	want := rows(t, url)
	delete(want, "work_success") // the backup records its own success after the dump
	want["rebuild"]++            // restoring begins one
	restored := pgtest.Empty(t, url)
	s.Setenv("YEOLDA_DATABASE_URL", restored)
	broken := filepath.Join(t.TempDir(), "broken")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, content[:len(content)*2/3], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, code := s.run("", "restore", broken); code == 0 {
		t.Error("half a backup was restored")
	}
	if left := rows(t, restored); len(left) != 0 {
		t.Errorf("half a backup left %v", left)
	}
	for name, content := range map[string]string{"none": "", "other": "not a pseudonym\n"} { // before anything is restored
		list := filepath.Join(t.TempDir(), name)
		if content != "" {
			if err := os.WriteFile(list, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, errOut, code := s.run("", "restore", file, "--erasures", list); code == 0 || !strings.Contains(errOut, list) {
			t.Errorf("restored with a list of erasures that cannot be used: %d %s", code, errOut)
		}
	}
	s.ok("branch", "list") // migrates: a schema without data is no obstacle
	startedOn(t, restored) // and neither is a service that was started before
	s.ok("restore", file)
	got := rows(t, restored)
	if len(got) < 20 || got["branch"] != 3 {
		t.Errorf("restored: %v", got)
	}
	for table, n := range want {
		if got[table] != n {
			t.Errorf("%s: %d rows, want %d", table, got[table], n)
		}
	}
	// A backup that cannot be made leaves no file behind that looks like one.
	s.Setenv("YEOLDA_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none")
	missing := filepath.Join(t.TempDir(), "missing")
	if _, _, code := s.run("", "backup", missing); code == 0 {
		t.Error("a backup of nothing")
	}
	if left, _ := filepath.Glob(missing + "*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTwoBackupsAtOnce: the timer and an operator write the same file. Each backup is complete.
func TestTwoBackupsAtOnce(t *testing.T) {
	s := newShell(t).withDatabase()
	s.ok("branch", "apply", "-f", demoFile)
	dir := t.TempDir()
	file := filepath.Join(dir, "backup")
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if _, errOut, code := s.run("", "backup", file); code != 0 {
				t.Errorf("exit code %d: %s", code, errOut)
			}
		})
	}
	both.Wait()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 1 {
		t.Errorf("got the files %v, want the backup only", left)
	}
	s.Setenv("YEOLDA_DATABASE_URL", pgtest.Empty(t, os.Getenv("YEOLDA_DATABASE_URL")))
	s.ok("restore", file)
}

func TestReseal(t *testing.T) {
	s := newShell(t).withDatabase()
	oldKey, newKey := seal.NewKey(), seal.NewKey()
	s.Setenv("YEOLDA_ENCRYPTION_KEY", oldKey)
	s.ok("branch", "apply", "-f", demoFile)

	s.Setenv("YEOLDA_ENCRYPTION_KEY", newKey)
	if _, errOut, code := s.run("", "reseal"); code == 0 || !strings.Contains(errOut, "cannot be opened") {
		t.Errorf("without the old key: %d %s", code, errOut)
	}
	s.Setenv("YEOLDA_ENCRYPTION_KEY", newKey+","+oldKey)
	if out, _, _ := s.run("", "doctor", "--offline"); !strings.Contains(out, "yeolda reseal") {
		t.Errorf("the doctor does not mind old seals: %s", out)
	}
	if out := s.ok("reseal"); !strings.Contains(out, "door_pin.pin: 14 sealed with the new key") {
		t.Errorf("%s", out)
	}
	if out := s.ok("reseal"); !strings.Contains(out, "door_pin.pin: 0 sealed") {
		t.Errorf("again: %s", out)
	}
	s.Setenv("YEOLDA_ENCRYPTION_KEY", newKey)
	if out, _, _ := s.run("", "doctor", "--offline"); strings.Contains(out, "do not open") || strings.Contains(out, "yeolda reseal") {
		t.Errorf("with the new key alone: %s", out)
	}
}

// TestResealAfterALoss: the PINs of the doors are sealed with a key that was lost. The next rotation covers everything else.
func TestResealAfterALoss(t *testing.T) {
	s := newShell(t).withDatabase()
	s.Setenv("YEOLDA_ENCRYPTION_KEY", seal.NewKey())
	s.ok("branch", "apply", "-f", demoFile)
	present, next := seal.NewKey(), seal.NewKey()
	s.Setenv("YEOLDA_ENCRYPTION_KEY", present)
	s.ok("adopt", "--lost")
	s.Setenv("YEOLDA_ENCRYPTION_KEY", next+","+present)
	out, errOut, code := s.run("", "reseal")
	if code == 0 || !strings.Contains(errOut, "door_pin.pin: 14 values cannot be opened") || !strings.Contains(out, "installation.sealed: 1 sealed with the new key") {
		t.Errorf("exit code %d, want 1, the lost PINs and the constant of the installation:\n%s%s", code, out, errOut)
	}
}
