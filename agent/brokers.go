package agent

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/protocol"
)

// errExposed is returned for a list that would send the password unencrypted over a public network, unlike the address that the
// agent was set up with.
var errExposed = errors.New("an address is not encrypted")

// brokerList holds the list of brokers that the cloud has sent. It is used by writeAll only, after load.
type brokerList struct {
	file     string     // empty: the agent takes no list
	username string     // of the credential that the list belongs to
	own      []*url.URL // that the agent was set up with
	epoch    atomic.Uint64
}

// load returns the brokers of the stored list, if it belongs to this credential.
func (b *brokerList) load() ([]*url.URL, error) {
	list, err := readList[protocol.BrokerList](b.file, b.username)
	if err != nil || list == nil {
		return nil, err
	}
	brokers, err := b.parse(*list)
	if err != nil {
		return nil, err
	}
	b.epoch.Store(list.Epoch)
	return brokers, nil
}

// apply stores a list whose signature was verified and returns its brokers.
func (b *brokerList) apply(list protocol.BrokerList) ([]*url.URL, error) {
	brokers, err := b.parse(list)
	if err != nil {
		return nil, err
	}
	if err := writeList(b.file, b.username, list); err != nil {
		return nil, err
	}
	b.epoch.Store(list.Epoch)
	return brokers, nil
}

func (b *brokerList) parse(list protocol.BrokerList) ([]*url.URL, error) {
	if len(list.Brokers) == 0 {
		return nil, nil
	}
	brokers, err := link.ParseURLs(strings.Join(list.Brokers, " "))
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(brokers, link.Exposed) && !slices.ContainsFunc(b.own, link.Exposed) {
		return nil, errExposed
	}
	return brokers, nil
}

// applyBrokers uses a list of brokers from then on. The connection moves to a preferred broker as if that one had just returned.
func (a *agent) applyBrokers(list protocol.BrokerList) {
	if a.brokers.file == "" || list.Epoch <= a.brokers.epoch.Load() {
		return
	}
	err := list.Verify(a.keys.keys...)
	var brokers []*url.URL
	if err == nil {
		brokers, err = a.brokers.apply(list)
	}
	if err != nil {
		a.log.Warn("list of brokers ignored", "epoch", list.Epoch, "error", err)
		return
	}
	a.link.SetBrokers(brokers, a.brokers.own)
	a.log.Info("list of brokers in use", "epoch", list.Epoch, "brokers", list.Brokers)
	a.link.Refresh()
}
