package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/yeolda/yeolda/firmware-sim/internal/cloudtest"
	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/stage"
	"github.com/yeolda/yeolda/protocol"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, args ...string) (*cli, string) {
	t.Helper()
	var c cli
	parsed, err := parser(&c).Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	return &c, parsed.Command()
}

// TestSettings checks the documented settings and their defaults.
func TestSettings(t *testing.T) {
	c, command := parse(t)
	if command != "run" || c.Run.Addr != "127.0.0.1:8070" || c.Run.MQTTAddr != "127.0.0.1:1883" {
		t.Errorf("%s with %+v", command, c.Run)
	}
	if _, err := c.Run.grantKey(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"YEOLDA_SIM_ADDR", "YEOLDA_GRANT_PUBLIC_KEY", "YEOLDA_LOG_LEVEL"} {
		t.Setenv(name, "")
	}
	c, _ = parse(t)
	if c.Run.Addr != "127.0.0.1:8070" || c.Run.GrantKey != demoGrantKey() {
		t.Errorf("with empty variables: %+v", c.Run)
	}
	t.Setenv("YEOLDA_SIM_ADDR", "127.0.0.1:9999")
	t.Setenv("YEOLDA_MQTT_ADDR", "0.0.0.0:2883")
	c, _ = parse(t)
	if brokers, err := c.Run.brokers(); err != nil || len(brokers) != 1 || brokers[0].String() != "mqtt://127.0.0.1:2883" || c.Run.Addr != "127.0.0.1:9999" {
		t.Errorf("panel %s, brokers %v (%v)", c.Run.Addr, brokers, err)
	}
	t.Setenv("YEOLDA_MQTT_ADDR", "127.0.0.1:1883,127.0.0.2:1883")
	c, _ = parse(t)
	if brokers, err := c.Run.brokers(); err != nil || len(brokers) != 2 || brokers[1].String() != "mqtt://127.0.0.2:1883" {
		t.Errorf("brokers of a pool %v (%v)", brokers, err)
	}
	t.Setenv("YEOLDA_BROKER_URL", "mqtts://broker.example:8883")
	c, command = parse(t, "fleet", "--agents", "3")
	if brokers, err := c.Fleet.brokers(); err != nil || len(brokers) != 1 || brokers[0].Host != "broker.example:8883" || command != "fleet" || c.Fleet.Agents != 3 {
		t.Errorf("%s: brokers %v (%v)", command, brokers, err)
	}
}

func TestGrantKeyMustBeOne(t *testing.T) {
	for _, key := range []string{"", "x", "AAAA"} {
		c := connection{GrantKey: key}
		if _, err := c.grantKey(); err == nil {
			t.Errorf("%q was accepted as a key", key)
		}
	}
}

// start runs a program against a cloud and returns the panel's address.
func start(t *testing.T, cloud *cloudtest.Cloud, sites []fleetconfig.Branch, change ...func(*program)) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ready.json")
	p := program{
		connection: connection{Addr: "127.0.0.1:0", BrokerURL: cloud.URL.String(), GrantKey: demoGrantKey(), ReadyFile: file},
		sites:      sites, log: slog.New(slog.DiscardHandler), agentLog: slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		c(&p)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Error("the program did not stop")
		}
		http.DefaultClient.CloseIdleConnections()
	})
	cloud.Status(sites[len(sites)-1].Branch, protocol.Online, time.Time{}, 30*time.Second)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var ready struct{ HTTP string }
	if err := json.Unmarshal(text, &ready); err != nil {
		t.Fatal(err)
	}
	return "http://" + ready.HTTP
}

func TestDemoRuns(t *testing.T) {
	cloud := cloudtest.New(t)
	sites, err := fleetconfig.Parse(fleetconfig.Demo)
	if err != nil {
		t.Fatal(err)
	}
	panel := start(t, cloud, sites)
	for _, branch := range []string{"gangnam", "hongdae"} {
		cloud.Status(branch, protocol.Online, time.Time{}, 30*time.Second)
		answer, err := http.Get(panel + "/sim/branches/" + url.PathEscape(branch))
		if err != nil {
			t.Fatal(err)
		}
		var state struct{ Branch string }
		if err := json.NewDecoder(answer.Body).Decode(&state); err != nil || state.Branch != branch {
			t.Errorf("%s: %+v (%v)", branch, state, err)
		}
		answer.Body.Close()
	}
}

func TestFleetRuns(t *testing.T) {
	cloud := cloudtest.New(t)
	sites, err := fleetconfig.Fleet(20)
	if err != nil {
		t.Fatal(err)
	}
	start(t, cloud, sites)
	for _, s := range sites {
		cloud.Status(s.Branch, protocol.Online, time.Time{}, 30*time.Second)
	}
}

// TestSceneEndsWithProgram checks that the program ends without an error while a scene waits for the service, and that the scene
// removes its faults from the sandbox.
func TestSceneEndsWithProgram(t *testing.T) {
	cloud := cloudtest.New(t)
	sites, err := fleetconfig.Parse(fleetconfig.Demo)
	if err != nil {
		t.Fatal(err)
	}
	waits, removed := make(chan struct{}, 1), make(chan struct{}, 2)
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		waits <- struct{}{}
		<-r.Context().Done()
	}))
	sandbox := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			removed <- struct{}{}
		}
	}))
	t.Cleanup(func() { // after the program has ended
		service.Close()
		sandbox.Close()
		if len(removed) != 2 {
			t.Errorf("the scene removed its faults %d times, want before and after", len(removed))
		}
	})
	panel := start(t, cloud, sites, func(p *program) {
		p.stage = &stage.Stage{Service: service.URL, Sandbox: sandbox.URL, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	})
	go func() {
		if answer, err := http.Post(panel+"/stage/scenes/open", "", nil); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body) // a visitor who leaves would end the scene
			answer.Body.Close()
		}
	}()
	select {
	case <-waits:
	case <-time.After(time.Minute):
		t.Error("the scene does not call the service")
	}
}

// TestStageAddresses checks that listeners on all interfaces get an address that a browser can open, with one name of the host.
func TestStageAddresses(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "0.0.0.0:8080": "127.0.0.1:8080", "[::]:8080": "127.0.0.1:8080",
		"localhost:8080": "127.0.0.1:8080", "yeolda.test:80": "yeolda.test:80", "nonsense": "nonsense",
	} {
		if got := reachable(addr); got != want {
			t.Errorf("reachable(%q) = %q, want %q", addr, got, want)
		}
	}
	for _, origin := range []string{"127.0.0.1:8070", "http://127.0.0.1:8070/", "http://127.0.0.1:8070/stage", "*"} {
		c := runCommand{StageOrigin: origin}
		if err := c.Run(t.Context(), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "YEOLDA_STAGE_ORIGIN") {
			t.Errorf("%q: %v, want an error that names YEOLDA_STAGE_ORIGIN", origin, err)
		}
	}
}

func TestBranchFileIsWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "branches.yaml")
	c := fleetCommand{Agents: 3, First: 1, WriteBranches: file}
	if err := c.Run(t.Context(), slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	want, err := fleetconfig.BranchFile(3)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
		t.Errorf("written: %s (%v)", got, err)
	}
}
