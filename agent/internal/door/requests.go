package door

import (
	"time"

	"github.com/yeolda/yeolda/protocol"
)

const (
	// maxRequests limits the requests in memory, of all doors together.
	maxRequests = 1024
	// spentDelay is the age of a claim after which a decided request is obsolete: the guest no longer waits for it (7 seconds),
	// and a grant for it would be too old.
	spentDelay = 10 * time.Second
)

// request is the state of one request id. It exists only in memory: after a restart no nonce is known, so nothing can be
// replayed.
type request struct {
	device    string // the first door it asks for, whose share of the memory it uses
	nonce     string
	replaced  string    // the previous nonce, which was never granted in time and drives nothing
	claimedAt time.Time // monotonic; the grant for nonce was issued later
	decided   bool      // granted or denied: the nonce is spent
	results   []protocol.Result
	expires   time.Time
}

func (r *request) obsolete(now time.Time) bool {
	return now.After(r.expires) || r.decided && now.Sub(r.claimedAt) > spentDelay
}

// requests is a bounded memory shared fairly between doors. One door may use all free memory; when the memory is full, a
// door with fewer requests displaces the oldest request of the door that has most. Forgetting a request is safe: its nonce
// becomes unknown, and a grant for an unknown nonce drives nothing.
type requests struct {
	byID  map[string]*request
	count map[string]int // by device
}

func newRequests() requests {
	return requests{byID: make(map[string]*request), count: make(map[string]int)}
}

// add finds or creates a request. It returns nil if the door already uses the largest share of a full memory.
func (q *requests) add(id, device string, now time.Time) *request {
	if r := q.byID[id]; r != nil {
		return r
	}
	if len(q.byID) >= maxRequests {
		q.removeObsolete(now)
	}
	if len(q.byID) >= maxRequests && !q.displace(device) {
		return nil
	}
	r := &request{device: device, expires: now.Add(protocol.ResultTTL)}
	q.byID[id] = r
	q.count[device]++
	return r
}

func (q *requests) removeObsolete(now time.Time) {
	for id, r := range q.byID {
		if r.obsolete(now) {
			q.remove(id)
		}
	}
}

// displace removes the oldest request of the door that has most, unless device has as many itself.
func (q *requests) displace(device string) bool {
	largest := device
	for other, n := range q.count {
		if n > q.count[largest] {
			largest = other
		}
	}
	if q.count[largest] <= q.count[device]+1 {
		return false
	}
	oldest := ""
	for id, r := range q.byID {
		if r.device == largest && (oldest == "" || r.expires.Before(q.byID[oldest].expires)) {
			oldest = id
		}
	}
	q.remove(oldest)
	return true
}

func (q *requests) remove(id string) {
	q.count[q.byID[id].device]--
	delete(q.byID, id)
}
