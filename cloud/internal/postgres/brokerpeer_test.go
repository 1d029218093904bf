package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Replicas see each other until they stop renewing their rows. One that has restarted has another secret.
func TestMeetBrokerPeers(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	a, b := postgres.BrokerPeer{URL: "mqtt://a", Secret: []byte("1")}, postgres.BrokerPeer{URL: "mqtt://b", Secret: []byte("2")}
	met := make(map[string]bool)
	meet := func(own postgres.BrokerPeer, want ...postgres.BrokerPeer) {
		t.Helper()
		others, err := postgres.MeetBrokerPeers(t.Context(), db, own, !met[string(own.Secret)], time.Minute)
		met[string(own.Secret)] = true
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, others); diff != "" && len(want)+len(others) > 0 {
			t.Errorf("%s meets (-want +got):\n%s", own.URL, diff)
		}
	}
	age := func(url, by string) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), `update broker_peer set seen_at = seen_at - $2::interval where url = $1`, url, by); err != nil {
			t.Fatal(err)
		}
	}
	meet(a)
	meet(b, a)
	b.Secret = []byte("3")
	meet(b, a)
	meet(a, b)
	age(a.URL, "50 s")
	meet(b, a)
	age(a.URL, "11 s")
	meet(b)
	meet(a, b)
	b.Secret = []byte("2")
	if _, err := postgres.MeetBrokerPeers(t.Context(), db, b, false, time.Minute); !errors.Is(err, postgres.ErrPeerReplaced) {
		t.Errorf("the replica before it: got %v, want ErrPeerReplaced", err)
	}
}
