package torture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
	"github.com/yeolda/yeolda/firmware-sim/testkit/faultproxy"
)

// program builds the service once, with failpoints, and returns its path.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "yeolda-torture-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "yeolda")
	build := exec.Command("go", "build", "-tags", "failpoint,nodynamic", "-o", path, "github.com/yeolda/yeolda/cloud/cmd/yeolda")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// rig is a service with its database and provider, and the means to inject faults.
type rig struct {
	ctx      context.Context
	run      int // number of the run, by which points with variants choose one
	box      *sandbox.Sandbox
	provider *faultproxy.Proxy
	database *faultproxy.Proxy
	pool     *pgxpool.Pool // not through the faulty link
	name     string        // of the database
	replicas []*replica
	haste    int
	dir      string
	wills    int
	whole    time.Time // when the last fault ended: the time limit of a point starts here
	cleanup  []func()
}

// replica is one process of the service.
type replica struct {
	rig     *rig
	http    string
	env     []string
	command *exec.Cmd
	done    chan struct{}
	log     *os.File
}

// newRig starts the database and the provider. The point starts the service.
func newRig(ctx context.Context, t testing.TB, run, haste, replicas int, env ...string) (*rig, error) {
	r := &rig{ctx: ctx, run: run, haste: haste, dir: t.TempDir()}
	t.Cleanup(r.close)
	path, err := program()
	if err != nil {
		return nil, err
	}
	direct := pgtest.URL(t)
	config, err := pgxpool.ParseConfig(direct)
	if err != nil {
		return nil, err
	}
	config.MaxConns = 3
	if r.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	r.cleanup = append(r.cleanup, r.pool.Close)
	r.name = config.ConnConfig.Database
	network, address := "tcp", net.JoinHostPort(config.ConnConfig.Host, fmt.Sprint(config.ConnConfig.Port))
	if strings.HasPrefix(config.ConnConfig.Host, "/") {
		network, address = "unix", fmt.Sprintf("%s/.s.PGSQL.%d", config.ConnConfig.Host, config.ConnConfig.Port)
	}
	if r.database, err = faultproxy.New(func() (net.Conn, error) { return net.Dial(network, address) }); err != nil {
		return nil, err
	}
	r.cleanup = append(r.cleanup, r.database.Close)
	dsn := url.URL{Scheme: "postgres", User: url.UserPassword(config.ConnConfig.User, config.ConnConfig.Password),
		Host: r.database.Addr(), Path: r.name, RawQuery: "sslmode=disable&pool_max_conns=10"}

	addresses := make([]string, replicas)
	for i := range addresses {
		addresses[i] = freeAddr()
	}
	r.box, err = sandbox.New(sandbox.Options{
		WebhookURL: "http://" + addresses[0] + "/api/virtualaccount/webhook", PartnerURL: "http://" + addresses[0] + "/partner/v1/events",
		RefundDelay: 50 * time.Millisecond, CallbackRetries: []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second},
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	r.cleanup = append(r.cleanup, func() { _ = r.box.Close() })
	server := httptest.NewServer(r.box)
	r.cleanup = append(r.cleanup, server.Close)
	if r.provider, err = faultproxy.New(func() (net.Conn, error) { return net.Dial("tcp", server.Listener.Addr().String()) }); err != nil {
		return nil, err
	}
	r.cleanup = append(r.cleanup, r.provider.Close)
	mail, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	mailing, stop := context.WithCancel(ctx)
	delivered := make(chan struct{})
	go func() { defer close(delivered); _ = r.box.ServeSMTP(mailing, mail) }()
	r.cleanup = append(r.cleanup, func() { stop(); <-delivered })
	for i, address := range addresses {
		broker := "" // only one service on a database may have the embedded broker; no payment needs one
		if i > 0 {
			broker = "mqtt://127.0.0.1:9"
		}
		r.replicas = append(r.replicas, &replica{rig: r, http: address, env: append(append(os.Environ(),
			"YEOLDA_MODE=demo", "YEOLDA_BROKER_URL="+broker, "YEOLDA_HTTP_ADDR="+address, "YEOLDA_MQTT_ADDR="+freeAddr(), "YEOLDA_METRICS_ADDR="+freeAddr(),
			"YEOLDA_SANDBOX_ADDR="+r.provider.Addr(), "YEOLDA_SANDBOX_SMTP_ADDR="+mail.Addr().String(), "YEOLDA_DATABASE_URL="+dsn.String(),
			"YEOLDA_DATA_DIR="+filepath.Join(r.dir, fmt.Sprint(i)), "YEOLDA_COOKIE_SECURE=false", "YEOLDA_RATE_LIMITS=off",
			"YEOLDA_FAILPOINT_HASTE="+fmt.Sprint(haste), "YEOLDA_SWEEP_EVERY="+(5*time.Second/time.Duration(haste)).String(),
		), env...)})
	}
	apply := exec.CommandContext(ctx, path, "branch", "apply", "-f", filepath.Join(checkout(), "deploy/demo/branches.yaml"))
	apply.Env = r.replicas[0].env
	if out, err := apply.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("branch apply: %w\n%s", err, out)
	}
	return r, nil
}

