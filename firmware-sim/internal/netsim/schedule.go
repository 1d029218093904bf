package netsim

import (
	"container/heap"
	"time"
)

// arrival is a packet and its time of arrival.
type arrival struct {
	at     time.Time
	packet packet
}

// schedule is a heap of arrivals; those of the same time keep their order.
type schedule struct {
	list  []entry
	count int
}

type entry struct {
	arrival
	number int
}

func (s *schedule) Len() int { return len(s.list) }
func (s *schedule) Less(i, j int) bool {
	a, b := s.list[i], s.list[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.number < b.number
}
func (s *schedule) Swap(i, j int) { s.list[i], s.list[j] = s.list[j], s.list[i] }
func (s *schedule) Push(x any)    { s.list = append(s.list, x.(entry)) }
func (s *schedule) Pop() any {
	x := s.list[len(s.list)-1]
	s.list = s.list[:len(s.list)-1]
	return x
}

// inOrderOfTime delivers each packet when it is due, until arrivals is closed and empty. After dead is closed it
// discards all packets.
func inOrderOfTime(arrivals <-chan arrival, dead <-chan struct{}, deliver func(packet)) {
	var waiting schedule
	timer := time.NewTimer(0)
	defer timer.Stop()
	for arrivals != nil || waiting.Len() > 0 {
		from := arrivals
		if waiting.Len() >= queueLength {
			from = nil // the sender waits, as for a TCP window
		}
		var due <-chan time.Time
		if waiting.Len() > 0 {
			wait := time.Until(waiting.list[0].at)
			if wait <= 0 {
				deliver(heap.Pop(&waiting).(entry).packet)
				continue
			}
			timer.Reset(wait)
			due = timer.C
		}
		select {
		case a, more := <-from:
			if !more {
				arrivals = nil
				continue
			}
			heap.Push(&waiting, entry{a, waiting.count})
			waiting.count++
		case <-due:
			deliver(heap.Pop(&waiting).(entry).packet)
		case <-dead:
			if arrivals != nil {
				for range arrivals { // so that the reader does not block
				}
			}
			return
		}
	}
}
