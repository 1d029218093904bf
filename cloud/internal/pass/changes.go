package pass

import (
	"context"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	// changeAge is how far back changes of passes are looked for: longer than a transaction that commits one may last.
	changeAge = time.Minute
	// recentAge is how far back most looks go, because few transactions last longer. A minute has thousands of changes when guests
	// of a large chain buy or when many agents connect for the first time. In the minute after 10,000 agents connected, a press
	// took 306 ms (p99), and takes 80 (yeolda-bench -fleet 10000).
	recentAge = 5 * time.Second
	// completeInterval is the time between two looks that go back as far as changeAge.
	completeInterval = 10 * time.Second
)

// changes finds the changes of passes and agents that it has not returned before. The zero value has returned none.
type changes struct {
	seen     map[postgres.PassChange]bool
	looked   time.Time
	complete time.Time // when a look went back as far as changeAge
}

// branches returns the codes of the branches with new changes.
func (c *changes) branches(ctx context.Context, q postgres.Querier, now time.Time) (codes []string, err error) {
	age := recentAge
	if now.Sub(c.complete) >= completeInterval || now.Sub(c.looked) > recentAge/2 { // the latter after an outage of the database
		age = changeAge
	}
	list, err := postgres.PassChanges(ctx, q, age)
	if err != nil {
		return nil, err
	}
	c.looked = now
	old := c.seen
	if age == changeAge {
		c.seen, c.complete = make(map[postgres.PassChange]bool, len(list)), now
	}
	for _, change := range list {
		if !old[change] {
			codes = append(codes, change.Branch)
		}
		c.seen[change] = true
	}
	return codes, nil
}
