package postgres_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	osexec "os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestConnectionsBoundSilence reads the options of a connection: they bound the silence of a server that is off the network.
func TestConnectionsBoundSilence(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := postgres.Dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	get := func(level, option int) (value int) {
		t.Helper()
		var failed error
		if err := raw.Control(func(fd uintptr) { value, failed = unix.GetsockoptInt(int(fd), level, option) }); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		return value
	}
	if got := time.Duration(get(unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT)) * time.Millisecond; got != postgres.LostTimeout {
		t.Errorf("TCP_USER_TIMEOUT: got %s, want %s", got, postgres.LostTimeout)
	}
	idle, interval := get(unix.IPPROTO_TCP, unix.TCP_KEEPIDLE), get(unix.IPPROTO_TCP, unix.TCP_KEEPINTVL)
	if got := time.Duration(idle+interval) * time.Second; get(unix.SOL_SOCKET, unix.SO_KEEPALIVE) == 0 || got > postgres.LostTimeout {
		t.Errorf("the second keep-alive probe of an idle connection is sent after %s, want at most %s", got, postgres.LostTimeout)
	}
}

// TestServerNoticesALostReplica reads the settings by which the server notices that a replica is off the network: otherwise its locks
// last for hours. On the Unix socket of the tests their values have no effect and read as 0, so only their source is compared.
func TestServerNoticesALostReplica(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name, pool := range map[string]*pgxpool.Pool{"requests": db.Pool, "doors": db.Doors} {
		var set int
		err := pool.QueryRow(t.Context(), `select count(*) from pg_settings where name like $1 and source = 'session'`, "tcp_keepalives_%").Scan(&set)
		if err != nil {
			t.Fatal(err)
		}
		if set != 3 {
			t.Errorf("%s: the session sets %d of idle, interval and count of keep-alive probes, want all", name, set)
		}
	}
}

// TestPoolLeavesALostServer takes the first of two servers off the network while every connection of the pool waits for it. The
// pool must continue at the second one; without the options of TestConnectionsBoundSilence that takes many minutes.
func TestPoolLeavesALostServer(t *testing.T) {
	t.Parallel()
	target, err := pgx.ParseConfig(pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	lost, cut := lostServer(t, target)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	relay(t, listener, target)
	hosts := fmt.Sprintf("%s,%s", lost, listener.Addr())
	db, err := postgres.Open(t.Context(), fmt.Sprintf("postgres://%s:%s@%s/%s?sslmode=disable&statement_timeout=0", target.User, target.Password, hosts, target.Database), slog.New(slog.NewTextHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	conns := int(db.Pool.Config().MaxConns)
	there, failed := make(chan bool, conns), make(chan error, conns)
	var connected sync.WaitGroup
	connected.Add(conns)
	for range conns {
		go func() {
			conn, err := db.Pool.Acquire(t.Context())
			connected.Done()
			if err != nil {
				t.Error(err)
				there <- false
				return
			}
			defer conn.Release()
			connected.Wait()
			if conn.Conn().PgConn().Conn().RemoteAddr().String() != lost { // a loaded machine may have needed the second server
				there <- false
				return
			}
			there <- true
			_, err = conn.Exec(t.Context(), `select pg_sleep($1)`, 3600)
			failed <- err
		}()
	}
	waiting := 0
	for range conns {
		if <-there {
			waiting++
		}
	}
	for sleeping := 0; sleeping < waiting; { // rows of another session: there is no event to wait for
		if err := db.Doors.QueryRow(t.Context(), `select count(*) from pg_stat_activity where datname = current_database() and wait_event = $1`, "PgSleep").Scan(&sleeping); err != nil {
			t.Fatal(err)
		}
	}
	cut()
	for range waiting {
		if err := <-failed; !postgres.IsUnavailable(err) {
			t.Errorf("a statement at the lost server: got %v, want an error that means unavailable", err)
		}
	}
	for name, pool := range map[string]interface {
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	}{"requests": db.Pool, "doors": db.Doors} {
		var one int
		if err := pool.QueryRow(t.Context(), `select $1::int`, 1).Scan(&one); err != nil {
			t.Errorf("%s: after the loss of the first server: %v", name, err)
		}
	}
}

// relay accepts connections and carries their bytes to and from the test server, until the test ends.
func relay(t *testing.T, listener net.Listener, target *pgx.ConnConfig) {
	t.Helper()
	var running sync.WaitGroup
	var mu sync.Mutex
	var open []net.Conn
	closed := false
	keep := func(conn net.Conn) {
		mu.Lock()
		defer mu.Unlock()
		if open = append(open, conn); closed {
			conn.Close()
		}
	}
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			keep(client)
			network, address := pgconn.NetworkAddress(target.Host, target.Port)
			server, err := net.Dial(network, address)
			if err != nil {
				client.Close()
				continue
			}
			keep(server)
			carry := func(to, from net.Conn) {
				_, _ = io.Copy(to, from)
				to.Close()
			}
			running.Go(func() { carry(server, client) })
			running.Go(func() { carry(client, server) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		closed = true
		for _, conn := range open {
			conn.Close()
		}
		mu.Unlock()
		running.Wait()
	})
}

// lostServer relays to the test server from a network namespace of its own. cut takes it off the network: packets are dropped, and
// no connection is closed. It skips the test without root or iproute2.
func lostServer(t *testing.T, target *pgx.ConnConfig) (address string, cut func()) {
	t.Helper()
	name := fmt.Sprintf("yeolda%d", os.Getpid())
	network := netip.AddrFrom4([4]byte{198, 18 + byte(os.Getpid()>>14&1), byte(os.Getpid() >> 6), byte(os.Getpid() << 2)}) // for benchmarks: RFC 2544
	here := network.Next()
	there := here.Next()
	ip := func(args ...string) {
		t.Helper()
		if out, err := osexec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Skipf("no network namespace: ip %v: %v %s", args, err, out)
		}
	}
	ip("netns", "add", name)
	t.Cleanup(func() {
		_ = osexec.Command("ip", "link", "del", name).Run() // the end of the namespace would remove it later
		if out, err := osexec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
	ip("addr", "add", here.String()+"/30", "dev", name)
	ip("link", "set", name, "up")
	ip("-n", name, "addr", "add", there.String()+"/30", "dev", "eth0")
	ip("-n", name, "link", "set", "eth0", "up")
	listener, err := listenIn(name, netip.AddrPortFrom(there, 5432).String())
	if err != nil {
		t.Skip("no network namespace:", err)
	}
	relay(t, listener, target)
	return listener.Addr().String(), func() { ip("link", "set", name, "down") }
}

// listenIn listens in a network namespace. The thread that entered it ends with its goroutine.
func listenIn(namespace, address string) (listener net.Listener, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		var file *os.File
		if file, err = os.Open("/run/netns/" + namespace); err != nil {
			return
		}
		defer file.Close()
		if err = unix.Setns(int(file.Fd()), unix.CLONE_NEWNET); err == nil {
			listener, err = net.Listen("tcp", address)
		}
	}()
	<-done
	return listener, err
}
