package postgres_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	osexec "os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestPoolerInTransactionModeIsRejected connects through a real PgBouncer.
func TestPoolerInTransactionModeIsRejected(t *testing.T) {
	t.Parallel()
	program, err := osexec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !exists(program) {
			t.Skip("PgBouncer is not installed (Debian: pgbouncer)")
		}
	}
	const ignored = "statement_timeout,idle_in_transaction_session_timeout,lock_timeout,jit,plan_cache_mode,enable_seqscan,enable_hashjoin,enable_mergejoin"
	for _, mode := range []string{"transaction", "session"} {
		for _, parameters := range []string{"", ignored} {
			t.Run(fmt.Sprintf("%s, ignored: %t", mode, parameters != ""), func(t *testing.T) {
				t.Parallel()
				db, err := postgres.Open(t.Context(), bouncer(t, program, pgtest.URL(t), mode, parameters), slog.New(slog.DiscardHandler))
				if err == nil {
					db.Close()
				}
				if !errors.Is(err, postgres.ErrPooler) {
					t.Errorf("got %v, want ErrPooler", err)
				}
			})
		}
	}
}

// TestPoolerIsRecognisedByItsSessions configures all expected settings behind PgBouncer, so that only the sessions differ:
// transaction mode loses them, session mode keeps them.
func TestPoolerIsRecognisedByItsSessions(t *testing.T) {
	t.Parallel()
	program, err := osexec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !exists(program) {
			t.Skip("PgBouncer is not installed (Debian: pgbouncer)")
		}
	}
	for mode, rejected := range map[string]bool{"transaction": true, "session": false} {
		pool, err := pgxpool.New(t.Context(), bouncer(t, program, pgtest.URL(t), mode, ""))
		if err != nil {
			t.Fatal(err)
		}
		if err := postgres.RejectPooler(t.Context(), pool); errors.Is(err, postgres.ErrPooler) != rejected {
			t.Errorf("pool_mode=%s: got %v, want rejected: %t", mode, err, rejected)
		}
		pool.Close()
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// bouncer runs PgBouncer for the database at a URL until the test ends, and returns the URL of PgBouncer.
func bouncer(t *testing.T, program, direct, mode, ignored string) string {
	t.Helper()
	target, err := pgx.ParseConfig(direct)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, free, _ := net.SplitHostPort(listener.Addr().String())
	listener.Close()
	dir := t.TempDir()
	config := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n%s = host=%s port=%d user=%s\n[pgbouncer]\nlisten_addr=127.0.0.1\nlisten_port=%s\nunix_socket_dir=\nauth_type=any\npool_mode=%s\nignore_startup_parameters=%s\n",
		target.Database, target.Host, target.Port, target.User, free, mode, ignored)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	command := osexec.Command(program, config)
	if os.Geteuid() == 0 { // PgBouncer does not run as root
		other, err := user.Lookup("postgres")
		if err != nil {
			t.Skip(err)
		}
		uid, _ := strconv.Atoi(other.Uid)
		gid, _ := strconv.Atoi(other.Gid)
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		for path := dir; path != "/" && path != "."; path = filepath.Dir(path) {
			if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o005 != 0o005 {
				_ = os.Chmod(path, info.Mode().Perm()|0o055)
			}
		}
	}
	command.Stdout, command.Stderr = t.Output(), t.Output()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+free); err == nil {
			conn.Close()
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("postgres://%s@127.0.0.1:%s/%s?sslmode=disable", target.User, free, target.Database)
}
