package e2e

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/agent"
	"github.com/yeolda/yeolda/firmware-sim/internal/branch"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// handWork are the steps of an exchange of a Pi by hand, with the times that an installer who has done it before takes. The test
// simulates them by these times and measures what the programs add.
var handWork = []struct {
	what string
	took time.Duration
}{
	{"read the alert, open the page of the branch, make the command", 60 * time.Second},
	{"put the prepared SD card into the new Pi", 30 * time.Second},
	{"move the plugs of relay board, inputs, keypads and network to the new Pi", 150 * time.Second},
	{"power on and wait for the boot", 60 * time.Second},
	{"log in and type or scan the command", 90 * time.Second},
	{"press a door for a test", 20 * time.Second},
}

// replacementLimit is the time within which the doors of a branch whose Pi has failed must open again.
const replacementLimit = 10 * time.Minute

const jamsilSettings = `[[door]]
device = "front_1"
relay = { line = "GPIO17" }

[[door]]
device = "room_1"
relay = { line = "GPIO22" }

[[door]]
device = "room_2"
relay = { line = "GPIO23" }
`

// TestReplacedPi kills the Pi of a branch and enrols a new one, which has nothing but a token: it receives the settings of the old one,
// becomes the active agent although the old one was online a moment ago, and opens the doors. The old credential is then worthless.
func TestReplacedPi(t *testing.T) {
	t.Parallel()
	s := startStack(t, nil)
	broker := &url.URL{Scheme: "mqtt", Host: mqttAddress(t, s)}
	seed := sha256.Sum256([]byte("yeolda demo grant signing key"))
	demoKeys := []ed25519.PublicKey{ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)}
	plan := hardware.Plan{Doors: []hardware.DoorPlan{{Device: "front_1"}, {Device: "room_1"}, {Device: "room_2"}}}
	const old = "agent-jamsil"
	before := runPi(t, plan, branch.Config{Branch: "jamsil", Brokers: []*url.URL{broker}, Password: old + "-demo", GrantKeys: demoKeys, Settings: jamsilSettings})
	until(t, "the settings of the old Pi are in the service", func() bool { return settingsState(t, s, old) == "in-use" })
	hq := staff(t, s)
	press := func(door string) bool {
		got, err := send(t.Context(), hq.http, hq.api, http.MethodPost, "/admin/door/v2/unlock/jamsil/"+door, nil)
		if err != nil || got.status != http.StatusOK {
			return false
		}
		var request struct{ RequestID string }
		if err := json.Unmarshal(got.data, &request); err != nil {
			t.Fatal(err)
		}
		got, err = send(t.Context(), hq.http, hq.api, http.MethodGet, "/admin/door/v2/unlock/subscribe?requestId="+request.RequestID, nil)
		return err == nil && strings.Contains(got.body, `"SUCCESS"`)
	}
	if !press("front") {
		t.Fatal("the old Pi does not open the front door")
	}
	for _, c := range []struct{ command, part string }{{"doctor", "ok    relay front_1\n"}, {"logs", "outcome=opened"}} {
		if out, err := s.Command(t.Context(), "agent", c.command, old); err != nil || !strings.Contains(out, c.part) {
			t.Errorf("yeolda agent %s: got %q, %v, want %q in it", c.command, out, err, c.part)
		}
	}

	before() // it dies
	began := time.Now()
	offer, err := s.Command(t.Context(), "agent", "enroll", "jamsil", "--replace", old)
	if err != nil {
		t.Fatal(err)
	}
	token := regexp.MustCompile(`sh -s -- (\S+)`).FindStringSubmatch(offer)[1]
	c, err := agent.Enroll(t.Context(), s.Pages, token)
	if err != nil {
		t.Fatal(err)
	}
	runPi(t, plan, branch.Config{Branch: c.Branch, Brokers: []*url.URL{broker}, Username: c.Username, Password: c.Password, Key: c.Key, GrantKeys: c.GrantKeys, Blank: true})
	for _, door := range []string{"front", "room/1", "room/2"} {
		until(t, door+" opens again", func() bool { return press(door) })
	}
	machines := time.Since(began)
	total := machines
	for _, step := range handWork {
		t.Logf("%6s  %s (simulated)", step.took, step.what)
		total += step.took
	}
	t.Logf("%6s  enrolment, settings, restart, activation, three doors (measured)", machines.Round(100*time.Millisecond))
	t.Logf("%6s  in all, of %s", total.Round(time.Second), replacementLimit)
	until(t, "the settings are in use on the new Pi", func() bool { return settingsState(t, s, c.Username) == "in-use" })
	list, err := s.Command(t.Context(), "agent", "list")
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?m)^` + old + `\s+jamsil\s+revoked`).MatchString(list) {
		t.Errorf("the credential of the old Pi is not revoked:\n%s", list)
	}
}

// runPi runs a simulated Pi until it is stopped or the test ends. stop cuts its power.
func runPi(t *testing.T, plan hardware.Plan, c branch.Config) (stop func()) {
	t.Helper()
	c.Version, c.Logger, c.Changed = "1.0.0", slog.New(slog.DiscardHandler), func(branch.Change) {}
	b, err := branch.New(plan, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// settingsState returns the state of the last settings of an agent; empty: it has none.
func settingsState(t *testing.T, s *world.Stack, username string) string {
	t.Helper()
	list, err := s.Command(t.Context(), "agent", "settings", "list", username)
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\d+\s+(\S+)`).FindStringSubmatch(list)
	if found == nil {
		return ""
	}
	return found[1]
}
