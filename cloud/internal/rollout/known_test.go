package rollout

import (
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// The last status of an agent names the failure of an earlier package of the version that is rolled out. Only a later failure counts.
func TestFailureOfAnEarlierPackageDoesNotCount(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	unsigned := protocol.UpdateStatus{Version: "2", State: protocol.UpdateFailed, Detail: "the release key has not signed the package"}
	rolledBack := protocol.UpdateStatus{Version: "2", State: protocol.UpdateRolledBack, Detail: "door_1 failed"}
	for _, tc := range []struct {
		name   string
		states []*protocol.UpdateStatus // each for a minute after the agent was asked; nil: it uses the version
		end    string                   // of the rollout
		within time.Duration
		reason string
	}{
		{"installed", []*protocol.UpdateStatus{&unsigned, {Version: "2", State: protocol.UpdateFetching}, nil}, done, 9 * minute, ""},
		{"installed without another status", []*protocol.UpdateStatus{&unsigned, nil}, done, 8 * minute, ""},
		{"fails for another reason", []*protocol.UpdateStatus{&unsigned, &rolledBack}, stopped, 2 * minute, "door_1 failed"},
		{"fails for the same reason again", []*protocol.UpdateStatus{&unsigned, {Version: "2", State: protocol.UpdateInstalling}, &unsigned}, stopped, 3 * minute, "not signed"},
		{"installed and rolled back for the same reason", []*protocol.UpdateStatus{&rolledBack, nil, &rolledBack}, stopped, 3 * minute, "door_1 failed"},
		{"cannot fetch it", []*protocol.UpdateStatus{{Version: "2", State: protocol.UpdateFetching, Detail: "packages.example returned 404 Not Found"}},
			stopped, 16 * minute, "not installed in time: packages.example returned 404"},
		{"does nothing", []*protocol.UpdateStatus{&unsigned}, stopped, 16 * minute, "not signed"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			now := time.Date(2026, 11, 25, 3, 0, 0, 0, time.UTC)
			begun := now
			r := postgres.Rollout{Kind: postgres.RolloutPackage, Version: "2", Waves: []int{100}, Wave: 1, Settle: 5 * minute, State: running,
				Members: []postgres.RolloutMember{{Username: "a", Wave: 1, State: waiting, Version: "1", Online: true, Active: true}}}
			a := &r.Members[0]
			for now.Sub(begun) < time.Hour && r.EndedAt.IsZero() {
				state := tc.states[min(int(now.Sub(begun)/minute), len(tc.states)-1)]
				if a.Version, a.Update = "1", state; state == nil {
					a.Version = "2"
				}
				if r.State == goingBack {
					a.Version, a.Update = "1", nil
				} else if now.Sub(begun) > tc.within {
					t.Fatalf("after %v the rollout is %s (%s), a is %s (%s)", now.Sub(begun), r.State, r.Reason, a.State, a.Detail)
				}
				advance(&r, now)
				now = now.Add(3 * time.Second)
			}
			if r.State != tc.end || !strings.Contains(r.Reason, tc.reason) {
				t.Errorf("the rollout is %s (%s), want %s (%s)", r.State, r.Reason, tc.end, tc.reason)
			}
		})
	}
}
