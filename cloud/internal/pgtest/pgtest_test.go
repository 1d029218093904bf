//go:build unix

package pgtest

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDatabasesAreMigratedAndSeparate(t *testing.T) {
	t.Parallel()
	for range 5 {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			began := time.Now()
			db := New(t)
			t.Logf("a database in %v", time.Since(began).Round(time.Millisecond))
			var tables int
			err := db.Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_class WHERE relname = ANY($1)`,
				[]string{"reservation", "river_job", "only_mine"}).Scan(&tables)
			if err != nil {
				t.Fatal(err)
			}
			if tables != 2 {
				t.Errorf("%d tables, want reservation and river_job", tables)
			}
			if _, err := db.Pool.Exec(t.Context(), "CREATE TABLE only_mine ()"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func TestDroppedAfterTheTest(t *testing.T) {
	t.Parallel()
	var name string
	t.Run("", func(t *testing.T) {
		db := New(t)
		// A forgotten session must not keep the database.
		conn, err := pgx.Connect(t.Context(), db.Pool.Config().ConnString())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.QueryRow(t.Context(), `SELECT current_database()`).Scan(&name); err != nil {
			t.Fatal(err)
		}
	})
	var left int
	err := New(t).Pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_database WHERE datname = $1`, name).Scan(&left)
	if err != nil || name == "" || left != 0 {
		t.Errorf("database %q after its test: %d, %v", name, left, err)
	}
}

func TestTemplateMadeOnce(t *testing.T) {
	t.Parallel()
	s, err := prepared()
	if err != nil {
		t.Fatal(err)
	}
	s.template = "yeolda_template_half_made"
	if err := s.exec("CREATE DATABASE " + s.template); err != nil { // and the process was killed
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, sql := range []string{"ALTER DATABASE " + s.template + " IS_TEMPLATE false", "DROP DATABASE " + s.template} {
			if err := s.exec(sql); err != nil {
				t.Error(err)
			}
		}
	})
	var wg sync.WaitGroup
	for range 4 { // as other processes would on a shared server
		wg.Go(func() {
			if err := s.makeTemplate(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	conn, err := pgx.Connect(t.Context(), s.url(s.template))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var n int
	if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM river_job`).Scan(&n); err != nil {
		t.Errorf("the template has no schema: %v", err)
	}
}

const victimEnv = "PGTEST_VICTIM"

// TestVictim is the process of TestNothingLeftBehind.
func TestVictim(t *testing.T) {
	if os.Getenv(victimEnv) == "" {
		t.Skip("runs in a process of its own")
	}
	db := New(t)
	var dir string
	if err := db.Pool.QueryRow(t.Context(), `SHOW data_directory`).Scan(&dir); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("\n%s\n", dir)
	if os.Getenv(victimEnv) == "killed" {
		select {}
	}
}

func TestNothingLeftBehind(t *testing.T) {
	t.Parallel()
	if os.Getenv("YEOLDA_TEST_DATABASE_URL") != "" {
		t.Skip("there is no private server")
	}
	for _, end := range []string{"killed", "ends"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$")
			cmd.Env = append(os.Environ(), victimEnv+"="+end)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			var cluster string
			for cluster == "" && lines.Scan() {
				if strings.HasPrefix(lines.Text(), "/") {
					cluster = lines.Text()
				}
			}
			if _, err := os.Stat(cluster); err != nil {
				t.Fatalf("the process printed no data directory: %v", err)
			}
			if end == "killed" {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			// The end of the shared stderr is the end of the keeper.
			if _, err := io.Copy(t.Output(), stderr); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // "signal: killed"
			home := filepath.Dir(filepath.Dir(cluster))
			if _, err := os.Stat(home); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", home, err)
			}
			if out, err := exec.Command("pgrep", "-f", home).Output(); err == nil {
				t.Errorf("processes left: %s", out)
			}
		})
	}
}

func TestAbandonedDataAreRemoved(t *testing.T) {
	t.Parallel()
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	dead := filepath.Join(base, fmt.Sprintf("yeolda-pgtest-%d-1", ended.Process.Pid))
	live := filepath.Join(base, fmt.Sprintf("yeolda-pgtest-%d-1", os.Getpid()))
	for _, dir := range []string{dead, live} {
		if err := os.MkdirAll(filepath.Join(dir, "postgres"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeAbandoned(base)
	if _, err := os.Stat(dead); !os.IsNotExist(err) {
		t.Errorf("the data of a dead keeper are left: %v", err)
	}
	if _, err := os.Stat(live); err != nil {
		t.Errorf("the data of a living keeper: %v", err)
	}
}
