package e2e

import (
	"context"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
	"github.com/yeolda/yeolda/protocol"
)

// A second agent of gangnam uses a standby credential of its own. YEOLDA_TEST_PRESSES sets the presses beside each kind of
// second agent; the acceptance test has 1,000.
const (
	pressesBeside = 40
	pressers      = 8
	// pressInterval is the shortest time between two presses: an agent has room for 1,024 requests, each kept for 10 seconds.
	pressInterval = 12 * time.Millisecond
)

// credential is a credential of an agent.
type credential struct{ username, password string }

// enrol creates a standby credential for a branch and writes it to a file.
func enrol(t *testing.T, s *world.Stack, branch string) (c credential, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "credentials")
	if _, err := s.Command(t.Context(), "agent", "enroll", branch, "--file", file); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	value := func(name string) string {
		return regexp.MustCompile(`(?m)^YEOLDA_AGENT_` + name + `=(.+)$`).FindStringSubmatch(string(text))[1]
	}
	return credential{value("USERNAME"), value("PASSWORD")}, file
}

// TestSecondAgent presses doors of a branch while a second agent is connected: a bench Pi without hardware, then each kind
// of dishonest agent with a stolen standby credential. No press may be FAILED and driven, or SUCCESS and not driven. Without
// faults, every press must succeed.
func TestSecondAgent(t *testing.T) {
	t.Parallel()
	s := startStack(t, map[string]string{"YEOLDA_RATE_LIMITS": "off"})
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	standby, file := enrol(t, s, "gangnam")

	t.Run("bench Pi", func(t *testing.T) {
		startBenchPi(t, s, file)
		until(t, "the bench Pi is online", func() bool { return onlineInList(t, s, standby.username) })
		pressBeside(t, s, hq, nil)
	})
	for _, kind := range []string{"opened", "failed", "dropped", "claims", "all"} {
		t.Run("thief reports "+kind, func(t *testing.T) {
			pressBeside(t, s, hq, connectThief(t, s, standby, kind).lie)
		})
	}
}

// pressBeside presses doors and compares the results with the actuations. It calls meddle for each accepted request.
func pressBeside(t *testing.T, s *world.Stack, hq *browser, meddle func(request, device string)) {
	t.Helper()
	n := int(environment(t, "YEOLDA_TEST_PRESSES", pressesBeside))
	before := len(actuations(t, s, "gangnam"))
	all := map[string]pressed{}
	var mu sync.Mutex
	work := make(chan int)
	var pressing sync.WaitGroup
	for range pressers {
		pressing.Go(func() {
			for i := range work {
				id, p := pressMeddled(t, hq, "gangnam", 1+i%chaosDoors["gangnam"], meddle)
				mu.Lock()
				all[id] = p
				mu.Unlock()
			}
		})
	}
	pace := time.NewTicker(pressInterval)
	defer pace.Stop()
	for i := range n {
		<-pace.C
		work <- i
	}
	close(work)
	pressing.Wait()
	statuses := map[string]int{}
	for _, p := range all {
		statuses[p.status]++
	}
	wrong, latest := judge(all, map[string][]actuation{"gangnam": actuations(t, s, "gangnam")[before:]})
	for _, what := range wrong {
		t.Error(what)
	}
	t.Logf("%d presses: %v; the latest pulse %s after its request", n, statuses, latest.Round(time.Millisecond))
	if !maps.Equal(statuses, map[string]int{"SUCCESS": n}) {
		t.Errorf("got %v, want SUCCESS for all %d presses", statuses, n)
	}
}

// startBenchPi runs the agent's program with a credential and without hardware until the test ends.
func startBenchPi(t *testing.T, s *world.Stack, credentials string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "yeolda-agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./agent/cmd/yeolda-agent")
	build.Dir = root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	settings := filepath.Join(dir, "settings.toml")
	writeFile(t, settings, "")
	agent := exec.Command(program, "run", "--settings", settings, "--credentials", credentials, "--broker", "mqtt://"+mqttAddress(t, s))
	agent.Stdout, agent.Stderr = t.Output(), t.Output()
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		_ = agent.Wait()
	})
}

// mqttAddress returns the address of the embedded broker.
func mqttAddress(t *testing.T, s *world.Stack) string {
	t.Helper()
	if s.MQTTAt == "" {
		t.Fatal("the stack has no MQTT address")
	}
	return s.MQTTAt
}

// thief is a client with a stolen standby credential. It sends messages of one kind, or of all kinds, about every request.
type thief struct {
	t      *testing.T
	client *paho.Client
	agent  protocol.Agent
	kind   string
}

// connectThief connects until the test ends. It subscribes to every topic that the broker allows.
func connectThief(t *testing.T, s *world.Stack, c credential, kind string) *thief {
	t.Helper()
	th := &thief{t: t, agent: protocol.Agent{Branch: "gangnam", Username: c.username}, kind: kind}
	heard := make(chan paho.PublishReceived, 1024)
	th.client = connectAgent(t, mqttAddress(t, s), c.username, c, func(p paho.PublishReceived) (bool, error) {
		select {
		case heard <- p:
		default:
		}
		return true, nil
	})
	subscribe := &paho.Subscribe{}
	for _, topics := range []protocol.Agent{th.agent, {Branch: "gangnam"}} {
		for topic := range topics.Filters() {
			subscribe.Subscriptions = append(subscribe.Subscriptions, paho.SubscribeOptions{Topic: topic})
		}
	}
	_, _ = th.client.Subscribe(t.Context(), subscribe) // the broker may reject some of them
	go func() {
		for {
			select {
			case <-t.Context().Done():
				return
			case p := <-heard:
				th.answer(p)
			}
		}
	}()
	return th
}

