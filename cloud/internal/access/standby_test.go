package access_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/eclipse/paho.golang/paho"
	"github.com/mochi-mqtt/server/v2/hooks/auth"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/agenttest"
	"github.com/yeolda/yeolda/cloud/internal/broker"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/firmware-sim/testkit/mqttserver"
	"github.com/yeolda/yeolda/protocol"
)

// second enrolls another credential of gangnam. It is standby.
func (h *house) second() agenttest.Config {
	h.t.Helper()
	const username = "agent-gangnam-2"
	hash := sha256.Sum256([]byte(username + "-demo"))
	if err := postgres.InsertAgent(h.t.Context(), h.db.Pool, "gangnam", postgres.NewCredential{Username: username, SecretHash: hash[:]}); err != nil {
		h.t.Fatal(err)
	}
	return agenttest.Config{Branch: "gangnam", ClientID: username, Dial: agenttest.TCP(h.addr),
		Keys: []ed25519.PublicKey{h.grants.Public().(ed25519.PublicKey)}}
}

// thief publishes claims and results for requests of other agents, on the topics of its own credential and of the branch.
type thief struct {
	*agenttest.Agent
	outcome protocol.Outcome
}

func (th thief) publish(t *testing.T, m protocol.Message) {
	t.Helper()
	payload, err := protocol.Encode(m)
	if err != nil {
		t.Error(err)
		return
	}
	for _, from := range []protocol.Agent{{Branch: "gangnam", Username: "agent-gangnam-2"}, {Branch: "gangnam"}} {
		if _, err := th.Client().Publish(t.Context(), &paho.Publish{Topic: from.Topic(m.Kind()), QoS: m.Kind().QoS(), Payload: payload}); err != nil {
			t.Error(err)
		}
	}
}

// attack acts as a stolen credential that has learned a request id: it claims the request, and reports results with its own
// nonce and without one.
func (th thief) attack(t *testing.T, requestID, device string) {
	nonce := protocol.NewNonce()
	th.publish(t, protocol.Claim{RequestID: requestID, Nonce: nonce})
	th.publish(t, protocol.Result{RequestID: requestID, Nonce: nonce, Device: device, Outcome: th.outcome})
	th.publish(t, protocol.Result{RequestID: requestID, Device: device, Outcome: th.outcome})
}

// A branch has a second agent, such as one that is being prepared, or a stolen credential. Every answer must agree with the
// actions of the active agent.
func TestSecondAgentChangesNoResult(t *testing.T) {
	t.Parallel()
	const presses = 100
	for _, external := range []bool{false, true} {
		for name, prepare := range map[string]func(*testing.T, *house, agenttest.Config) func(requestID string){
			"bench Pi without doors": func(t *testing.T, _ *house, cfg agenttest.Config) func(string) {
				agenttest.Connect(t, cfg).Fail(agenttest.Faults{Outcome: protocol.Failed})
				return func(string) {}
			},
			"bench Pi with doors": func(t *testing.T, _ *house, cfg agenttest.Config) func(string) {
				agenttest.Connect(t, cfg)
				return func(string) {}
			},
			"thief reports opened": func(t *testing.T, _ *house, cfg agenttest.Config) func(string) {
				th := thief{agenttest.Connect(t, cfg), protocol.Opened}
				return func(id string) { th.attack(t, id, "room_1") }
			},
			"thief reports failed": func(t *testing.T, _ *house, cfg agenttest.Config) func(string) {
				th := thief{agenttest.Connect(t, cfg), protocol.Failed}
				return func(id string) { th.attack(t, id, "room_1") }
			},
		} {
			t.Run(fmt.Sprintf("external=%t/%s", external, name), func(t *testing.T) {
				t.Parallel()
				h := build(t)
				if external {
					h.addr = mqttserver.Start(t, new(auth.AllowHook))
					link := broker.NewPool(broker.PoolConfig{Brokers: []*url.URL{{Scheme: "mqtt", Host: h.addr}},
						Doors: h.Service, Devices: devices{}, Climate: devices{}, Log: h.log()})
					h.Link = link
					h.run(link.Run)
					h.until("the broker", link.Connected)
				}
				active := h.agent("gangnam")
				attack := prepare(t, h, h.second())
				h.until("both agents", func() bool { return len(h.Link.Online("gangnam")) == 2 })
				key := h.reserve(1)
				results := map[access.Status]int{}
				for n := range presses {
					// Every other request fails at the door, so that a forged result of either kind would be detected.
					fails := n%2 == 1
					active.Fail(agenttest.Faults{})
					if fails {
						active.Fail(agenttest.Faults{Outcome: protocol.Failed})
					}
					id := h.request(access.Room, key)
					var attacks sync.WaitGroup
					attacks.Go(func() { attack(id) })
					got := h.await(h.Service, id, key)
					attacks.Wait()
					driven := slices.ContainsFunc(active.Driven(), func(d agenttest.Drive) bool { return d.RequestID == id })
					if driven == fails || driven != (got.Status == access.Success) {
						t.Errorf("press %d: %s, driven %t, want driven %t", n, got.Status, driven, !fails)
					}
					results[got.Status]++
				}
				if results[access.Success] != presses/2 || results[access.Failed] != presses/2 {
					t.Errorf("results %v, want %d of each", results, presses/2)
				}
			})
		}
	}
}

