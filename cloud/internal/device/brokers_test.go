package device_test

import (
	"context"
	"crypto/ed25519"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
)

// TestListOfBrokers: an agent that takes lists of brokers gets the last one until its status names it.
func TestListOfBrokers(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.SigningKey = func(context.Context, uint64) (ed25519.PrivateKey, error) { return grantKey, nil }
	var sent []protocol.BrokerList
	f.Send = func(to protocol.Peer, m protocol.Message) error {
		list := m.(protocol.BrokerList)
		if err := list.Verify(grantKey.Public().(ed25519.PublicKey)); err != nil || to.Agent != agent("gangnam") {
			t.Errorf("a list for %v: %v", to.Agent, err)
		}
		list.Signature = ""
		sent = append(sent, list)
		return nil
	}
	// report returns what an agent gets that uses the list of an epoch; nil: that takes none.
	report := func(epoch *uint64) []protocol.BrokerList {
		t.Helper()
		sent = nil
		f.sendStatus(agent("gangnam"), protocol.Status{BrokerEpoch: epoch})
		return sent
	}
	put := func(brokers ...string) {
		t.Helper()
		for range 2 { // replicas
			if err := postgres.PutBrokerList(t.Context(), f.db.Pool, brokers); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(got []protocol.BrokerList, lists ...protocol.BrokerList) {
		t.Helper()
		if diff := cmp.Diff(lists, got); diff != "" {
			t.Error(diff)
		}
	}

	put()
	want(report(new(uint64)))
	put("wss://a/mqtt", "wss://b/mqtt")
	want(report(nil))
	first := protocol.BrokerList{Epoch: 1, Brokers: []string{"wss://a/mqtt", "wss://b/mqtt"}}
	want(report(new(uint64)), first)
	want(report(new(uint64)), first)
	want(report(new(uint64(1))))
	put()
	want(report(new(uint64(1))), protocol.BrokerList{Epoch: 2, Brokers: []string{}})
	want(report(new(uint64(2))))

	// The database is restored from a backup of before the last list, and the servers have other names.
	f.exec(`delete from broker_list where epoch = 2`)
	err := f.db.InTx(t.Context(), func(ctx context.Context, tx pgx.Tx, _ time.Time) error { return postgres.BeginRebuild(ctx, tx) })
	if err != nil {
		t.Fatal(err)
	}
	if got := report(new(uint64(2))); len(got) != 1 || got[0].Epoch <= 2 || !slices.Equal(got[0].Brokers, first.Brokers) {
		t.Errorf("after a restoration: got %+v, want the list of the backup with a later epoch", got)
	}
	put("wss://c/mqtt")
	if got := report(new(uint64(2))); len(got) != 1 || got[0].Epoch <= 2 || !slices.Equal(got[0].Brokers, []string{"wss://c/mqtt"}) {
		t.Errorf("after a restoration with other servers: got %+v, want the new list with a later epoch", got)
	}
}