// answer sends a false response to a message of the cloud.
func (th *thief) answer(p paho.PublishReceived) {
	_, kind, _ := protocol.ParseTopic(p.Packet.Topic)
	switch kind {
	case protocol.KindDoorAsk:
		if ask, err := protocol.Decode[protocol.Ask](p.Packet.Payload); err == nil {
			for _, device := range ask.Doors {
				th.lie(ask.RequestID, device)
			}
		}
	case protocol.KindDoorGrant:
		if grant, err := protocol.Decode[protocol.Grant](p.Packet.Payload); err == nil {
			for _, device := range grant.Doors {
				th.report(grant.RequestID, device, grant.Nonce)
			}
		}
	}
}

// lie claims a request and sends a report without knowing the nonce.
func (th *thief) lie(request, device string) {
	if th.kind == "claims" || th.kind == "all" {
		nonce := protocol.NewNonce()
		th.publish(protocol.Claim{RequestID: request, Nonce: nonce})
		th.report(request, device, nonce)
	}
	th.report(request, device, "")
	th.report(request, device, protocol.NewNonce())
}

func (th *thief) report(request, device, nonce string) {
	for _, outcome := range []protocol.Outcome{protocol.Opened, protocol.Failed, protocol.Dropped} {
		if th.kind == string(outcome) || th.kind == "all" {
			th.publish(protocol.Result{RequestID: request, Nonce: nonce, Device: device, Outcome: outcome})
		}
	}
}

// publish sends a message on the topic of the credential and on that of the branch.
func (th *thief) publish(m protocol.Message) {
	payload, err := protocol.Encode(m)
	if err != nil {
		th.t.Error(err)
		return
	}
	for _, of := range []protocol.Agent{th.agent, {Branch: "gangnam"}} {
		_, _ = th.client.Publish(th.t.Context(), &paho.Publish{Topic: of.Topic(m.Kind()), QoS: 0, Payload: payload}) // the client may be disconnected
	}
}

// connectAgent opens a connection to the broker with a credential until the test ends.
func connectAgent(t *testing.T, address, clientID string, c credential, receive func(paho.PublishReceived) (bool, error)) *paho.Client {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	config := paho.ClientConfig{Conn: conn, PacketTimeout: 30 * time.Second}
	if receive != nil {
		config.OnPublishReceived = []func(paho.PublishReceived) (bool, error){receive}
	}
	client := paho.NewClient(config)
	ack, err := client.Connect(t.Context(), &paho.Connect{ClientID: clientID, CleanStart: true, KeepAlive: 30,
		Username: c.username, UsernameFlag: true, Password: []byte(c.password), PasswordFlag: true})
	if err != nil || ack.ReasonCode != 0 {
		t.Fatalf("%s: %v %+v", c.username, err, ack)
	}
	t.Cleanup(func() { _ = client.Disconnect(&paho.Disconnect{}) })
	return client
}

// TestTakeover connects once with the credential of the active agent, like an agent on a copied SD card. The doors must work
// again shortly afterwards, and the takeover must be recorded.
func TestTakeover(t *testing.T) {
	t.Parallel()
	s := startStack(t, map[string]string{"YEOLDA_RATE_LIMITS": "off"})
	hq := newBrowser(t, s)
	hq.must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
	if _, p := press(t, hq, "gangnam", 1); p.status != "SUCCESS" {
		t.Fatalf("got %s before the takeover, want SUCCESS", p.status)
	}
	card := credential{"agent-gangnam", "agent-gangnam-demo"}
	usurper := connectAgent(t, mqttAddress(t, s), card.username, card, nil)
	publishStatus(t, usurper, card)
	_ = usurper.Disconnect(&paho.Disconnect{})
	began := time.Now()
	until(t, "a door opens again", func() bool { _, p := press(t, hq, "gangnam", 1); return p.status == "SUCCESS" })
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("a door opened again %s after the takeover, want at most 30 s", took)
	}
	until(t, "the takeover is on record", func() bool {
		list, err := s.Command(t.Context(), "agent", "list")
		if err != nil {
			t.Fatal(err)
		}
		line := regexp.MustCompile(`(?m)^agent-gangnam\s.*$`).FindString(list)
		return line != "" && !strings.HasSuffix(strings.TrimSpace(line), "-") // TAKEN OVER is the last column
	})
}

// publishStatus publishes the status of an agent on another machine.
func publishStatus(t *testing.T, client *paho.Client, c credential) {
	t.Helper()
	payload, err := protocol.Encode(protocol.Status{State: protocol.Online, BootID: "00000000-0000-4000-8000-00000000c10e", Connection: 1,
		AgentVersion: "clone", StartedAt: time.Now(), Inventory: &protocol.Inventory{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	topic := protocol.Agent{Branch: "gangnam", Username: c.username}.Topic(protocol.KindStatus)
	if _, err := client.Publish(ctx, &paho.Publish{Topic: topic, QoS: 1, Retain: true, Payload: payload}); err != nil {
		t.Fatal(err)
	}
}
