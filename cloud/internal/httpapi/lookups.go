package httpapi

import (
	"net/http"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
)

// lookUpLimit is the number of bytes of all kept answers, and lookUpOverhead what an answer costs beside its text.
const (
	lookUpLimit    = 32 << 20
	lookUpOverhead = 512
)

// lookUps keeps the encoded answers to look-ups of guests, the most recent ones up to a limit in bytes. An answer is given
// again only after the database has confirmed that nothing changed, which costs a fraction of building and encoding it
// (BenchmarkLookUpOfADay). The zero value is ready to use.
type lookUps struct {
	mu   sync.Mutex
	kept *simplelru.LRU[lookUp, keptAnswer]
	size int // bytes
}

// lookUp is a question that guests ask.
type lookUp struct {
	version int // of the interface
	branch  string
	window  booking.LocalWindow
}

type keptAnswer struct {
	wire.Answer
	basis reserve.Basis
}

func (a keptAnswer) bytes() int { return a.Size() + lookUpOverhead }

func (l *lookUps) get(question lookUp) (keptAnswer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		return keptAnswer{}, false
	}
	return l.kept.Get(question)
}

func (l *lookUps) keep(question lookUp, answer keptAnswer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil {
		l.kept, _ = simplelru.NewLRU(lookUpLimit/lookUpOverhead, func(_ lookUp, a keptAnswer) { l.size -= a.bytes() })
	}
	l.kept.Remove(question)
	l.kept.Add(question, answer)
	for l.size += answer.bytes(); l.size > lookUpLimit; {
		l.kept.RemoveOldest()
	}
}

// answerLookUp answers a look-up from memory, or else with what body makes of the branch's present state.
func (a *API) answerLookUp(w http.ResponseWriter, r *http.Request, question lookUp, body func(reserve.Availability) any) error {
	if kept, ok := a.lookUps.get(question); ok {
		current, err := a.Reserve.Unchanged(r.Context(), kept.basis)
		if err != nil {
			return err
		}
		if current {
			kept.Write(w, r)
			return nil
		}
	}
	view, err := a.Reserve.Availability(r.Context(), question.branch, question.window)
	if err != nil {
		return err
	}
	answer, err := wire.EncodeData(body(view))
	if err != nil {
		return err
	}
	a.lookUps.keep(question, keptAnswer{answer, view.Basis})
	answer.Write(w, r)
	return nil
}
