package broker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// TestReconnectingAgentsLoseNoPlace fills all places with agents that are about to authenticate: the next one waits for a place
// and takes none of theirs.
func TestReconnectingAgentsLoseNoPlace(t *testing.T) {
	t.Parallel()
	g := newAdmission(time.Minute, 0)
	g.progressWindow, g.placeTimeout = time.Hour, time.Hour
	enter := func(n int) *conn {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
		c, err := g.enter(ours, fmt.Sprintf("10.0.%d.%d", n>>8, n&0xff))
		if err != nil {
			t.Error(err)
			return nil
		}
		return c.(*conn)
	}
	var agents []*conn
	for n := range maxUnauthenticated {
		agents = append(agents, enter(n))
	}
	g.admit(agents[0], &session{})
	agents = append(agents, enter(maxUnauthenticated)) // all places are taken again
	entered := make(chan *conn)
	go func() { entered <- enter(maxUnauthenticated + 1) }()
	for _, c := range agents[1:3] { // the second shows that the waiting one has taken the place of the first
		g.admit(c, &session{})
	}
	agents = append(agents, <-entered)
	g.mu.Lock()
	defer g.mu.Unlock()
	for n, c := range agents {
		if _, here := g.conns[c]; !here {
			t.Errorf("the connection of agent %d was closed", n)
		}
	}
}

// TestWaitForAPlaceIsBounded fills all places with clients that stopped authenticating: the next one takes a place.
func TestWaitForAPlaceIsBounded(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.agent(t, "gangnam")
	b.fill(t, "203.0.113")
	b.agent(t, "hongdae")
}

func TestConnectionsLeaveFilesForOthers(t *testing.T) {
	t.Parallel()
	g := newAdmission(time.Minute, 2)
	enter := func() (net.Conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
		return g.enter(ours, "10.0.0.1")
	}
	first, err := enter()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enter(); err != nil {
		t.Fatal(err)
	}
	if _, err := enter(); !errors.Is(err, errFull) {
		t.Errorf("third of two connections: got %v, want errFull", err)
	}
	_ = first.Close()
	if _, err := enter(); err != nil {
		t.Errorf("after one was closed: %v", err)
	}
}

// manySessions returns a broker with sessions of n agents that have just sent a message. They have no connections.
func manySessions(tb testing.TB, n int, credentials func(usernames []string, found func(username, branch string, secretHash, publicKey []byte))) *Broker {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close() })
	began := time.Now()
	b, err := New(Config{Listener: l, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return began }, // no agent becomes silent
		Credentials: func(_ context.Context, usernames []string, found func(username, branch string, secretHash, publicKey []byte)) error {
			credentials(usernames, found)
			return nil
		}})
	if err != nil {
		tb.Fatal(err)
	}
	for i := range n {
		branch := fmt.Sprintf("load-%06d", i)
		agent := protocol.Agent{Branch: branch, Username: protocol.AgentID(branch)}
		b.sessions.begin(b.sessions.admit(nil, agent, credential{branch: branch, secretHash: []byte(branch)}, connID{}), true)
		for lane := range b.inbox.steady { // nothing reads the inbox
			select {
			case d := <-b.inbox.steady[lane]:
				b.inbox.release(d.from.Agent)
			default:
			}
		}
	}
	return b
}

// credentialsOf answers with the credentials of manySessions.
func credentialsOf(usernames []string, found func(username, branch string, secretHash, publicKey []byte)) {
	for _, username := range usernames {
		branch := username[len("agent-"):]
		found(username, branch, []byte(branch), nil)
	}
}

// TestRestingAgentsCostNoMemory compares many sessions at rest, which happens every second.
func TestRestingAgentsCostNoMemory(t *testing.T) {
	b := manySessions(t, 1000, credentialsOf)
	if allocations := testing.AllocsPerRun(10, b.compare); allocations >= 10 {
		t.Errorf("a comparison of 1,000 sessions at rest allocates %v times, want a few", allocations)
	}
}

func TestRevocationsAreAskedForInBatches(t *testing.T) {
	t.Parallel()
	asked, largest := 0, 0
	b := manySessions(t, 2*revocationBatch+1, func(usernames []string, found func(username, branch string, secretHash, publicKey []byte)) {
		asked, largest = asked+len(usernames), max(largest, len(usernames))
		credentialsOf(usernames, found)
	})
	if err := b.dropRevoked(t.Context()); err != nil {
		t.Fatal(err)
	}
	if asked != 2*revocationBatch+1 || largest != revocationBatch {
		t.Errorf("asked for %d credentials, at most %d at once; want %d, at most %d", asked, largest, 2*revocationBatch+1, revocationBatch)
	}
}

// BenchmarkRestingAgents measures what the broker does every second for 100,000 agents at rest (compare), and every 15
// seconds, without the database (revoked).
func BenchmarkRestingAgents(b *testing.B) {
	many := manySessions(b, 100_000, credentialsOf)
	b.Run("compare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			many.compare()
		}
	})
	b.Run("revoked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := many.dropRevoked(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}