// result reports a result in the name of an agent, and returns the state of the request afterwards.
func (h *house) result(from protocol.Agent, id, nonce string, outcome protocol.Outcome) (state string) {
	h.t.Helper()
	err := h.Result(h.t.Context(), protocol.Peer{Agent: from}, protocol.Result{RequestID: id, Nonce: nonce, Device: "room_1", Outcome: outcome})
	if err != nil {
		h.t.Fatal(err)
	}
	return h.state(id)
}

// A result counts only from the active agent and with the granted nonce. Agents of the previous release send no nonce;
// their dropped is inconclusive.
func TestWhichResultsCount(t *testing.T) {
	t.Parallel()
	h := build(t)
	a := h.agent("gangnam")
	h.second()
	a.Fail(agenttest.Faults{Silent: true})
	key := h.reserve(1)
	active := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam"}
	standby := protocol.Agent{Branch: "gangnam", Username: "agent-gangnam-2"}
	branch := protocol.Agent{Branch: "gangnam"} // at an external broker, an agent of the previous release
	for name, tc := range map[string]struct {
		from    protocol.Agent
		nonce   string // "granted" for the nonce of the grant
		outcome protocol.Outcome
		want    string
	}{
		"opened":                        {active, "granted", protocol.Opened, "SUCCESS"},
		"failed":                        {active, "granted", protocol.Failed, "FAILED"},
		"dropped":                       {active, "granted", protocol.Dropped, "FAILED"},
		"unknown":                       {active, "granted", protocol.Unknown, "GRANTED"},
		"another nonce":                 {active, protocol.NewNonce(), protocol.Opened, "GRANTED"},
		"standby with the nonce":        {standby, "granted", protocol.Failed, "GRANTED"},
		"standby without a nonce":       {standby, "", protocol.Failed, "GRANTED"},
		"unknown sender with the nonce": {branch, "granted", protocol.Opened, "GRANTED"},
		"another branch":                {protocol.Agent{Branch: "hongdae", Username: "agent-hongdae"}, "granted", protocol.Opened, "GRANTED"},
		"previous release, opened":      {active, "", protocol.Opened, "SUCCESS"},
		"previous release, failed":      {active, "", protocol.Failed, "FAILED"},
		"previous release, dropped":     {active, "", protocol.Dropped, "GRANTED"},
		"previous release, unknown":     {active, "", protocol.Unknown, "GRANTED"},
	} {
		id := h.request(access.Room, key)
		h.until("the grant", func() bool { return h.state(id) == "GRANTED" })
		nonce := tc.nonce
		if nonce == "granted" {
			nonce = one[string](h, `select nonce from door_request where id = $1`, id)
		}
		if got := h.result(tc.from, id, nonce, tc.outcome); got != tc.want {
			t.Errorf("%s: state %s, want %s", name, got, tc.want)
		}
		h.exec(`update door_request set state = 'UNKNOWN', finished_at = clock_timestamp() where id = $1`, id)
	}
}

// At an external broker, an agent on the topics of its branch is the active one only if the branch has no other credential.
func TestSenderOnBranchTopics(t *testing.T) {
	t.Parallel()
	h := build(t)
	key := h.reserve(1)
	h.Link = branchTopics{}
	branch := protocol.Agent{Branch: "gangnam"}
	press := func() string {
		id := h.request(access.Room, key)
		if err := h.Claim(t.Context(), protocol.Peer{Agent: branch}, protocol.Claim{RequestID: id, Nonce: protocol.NewNonce()}); err != nil {
			t.Fatal(err)
		}
		defer h.exec(`update door_request set state = 'UNKNOWN', finished_at = clock_timestamp() where id = $1 and finished_at is null`, id)
		return h.state(id)
	}
	if got := press(); got != "GRANTED" {
		t.Errorf("only credential: state %s, want GRANTED", got)
	}
	h.second()
	if got := press(); got != "FAILED" {
		t.Errorf("two credentials: state %s, want FAILED: the active agent is not known to be connected", got)
	}
	h.exec(`update agent_credential set revoked_at = clock_timestamp() where username = $1`, "agent-gangnam-2")
	if got := press(); got != "GRANTED" {
		t.Errorf("the other one revoked: state %s, want GRANTED", got)
	}
}

// branchTopics is a link to an external broker with an agent of the previous release.
type branchTopics struct{}

func (branchTopics) Send(protocol.Peer, protocol.Message) error { return nil }
func (branchTopics) Online(string) []string                     { return []string{""} }
