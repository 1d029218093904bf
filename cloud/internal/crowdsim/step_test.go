package crowdsim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/moneytest"
	"github.com/yeolda/yeolda/cloud/internal/sandbox"
)

// step is one verb with its parameters.
type step struct {
	*world
	t    *testing.T
	rng  *rand.Rand
	name string

	method string // of its payments; empty: any
	key    string // Idempotency-Key of its requests; empty: none
}

// verbs are what the crowd does, with their weights.
var verbs = []struct {
	weight int
	name   string
	do     func(*step)
}{
	{16, "buy", (*step).buy}, {4, "extend", (*step).extend}, {4, "exchange", (*step).exchange}, {5, "cancel", (*step).cancel},
	{2, "end", (*step).end}, {2, "release", (*step).release}, {3, "correct own", (*step).correctOwn}, {2, "enter account", (*step).enterAccount},
	{5, "move", (*step).move}, {3, "staff cancel", (*step).staffCancel}, {4, "part", (*step).part}, {3, "rejected part", (*step).rejectedPart}, {3, "approve", (*step).approve},
	{2, "decline", (*step).decline}, {2, "retry", (*step).retry}, {2, "rotate key", (*step).rotateKey}, {3, "correct", (*step).correct},
	{2, "close", (*step).closeDay}, {3, "assign entity", (*step).assign}, {2, "reject keys", (*step).rejectKeys}, {2, "retire entity", (*step).retire}, {2, "price", (*step).price}, {2, "policy", (*step).policy}, {2, "register", (*step).register},
	{1, "reconcile", (*step).reconcile}, {2, "by hand", (*step).byHand}, {2, "receipt", (*step).receipt}, {1, "check", (*step).checkPayment}, {2, "stuck", (*step).stuck},
	{6, "partner", (*step).partnerEvent}, {2, "partner again", (*step).partnerAgain}, {2, "calendar", (*step).calendar},
	{6, "deposit", (*step).deposit}, {3, "dashboard", (*step).dashboard}, {1, "reverse", (*step).reverse}, {3, "callback again", (*step).callbackAgain},
	{8, "fault", (*step).fault}, {4, "time", (*step).pass},
	{3, "issue", (*step).issue}, {2, "switch room", (*step).switchRoom}, {2, "drop conflict", (*step).dropConflict}, {2, "resolve conflict", (*step).resolveConflict},
	{1, "erase", (*step).erase}, {1, "block", (*step).block}, {2, "look", (*step).look}, {2, "cancel as shown", (*step).cancelAsShown},
}

// run carries out one verb.
func (s *step) run() {
	all := 0
	for _, v := range verbs {
		all += v.weight
	}
	n := s.rng.IntN(all)
	for _, v := range verbs {
		if n -= v.weight; n < 0 {
			s.name += " " + v.name
			v.do(s)
			return
		}
	}
}

// beside returns a step for a request that is sent beside others of s, with random numbers of its own.
func (s *step) beside() *step {
	one := *s
	one.rng = rand.New(rand.NewPCG(s.seed, s.rng.Uint64()))
	return &one
}

// call sends a request to a replica. Rejections are part of a sequence; only an answer of 500, or none, is an error.
func (s *step) call(b *moneytest.Buyer, method, path string, body any) moneytest.Reply {
	b = new(*b)
	b.Header = http.Header{chosen: {fmt.Sprint(s.rng.IntN(6))}}
	if s.key != "" {
		b.Header.Set("Idempotency-Key", s.key)
	}
	reply, err := b.Do(s.ctx, method, path, body)
	if err != nil || reply.HTTP == http.StatusInternalServerError {
		s.violation("%s %s %v: %v %s", method, path, body, err, reply.Raw)
	}
	_, verb, _ := strings.Cut(s.name, " ")
	s.note(fmt.Sprint(verb, " ", reply.HTTP), s.name, method, path, mustJSON(body), reply.Raw)
	return reply
}

func (s *step) violation(format string, args ...any) {
	s.t.Errorf("seed %d, step %s: %s", s.seed, s.name, fmt.Sprintf(format, args...))
}

// fault makes the provider fail once.
func (s *step) fault() {
	target := pick(s.rng, sandbox.TargetConfirm, sandbox.TargetCancel, sandbox.TargetGet, sandbox.TargetRefund, sandbox.TargetCallback, sandbox.TargetMessages, sandbox.TargetChannel,
		sandbox.TargetCashReceipts)
	kind := pick(s.rng, sandbox.FaultDropAfterCommit, sandbox.FaultError)
	if target == sandbox.TargetRefund {
		kind = sandbox.FaultError
	}
	f := sandbox.Fault{Target: target, Kind: kind, Times: 1, Status: 500}
	if target == sandbox.TargetCancel && s.rng.IntN(3) == 0 {
		f.Kind, f.Status, f.Code = sandbox.FaultError, 400, "EXCEED_MAX_REFUND_DUE"
	}
	s.note("fault", s.name, target, f.Kind)
	if err := s.box.SetFault(f); err != nil {
		s.violation("%v", err)
	}
}

// pass lets time pass for the service.
func (s *step) pass() { s.clock.Advance(time.Duration(s.rng.IntN(480)) * time.Second) }

// soon returns the start of a slot in the next hours.
func (s *step) soon() time.Time { return s.slot(1 + s.rng.IntN(30)) }

func pick[T any](rng *rand.Rand, list ...T) T { return list[rng.IntN(len(list))] }

func mustJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
