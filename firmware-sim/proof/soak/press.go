package soak

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/yeolda/yeolda/firmware-sim/proof/record"
)

func (p *purchase) press(ctx context.Context) { p.pressWith(ctx, p.key, false) }

// pressWith presses a button with a key and waits for the result at one replica or both.
func (p *purchase) pressWith(ctx context.Context, key string, wrong bool) {
	kind := []string{"room", "room", "front"}[p.dice.IntN(3)]
	at := p.anywhere()
	r := p.ask(ctx, at, http.MethodPost, "/door/v2/unlock", map[string]string{"branch": p.slot.Branch, "doorlockType": kind, "key": key})
	press := record.Press{Branch: p.slot.Branch, Kind: kind, Order: p.order, WrongKey: wrong, Call: r.call, Return: r.ret, Status: r.status, Type: r.kind}
	if wrong {
		press.Order = ""
	}
	p.await(ctx, r, &press, at, "/door/v2/unlock/subscribe", key)
}

// why asks a replica why a door does not open, and returns the code of the answer, or "" if there is none.
func (p *purchase) why(ctx context.Context, branch, kind, key string) string {
	query := url.Values{"branch": {branch}, "door": {kind}}
	var answer struct{ Code string }
	p.ask(ctx, p.anywhere(), http.MethodGet, "/v2/keys/"+key+"/why?"+query.Encode(), nil).into(&answer)
	return answer.Code
}

// await subscribes to the result of an accepted press, mostly at the other replica, sometimes at both, and records the
// results.
func (p *purchase) await(ctx context.Context, r reply, press *record.Press, at int, path, key string) {
	var accepted struct {
		RequestID string `json:"requestId"`
	}
	if r.into(&accepted) {
		press.RequestID = accepted.RequestID
		p.tempt(press.Branch, press.RequestID)
		replicas := []int{1 - at%2}
		switch p.dice.IntN(5) {
		case 0:
			replicas = []int{at}
		case 1:
			replicas = []int{0, 1}
		}
		told := make([]record.Told, len(replicas))
		var waiting sync.WaitGroup
		for i, replica := range replicas {
			waiting.Go(func() { told[i] = p.subscribe(ctx, replica, path, accepted.RequestID, key) })
		}
		waiting.Wait()
		if oneIn(p.dice, 6) { // and subscribes again
			told = append(told, p.subscribe(ctx, p.anywhere(), path, accepted.RequestID, key))
		}
		press.Told = told
		if key != "" && slices.ContainsFunc(told, func(t record.Told) bool { return t.Status == "FAILED" }) {
			press.Why = p.why(ctx, press.Branch, press.Kind, key)
		}
	}
	p.note(func(rec *record.Record) { rec.Presses = append(rec.Presses, *press) })
}
