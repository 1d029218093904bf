package grantkey_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var first = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

// fleet is a fixture: branches with a room that is reserved now, the broker, and the services of doors and devices.
type fleet struct {
	t       testing.TB
	db      *postgres.DB
	sealed  *seal.Keyring
	ring    *grantkey.Ring
	doors   *access.Service
	devices *device.Service
	addr    string
	keys    map[string]string // of the reservations, by branch
	thief   atomic.Pointer[ed25519.PrivateKey]
}

// noClimate implements the interface of climate with no operations.
type noClimate struct{}

func (noClimate) Commanded(context.Context, protocol.Agent, protocol.ClimateResult) error { return nil }
func (noClimate) Measured(context.Context, protocol.Agent, protocol.SensorsReadings) error {
	return nil
}

// thieves is a link whose grants are signed with the thief's key, if there is one.
type thieves struct {
	access.Link
	of *fleet
}

func (l thieves) Send(to protocol.Peer, m protocol.Message) error {
	if grant, ok := m.(protocol.Grant); ok && l.of.thief.Load() != nil {
		m = grant.Sign(*l.of.thief.Load())
	}
	return l.Link.Send(to, m)
}

func newFleet(t testing.TB, branches int) *fleet {
	t.Helper()
	f := &fleet{t: t, db: pgtest.New(t), keys: make(map[string]string, branches)}
	var err error
	if f.sealed, err = seal.New(bytes.Repeat([]byte{1}, seal.KeySize)); err != nil {
		t.Fatal(err)
	}
	f.ring = f.newRing()
	for i := range branches {
		branch := fmt.Sprintf("load-%04d", i+1)
		f.keys[branch] = uuid.NewString()
		hash := sha256.Sum256([]byte(protocol.AgentID(branch) + "-demo"))
		f.exec(`insert into branch (code) values ($1)`, branch)
		f.exec(`insert into room (branch_id, no) select id, 1 from branch where code = $1`, branch)
		f.exec(`insert into agent_credential (username, branch_id, secret_hash, active) select $2, id, $3, true from branch where code = $1`,
			branch, protocol.AgentID(branch), hash[:])
		f.exec(`
			insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, method, amount, doorlock_key)
			select b.id, r.id, 'DONE', 'CUSTOMER', s, s + interval '2 hours', tstzrange(s, s + interval '130 minutes'), '카드', 1000, $2
			from branch b join room r on r.branch_id = b.id, (select date_bin('10 minutes', now() - interval '30 minutes', '2026-01-01') as s) s
			where b.code = $1`, branch, f.keys[branch])
	}
	log := slog.New(slog.DiscardHandler)
	f.doors = &access.Service{DB: f.db, Keys: f.sealed, GrantKeys: f.ring, Log: log, Alone: true}
	f.devices = &device.Service{DB: f.db, Log: log, OfferKeys: f.ring.Offer}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = listener.Addr().String()
	link, err := broker.New(broker.Config{Listener: listener, Doors: f.doors, Devices: f.devices, Climate: noClimate{}, Log: log,
		Credentials: func(ctx context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
			return postgres.FindAgents(ctx, f.db.Pool, usernames, found)
		}})
	if err != nil {
		t.Fatal(err)
	}
	f.doors.Link, f.ring.Send = thieves{link, f}, link.Send
	f.devices.Send = link.Send
	f.run(link.Run)
	f.run(f.doors.Run)
	return f
}

func (f *fleet) newRing() *grantkey.Ring {
	return &grantkey.Ring{DB: f.db, Keys: f.sealed, First: []ed25519.PrivateKey{first}, Log: slog.New(slog.DiscardHandler)}
}

// run runs a function until the test ends.
func (f *fleet) run(run func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
}

