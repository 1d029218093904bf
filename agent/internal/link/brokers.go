package link

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/yeolda/yeolda/protocol"
)

// ParseURLs parses the addresses of the brokers of a pool, separated by commas or spaces; see ParseURL. An address that occurs
// twice counts once.
func ParseURLs(s string) ([]*url.URL, error) {
	var brokers []*url.URL
	for _, text := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		u, err := ParseURL(text)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(brokers, func(other *url.URL) bool { return *other == *u }) {
			brokers = append(brokers, u)
		}
	}
	if len(brokers) == 0 {
		return nil, errors.New("broker address is missing")
	}
	return brokers, nil
}

// brokers is the order in which an agent tries the brokers of its pool. The first one is its home.
type brokers struct {
	branch string

	mu    sync.Mutex
	order []*url.URL
}

// set replaces the brokers. Those of last follow the others. See protocol.BrokerOrder.
func (b *brokers) set(list, last []*url.URL) {
	var order []*url.URL
	for _, part := range [][]*url.URL{list, last} {
		byAddress := make(map[string]*url.URL, len(part))
		for _, u := range part {
			byAddress[u.String()] = u
		}
		for _, address := range protocol.BrokerOrder(b.branch, slices.Collect(maps.Keys(byAddress))) {
			if u := byAddress[address]; place(order, u) < 0 {
				order = append(order, u)
			}
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.order = order
}

func (b *brokers) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.order)
}

// home returns the broker that the agent prefers.
func (b *brokers) home() *url.URL {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.order[0]
}

// after returns the broker to try when another one is away.
func (b *brokers) after(u *url.URL) *url.URL {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.order[(place(b.order, u)+1)%len(b.order)]
}

// better returns the brokers that the agent prefers to another one, the home first.
func (b *brokers) better(u *url.URL) []*url.URL {
	b.mu.Lock()
	defer b.mu.Unlock()
	if place := place(b.order, u); place >= 0 {
		return slices.Clone(b.order[:place])
	}
	return slices.Clone(b.order) // it is no longer in the list
}

// place returns the place of a broker, or -1.
func place(order []*url.URL, u *url.URL) int {
	return slices.IndexFunc(order, func(other *url.URL) bool { return *other == *u })
}
