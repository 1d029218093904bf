package branch_test

import (
	"context"
	"crypto/ed25519"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/branch"
	"github.com/yeolda/yeolda/firmware-sim/internal/cloudtest"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/fleetconfig"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/protocol"
)

// scene is a branch with the real agent, and its cloud.
type scene struct {
	*branch.Branch
	t     *testing.T
	cloud *cloudtest.Cloud

	mu      sync.Mutex
	changes []branch.Change
	updates chan struct{}
}

func run(t *testing.T, changes ...func(*hardware.Plan)) *scene {
	t.Helper()
	s := build(t, changes...)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(testTimeout):
			t.Error("the branch does not stop")
		}
	})
	s.until("online", func() bool { return s.State().Online })
	return s
}

// build returns the demo branch, with changes of its plan.
func build(t *testing.T, changes ...func(*hardware.Plan)) *scene {
	t.Helper()
	s := &scene{t: t, cloud: cloudtest.New(t), updates: make(chan struct{})}
	sites, err := fleetconfig.Parse(fleetconfig.Demo)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(&sites[0].Plan)
	}
	s.Branch, err = branch.New(sites[0].Plan, branch.Config{
		Branch: name, Brokers: []*url.URL{s.cloud.URL}, Password: sites[0].Password, GrantKeys: []ed25519.PublicKey{s.cloud.GrantKey}, PassDir: t.TempDir(),
		Version: "test", Logger: slog.New(slog.DiscardHandler), Changed: s.changed,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *scene) changed(c branch.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changes = append(s.changes, c)
	close(s.updates)
	s.updates = make(chan struct{})
}

// until waits until a change makes the condition true.
func (s *scene) until(what string, holds func() bool) {
	s.t.Helper()
	late := time.After(testTimeout)
	for {
		s.mu.Lock()
		updated := s.updates
		s.mu.Unlock()
		if holds() {
			return
		}
		select {
		case <-updated:
		case <-late:
			s.t.Fatalf("not %s within %v: %+v", what, testTimeout, s.State())
		}
	}
}

func (s *scene) fault(f fault.Fault) {
	s.t.Helper()
	if err := s.SetFault(f); err != nil {
		s.t.Fatal(err)
	}
}

// of returns the actuations of a request.
func (s *scene) of(requestID string) []hardware.Actuation {
	return slices.DeleteFunc(s.Hardware().Actuations(), func(a hardware.Actuation) bool { return a.RequestID != requestID })
}

// outcome unlocks a door and returns its result.
func (s *scene) outcome(device string) (protocol.Result, string) {
	s.t.Helper()
	id := s.cloud.Unlock(name, device)
	return s.cloud.Result(id, device, testTimeout), id
}