func (f *fleet) exec(sql string, args ...any) {
	f.t.Helper()
	if _, err := f.db.Pool.Exec(f.t.Context(), sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) agent(branch string) *agenttest.Agent {
	f.t.Helper()
	return agenttest.Connect(f.t, agenttest.Config{Branch: branch, Dial: agenttest.TCP(f.addr),
		Keys: f.trusted()})
}

func (f *fleet) trusted() []ed25519.PublicKey {
	return []ed25519.PublicKey{first.Public().(ed25519.PublicKey)}
}

func (f *fleet) of(branch string) protocol.Agent {
	return protocol.Agent{Branch: branch, Username: protocol.AgentID(branch)}
}

// press opens the room of a branch and returns the result.
func (f *fleet) press(branch string) (access.Status, error) {
	id, err := f.doors.Request(f.t.Context(), branch, access.Room, f.keys[branch])
	if err != nil {
		return "", err
	}
	outcome, err := f.doors.Await(f.t.Context(), "", id, f.keys[branch])
	return outcome.Status, err
}

func (f *fleet) wantPress(branch string, want access.Status) {
	f.t.Helper()
	if got, err := f.press(branch); got != want || err != nil {
		f.t.Errorf("press at %s: got %s, %v, want %s", branch, got, err, want)
	}
}

// until waits for a condition of the database.
func (f *fleet) until(what, sql string, args ...any) {
	f.t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		var ok bool
		if err := f.db.Pool.QueryRow(f.t.Context(), sql, args...).Scan(&ok); err != nil {
			f.t.Fatal(err)
		}
		if ok {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("not reached: %s", what)
		}
	}
}

// rotated is true once no key but the new one is in use by any agent.
const rotated = `select (select max(epoch) from grant_key_list) = $1 and not exists (select from agent_credential where key_epoch < $1)`

// TestRotation replaces the key while agents are connected and pressed. Afterwards the old key opens nothing.
func TestRotation(t *testing.T) {
	t.Parallel()
	rotate(t, 25)
}

// BenchmarkRotation rotates the key of 1,000 agents under load. It runs once.
func BenchmarkRotation(b *testing.B) {
	for b.Loop() {
		rotate(b, 1000)
	}
}

func rotate(t testing.TB, agents int) {
	f := newFleet(t, agents)
	branches := make([]string, 0, agents)
	connected := make([]*agenttest.Agent, agents)
	for branch := range f.keys {
		connected[len(branches)] = f.agent(branch)
		branches = append(branches, branch)
	}
	f.until("every agent is online", `select not exists (select from agent_credential where not online)`)

	var presses, failed atomic.Int64
	var mu sync.Mutex
	var took []time.Duration
	stop := make(chan struct{})
	var load sync.WaitGroup
	const pressers = 8
	for n := range pressers {
		load.Go(func() {
			for i := n; ; i += pressers {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				status, err := f.press(branches[i%agents])
				presses.Add(1)
				if status != access.Success || err != nil {
					failed.Add(1)
					t.Errorf("press at %s: got %s, %v, want SUCCESS", branches[i%agents], status, err)
				}
				mu.Lock()
				took = append(took, time.Since(began))
				mu.Unlock()
			}
		})
	}
	f.run(f.ring.Run)
	began := time.Now()
	if epoch, err := f.newRing().Rotate(t.Context(), "cli:root"); epoch != 1 || err != nil {
		t.Fatalf("got epoch %d, %v, want 1", epoch, err)
	}
	f.until("the rotation is finished everywhere", rotated, 2)
	finished := time.Since(began)
	close(stop)
	load.Wait()

	for i, a := range connected {
		if epoch := a.KeyEpoch(); epoch != 2 {
			t.Fatalf("agent of %s: got epoch %d, want 2", branches[i], epoch)
		}
	}
	f.thief.Store(&first)
	before := len(connected[0].Driven())
	if status, err := f.press(branches[0]); status == access.Success || !errors.Is(err, access.ErrNoResult) && err != nil {
		t.Errorf("press with the old key: got %s, %v, want no success", status, err)
	}
	if n := len(connected[0].Driven()); n != before {
		t.Error("the old key opened a door after the rotation")
	}
	f.thief.Store(nil)
	f.wantPress(branches[0], access.Success)

	if b, ok := t.(*testing.B); ok {
		slices.Sort(took)
		b.ReportMetric(float64(presses.Load()), "presses")
		b.ReportMetric(float64(failed.Load()), "failed")
		b.ReportMetric(finished.Seconds(), "rotation-s")
		b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
	}
}

