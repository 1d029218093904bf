package broker

import (
	"container/list"
	"time"
)

// crowd holds the unauthenticated connections that share a number of places, in groups by network or address.
type crowd struct {
	groupOf  func(client string) string
	places   map[*conn]*list.Element
	groups   map[string]*list.List // of *conn, the oldest first
	progress time.Time             // when a connection of this crowd authenticated last
}

func newCrowd(groupOf func(client string) string) crowd {
	return crowd{groupOf: groupOf, places: make(map[*conn]*list.Element), groups: make(map[string]*list.List)}
}

func (c *crowd) size() int { return len(c.places) }

func (c *crowd) add(added *conn) {
	name := c.groupOf(added.client)
	group := c.groups[name]
	if group == nil {
		group = list.New()
		c.groups[name] = group
	}
	c.places[added] = group.PushBack(added)
}

// remove has no effect on a connection that is not here.
func (c *crowd) remove(removed *conn) {
	place, here := c.places[removed]
	if !here {
		return
	}
	delete(c.places, removed)
	name := c.groupOf(removed.client)
	group := c.groups[name]
	group.Remove(place)
	if group.Len() == 0 {
		delete(c.groups, name)
	}
}

// sampled is the number of connections whose groups victim compares. A group with most of the places is among them almost
// surely; comparing all groups would take long in a flood from many networks.
const sampled = 16

// victim returns the oldest connection of the largest group among those of some arbitrary connections. The crowd is not empty.
func (c *crowd) victim() *conn {
	var largest *list.List
	seen := 0
	for other := range c.places {
		if group := c.groups[c.groupOf(other.client)]; largest == nil || group.Len() > largest.Len() {
			largest = group
		}
		if seen++; seen == sampled {
			break
		}
	}
	return largest.Front().Value.(*conn)
}
