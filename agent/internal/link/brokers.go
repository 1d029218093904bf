package link

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"unicode"
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

// set replaces the brokers. Their order follows from the branch and from each address alone (rendezvous hashing): the branches
// are spread evenly, the agents of a broker that is away are spread over all others, and a broker that joins or leaves moves no
// agents between the others.
func (b *brokers) set(list []*url.URL) {
	weight := func(u *url.URL) []byte {
		sum := sha256.Sum256([]byte(b.branch + " " + u.String()))
		return sum[:]
	}
	order := slices.SortedFunc(slices.Values(list), func(one, other *url.URL) int {
		return cmp.Or(bytes.Compare(weight(other), weight(one)), strings.Compare(one.String(), other.String()))
	})
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
	return b.order[(b.place(u)+1)%len(b.order)]
}

// better returns the brokers that the agent prefers to another one, the home first.
func (b *brokers) better(u *url.URL) []*url.URL {
	b.mu.Lock()
	defer b.mu.Unlock()
	if place := b.place(u); place >= 0 {
		return slices.Clone(b.order[:place])
	}
	return slices.Clone(b.order) // it is no longer in the list
}

// place returns the place of a broker, or -1. mu is held.
func (b *brokers) place(u *url.URL) int {
	return slices.IndexFunc(b.order, func(other *url.URL) bool { return *other == *u })
}