// TestRotationWaitsForActiveAgents checks that the old key stays in use while an active agent is away, that an explicit step
// retires it, and that the agent catches up when it returns, with every list it missed.
func TestRotationWaitsForActiveAgents(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.agent("load-0001")
	away := f.agent("load-0002")
	f.until("both agents are online", `select not exists (select from agent_credential where not online)`)
	away.Close()
	f.until("an agent is offline", `select count(*) = 1 from agent_credential where not online`)
	f.run(f.ring.Run)
	cli := f.newRing()
	if _, err := cli.Rotate(t.Context(), "cli:root"); err != nil {
		t.Fatal(err)
	}
	if _, err := cli.Rotate(t.Context(), "cli:root"); !errors.Is(err, grantkey.ErrInProgress) {
		t.Errorf("second rotation: got %v, want ErrInProgress", err)
	}
	f.until("the connected agent has the new key", `select key_epoch = 1 from agent_credential where username = 'agent-load-0001'`)
	if err := cli.Finish(t.Context(), "cli:root", false); !errors.Is(err, grantkey.ErrBehind) {
		t.Errorf("finish while an agent is away: got %v, want ErrBehind", err)
	}
	_, behind, err := cli.List(t.Context())
	if err != nil || len(behind) != 1 || behind[0].Agent.Username != "agent-load-0002" {
		t.Errorf("agents behind: got %v, %v, want agent-load-0002", behind, err)
	}
	f.wantPress("load-0001", access.Success)
	if err := cli.Finish(t.Context(), "cli:root", true); err != nil {
		t.Fatal(err)
	}
	if err := cli.Finish(t.Context(), "cli:root", true); !errors.Is(err, grantkey.ErrNone) {
		t.Errorf("second finish: got %v, want ErrNone", err)
	}
	returned := f.agent("load-0002")
	returned.Until(t, "epoch 2", func() bool { return returned.KeyEpoch() == 2 })
	f.until("all agents have the new key", rotated, 2)
	f.wantPress("load-0001", access.Success)
	f.wantPress("load-0002", access.Success)
	keys, behind, err := cli.List(t.Context())
	if err != nil || len(behind) != 0 || len(keys) != 2 || keys[0].RetiredAt.IsZero() || !keys[1].Signs {
		t.Errorf("keys after the rotation: got %+v, %v, %v", keys, behind, err)
	}

	// The next rotation begins with the key of the last one. A credential issued between the two starts with its keys.
	set, err := cli.Current(t.Context(), f.db.Pool)
	if err != nil || set.Epoch != 2 || !slices.Equal(set.Public, []string{keys[1].Public}) {
		t.Errorf("keys of a new credential: got %+v, %v", set, err)
	}
	if epoch, err := cli.Rotate(t.Context(), "cli:root"); epoch != 3 || err != nil {
		t.Fatalf("got epoch %d, %v, want 3", epoch, err)
	}
	f.until("the second rotation is finished everywhere", rotated, 4)
	f.wantPress("load-0002", access.Success)
	var seeds int
	if err := f.db.Pool.QueryRow(t.Context(), `select count(*) from grant_key where seed is not null`).Scan(&seeds); err != nil || seeds != 1 {
		t.Errorf("got %d stored private keys, %v, want the one in use", seeds, err)
	}
}

// TestAgentThatLostItsKeys checks that an agent whose stored list was lost returns to the keys of its credential and
// receives all lists again, and that a reported epoch that does not exist harms no other agent.
func TestAgentThatLostItsKeys(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 2)
	f.run(f.ring.Run)
	a := f.agent("load-0001")
	f.agent("load-0002")
	f.until("both agents are online", `select not exists (select from agent_credential where not online)`)
	if _, err := f.newRing().Rotate(t.Context(), "cli:root"); err != nil {
		t.Fatal(err)
	}
	f.until("the rotation is finished everywhere", rotated, 2)
	a.Close()
	a = f.agent("load-0001")
	a.Until(t, "epoch 2", func() bool { return a.KeyEpoch() == 2 })
	f.until("all agents have the new key", rotated, 2)
	f.wantPress("load-0001", access.Success)

	if err := a.Publish(protocol.Status{State: protocol.Online, BootID: "boot", Connection: 1, StartedAt: time.Now(),
		Inventory: &protocol.Inventory{}, KeyEpoch: 1<<64 - 1}); err != nil {
		t.Fatal(err)
	}
	f.until("the epoch is limited", `select key_epoch = 2 from agent_credential where username = 'agent-load-0001'`)
	f.wantPress("load-0002", access.Success)
}