func (r *rig) close() {
	for _, p := range r.replicas {
		p.kill()
	}
	for i := len(r.cleanup) - 1; i >= 0; i-- {
		r.cleanup[i]()
	}
}

// checkout returns the root of the repository.
func checkout() string {
	out, err := exec.Command("go", "env", "GOWORK").Output()
	if err != nil {
		panic(err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// nextPort counts through the ports below the kernel's range for outgoing connections, so that an address stays free while
// its service is down.
var nextPort atomic.Int32

func freeAddr() string {
	const first, last = 12000, 32000
	for {
		offset := (int32(os.Getpid())*97 + nextPort.Add(1)) % (last - first)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+offset))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String()
	}
}

// mark records that the last fault has ended.
func (r *rig) mark() { r.whole = time.Now() }

// start runs the replica, with a failpoint if one is named, and waits until it is ready.
func (p *replica) start(failpoint string) error {
	path, err := program()
	if err != nil {
		return err
	}
	ready := filepath.Join(p.rig.dir, p.http+".ready")
	_ = os.Remove(ready) // of an earlier process
	if p.log, err = os.OpenFile(filepath.Join(p.rig.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	}
	p.command = exec.Command(path, "serve", "--ready-file", ready)
	p.command.Env = append(p.env, "YEOLDA_FAILPOINT="+failpoint)
	p.command.Stdout, p.command.Stderr = p.log, p.log
	if err := p.command.Start(); err != nil {
		return err
	}
	done := make(chan struct{})
	p.done = done
	go func(command *exec.Cmd) {
		_ = command.Wait() // the point checks how the process ended
		close(done)
	}(p.command)
	for {
		if content, err := os.ReadFile(ready); err == nil && len(content) > 0 {
			p.rig.mark()
			return nil
		}
		select {
		case <-done:
			return fmt.Errorf("the service ended before it was ready\n%s", p.rig.tail())
		case <-p.rig.ctx.Done():
			return p.rig.ctx.Err()
		case <-time.After(10 * time.Millisecond): // another program's file: there is no event to wait for
		}
	}
}

// crashed waits until the replica has hit its failpoint.
func (p *replica) crashed() error {
	select {
	case <-p.done:
	case <-p.rig.ctx.Done():
		return errors.New("the service never came to its failpoint")
	}
	const killed = 137
	if code := p.command.ProcessState.ExitCode(); code != killed {
		return fmt.Errorf("the service ended with %d\n%s", code, p.rig.tail())
	}
	return nil
}

// crashAgain starts the replica and waits until it has hit its failpoint, which it may do before it is ready.
func (p *replica) crashAgain(failpoint string) error {
	started := p.start(failpoint)
	if err := p.crashed(); err != nil {
		return errors.Join(started, err)
	}
	return nil
}

func (p *replica) signal(s syscall.Signal) { _ = p.command.Process.Signal(s) } // the process may have ended

// kill ends the replica at once.
func (p *replica) kill() {
	if p.command == nil || p.command.Process == nil {
		return
	}
	p.signal(syscall.SIGKILL)
	<-p.done
	p.log.Close()
}

// tail returns the end of the service's log.
func (r *rig) tail() string {
	content, err := os.ReadFile(filepath.Join(r.dir, "log"))
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-4000):])
}

// buyer returns a browser that uses the first replica.
func (r *rig) buyer() *moneytest.Buyer { return r.at(r.replicas[0]) }

func (r *rig) at(p *replica) *moneytest.Buyer {
	return moneytest.NewBuyer("http://"+p.http+"/api", r.box)
}

// wish returns a wish for a time that no other buyer of the run uses.
func (r *rig) wish(method string) moneytest.Wish {
	n := r.wills
	r.wills++
	start := time.Now().Truncate(10 * time.Minute).Add(3*time.Hour + time.Duration(n/6)*80*time.Minute)
	return moneytest.Wish{Room: n%6 + 1, Start: start, Method: method, Mobile: fmt.Sprintf("0102%07d", n)}
}

func (r *rig) state(order string) (state string, id int64, err error) {
	err = r.pool.QueryRow(r.ctx, `select state, id from reservation where order_id = $1`, order).Scan(&state, &id)
	return state, id, err
}

// await waits until an order is in a state.
func (r *rig) await(order, want string) error {
	return r.until(func() (bool, error) {
		state, _, err := r.state(order)
		return state == want, err
	}, "order "+order+" is "+want)
}

func (r *rig) until(is func() (bool, error), what string) error {
	for {
		ok, err := is()
		if ok {
			return nil
		}
		select {
		case <-r.ctx.Done():
			return fmt.Errorf("never: %s (%w)", what, err)
		case <-time.After(20 * time.Millisecond): // rows of another process: there is no event to wait for
		}
	}
}

func (r *rig) fault(f sandbox.Fault) error { return r.box.SetFault(f) }

// audit waits until all payments are settled and compares the books with the provider's.
func (r *rig) audit() error {
	return errors.Join(moneytest.Settled(r.ctx, r.pool), moneytest.Audit(r.ctx, r.pool, r.box, 0))
}
