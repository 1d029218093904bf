package climate_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/cloud/internal/climate"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// doors ignores door messages.
type doors struct{}

func (doors) Claim(context.Context, protocol.Peer, protocol.Claim) error   { return nil }
func (doors) Result(context.Context, protocol.Peer, protocol.Result) error { return nil }

type fixture struct {
	*climate.Service
	t    *testing.T
	db   *postgres.DB
	addr string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, db: pgtest.New(t)}
	if _, err := f.db.Pool.Exec(t.Context(), `insert into branch (code) select unnest($1::text[])`, []string{"gangnam", "hongdae"}); err != nil {
		t.Fatal(err)
	}
	for _, branch := range []string{"gangnam", "hongdae"} {
		if err := postgres.InsertAgent(t.Context(), f.db.Pool, branch, postgres.NewCredential{Username: protocol.AgentID(branch), SecretHash: []byte("hash")}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.db.Pool.Exec(t.Context(), `update agent_credential set active = true`); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	f.Service = &climate.Service{DB: f.db, Log: log}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = l.Addr().String()
	b, err := broker.New(broker.Config{Listener: l, Doors: doors{}, Devices: &device.Service{DB: f.db, Log: log}, Climate: f.Service, Log: log,
		Credentials: func(_ context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
			for _, username := range usernames {
				hash := sha256.Sum256([]byte(username + "-demo"))
				found(username, username[len("agent-"):], hash[:], nil)
			}
			return nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	f.Link = b
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fixture) agent(branch string, inventory protocol.Inventory) *agenttest.Agent {
	f.t.Helper()
	return agenttest.Connect(f.t, agenttest.Config{Branch: branch, Dial: agenttest.TCP(f.addr), Inventory: inventory})
}

func rows[T any](f *fixture, sql string, args ...any) []T {
	f.t.Helper()
	found, err := f.db.Pool.Query(f.t.Context(), sql, args...)
	if err != nil {
		f.t.Fatal(err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[T])
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// until polls ok, for changes in the database that no event reports.
func (f *fixture) until(what string, ok func() bool) {
	f.t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(limit) {
			f.t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func airConditioner(name string, options ...string) protocol.AirConditioner {
	u := protocol.AirConditioner{Name: name}
	for _, o := range options {
		u.Options = append(u.Options, protocol.Option{Name: o})
	}
	return u
}

func TestAnnouncedOptionsCanBeCommanded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	online := func(branch string) bool {
		return len(rows[bool](f, `select true from agent_inventory i join branch b on b.id = i.branch_id where b.code = $1 and i.online`, branch)) == 1
	}
	a := f.agent("gangnam", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off", "cool", "heat")}})
	f.agent("hongdae", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off")}})
	f.until("both inventories", func() bool { return online("gangnam") && online("hongdae") })

	// The same name in two branches is two options.
	for _, branch := range []string{"gangnam", "hongdae"} {
		if of, err := f.BranchOfOption(t.Context(), protocol.LeafID(branch, "main", "off")); of != branch || err != nil {
			t.Errorf("option of %s belongs to %q, %v", branch, of, err)
		}
	}
	// Removed options cannot be sent any more. The others keep their ids.
	changed := protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off", "cool", "dry")}}
	if err := a.Publish(protocol.Status{State: protocol.Online, BootID: "boot", Connection: 1, Inventory: &changed}); err != nil {
		t.Fatal(err)
	}
	heat := protocol.LeafID("gangnam", "main", "heat")
	f.until("the change", func() bool {
		_, err := f.BranchOfOption(t.Context(), heat)
		return errors.Is(err, climate.ErrUnknownOption)
	})
	if err := f.Command(t.Context(), "admin:hq", heat); !errors.Is(err, climate.ErrUnknownOption) {
		t.Errorf("removed option: got %v, want ErrUnknownOption", err)
	}
	for _, option := range []string{"off", "cool", "dry"} {
		if err := f.Command(t.Context(), "admin:hq", protocol.LeafID("gangnam", "main", option)); err != nil {
			t.Errorf("%s: %v", option, err)
		}
	}
	a.Close()
	f.until("offline", func() bool { return !online("gangnam") })
	if tree, err := f.Tree(t.Context(), "gangnam"); len(tree) != 3 || err != nil {
		t.Errorf("tree while offline: %v, %v", tree, err)
	}
	if _, err := f.Tree(t.Context(), "busan"); !errors.Is(err, postgres.ErrNoBranch) {
		t.Errorf("unknown branch: %v", err)
	}
}

// TestPolicyFollowsSensors: a sensor that is fitted, renamed or removed after the policy was set is that of the room from the
// agent's next report.
func TestPolicyFollowsSensors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if _, err := f.db.Pool.Exec(t.Context(), `insert into room (branch_id, no) select b.id, n from branch b, generate_series(1, $1::int) n`, 13); err != nil {
		t.Fatal(err)
	}
	inventory := protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off", "cool")}}
	a := f.agent("gangnam", inventory)
	off, cool := protocol.LeafID("gangnam", "main", "off"), protocol.LeafID("gangnam", "main", "cool")
	f.until("the inventory", func() bool { _, err := f.BranchOfOption(t.Context(), off); return err == nil })
	gangnam, err := f.db.Branch(t.Context(), "gangnam")
	if err != nil {
		t.Fatal(err)
	}
	policy := climate.Policy{RoomNo: 3, Unit: "main", ArriveOption: cool, LeaveOption: off, Low: 22, High: 26, GuestOptions: []string{}}
	if err := f.SetPolicies(t.Context(), gangnam, []climate.Policy{policy}, "admin:hq"); err != nil {
		t.Fatal(err)
	}
	sensor := func() string {
		policies, err := f.Policies(t.Context(), gangnam.ID)
		if err != nil || len(policies) != 1 {
			t.Fatal(policies, err)
		}
		if policies[0].Sensor == nil {
			return ""
		}
		return *policies[0].Sensor
	}
	if got := sensor(); got != "" {
		t.Errorf("sensor %q without any", got)
	}
	for _, change := range []struct {
		boot, want string
		sensors    []string
	}{
		{"fitted", "3번 룸", []string{"lobby", "13", "3번 룸"}},
		{"renamed", "room 3", []string{"room 3", "3 spare"}},
		{"removed", "", []string{"13", "lobby 3 1"}},
	} {
		boot, want := change.boot, change.want
		inventory.Sensors = change.sensors
		if err := a.Publish(protocol.Status{State: protocol.Online, BootID: boot, Connection: 1, Inventory: &inventory}); err != nil {
			t.Fatal(err)
		}
		f.until("the sensor "+boot, func() bool { return sensor() == want })
		if err := f.SetPolicies(t.Context(), gangnam, []climate.Policy{policy}, "admin:hq"); err != nil || sensor() != want {
			t.Errorf("%s: sensor %q after the policy was set again, want %q (%v)", boot, sensor(), want, err)
		}
	}
}

func TestUnansweredCommandIsRepeatedAndLogged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.AnswerTimeout = 3 * protocol.RepeatInterval
	a := f.agent("gangnam", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off")}})
	off := protocol.LeafID("gangnam", "main", "off")
	f.until("the inventory", func() bool { _, err := f.BranchOfOption(t.Context(), off); return err == nil })
	a.Fail(agenttest.Faults{NoAnswer: true})
	if err := f.Command(t.Context(), "admin:hq", off); !errors.Is(err, climate.ErrDeviceUnavailable) {
		t.Errorf("got %v", err)
	}
	if n := len(a.Commands()); n < 2 || n > 4 { // the test agent records repetitions too
		t.Errorf("asked %d times", n)
	}
	a.Fail(agenttest.Faults{Outcome: protocol.Failed})
	if err := f.Command(t.Context(), "admin:hq", off); !errors.Is(err, climate.ErrDeviceUnavailable) {
		t.Errorf("got %v", err)
	}
	a.Fail(agenttest.Faults{})
	if err := f.Command(t.Context(), "admin:hq", off); err != nil {
		t.Errorf("got %v", err)
	}
	want := []string{"unanswered", "failed", "sent"}
	if got := rows[string](f, `select outcome from airconditioner_command order by id`); !cmp.Equal(got, want) {
		t.Errorf("logged %v, want %v", got, want)
	}
}

func TestAnswerFromAnotherBranchIsIgnored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.AnswerTimeout = 3 * protocol.RepeatInterval
	a := f.agent("gangnam", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off")}})
	off := protocol.LeafID("gangnam", "main", "off")
	f.until("the inventory", func() bool { _, err := f.BranchOfOption(t.Context(), off); return err == nil })
	a.Fail(agenttest.Faults{NoAnswer: true})
	done := make(chan error, 1)
	go func() { done <- f.Command(t.Context(), "admin:hq", off) }()
	a.Until(t, "the command", func() bool { return len(a.Commands()) > 0 })
	// The request id alone is not enough: an answer counts for the branch of its topic.
	id := a.LastRequest()
	if err := f.Commanded(t.Context(), protocol.Agent{Branch: "hongdae", Username: "agent-hongdae"}, protocol.ClimateResult{RequestID: id, AirConditionerID: off, Outcome: protocol.ClimateSent}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, climate.ErrDeviceUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestAnswerForAnotherOptionIsAFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.agent("gangnam", protocol.Inventory{AirConditioners: []protocol.AirConditioner{airConditioner("main", "off", "cool")}})
	off, cool := protocol.LeafID("gangnam", "main", "off"), protocol.LeafID("gangnam", "main", "cool")
	f.until("the inventory", func() bool { _, err := f.BranchOfOption(t.Context(), off); return err == nil })
	a.Fail(agenttest.Faults{NoAnswer: true})
	done := make(chan error, 1)
	go func() { done <- f.Command(t.Context(), "admin:hq", off) }()
	a.Until(t, "the command", func() bool { return len(a.Commands()) > 0 })
	err := f.Commanded(t.Context(), protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}, protocol.ClimateResult{RequestID: a.LastRequest(), AirConditionerID: cool, Outcome: protocol.ClimateSent})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, climate.ErrDeviceUnavailable) {
		t.Errorf("got %v", err)
	}
}
