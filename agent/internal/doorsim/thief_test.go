package doorsim

import (
	"time"

	"github.com/yeolda/yeolda/protocol"
)

// thief is a party with a stolen standby credential. It hears every message of the cloud, so it knows every nonce, and says
// about each one what its kind is, at its credential's topics and at those of the branch. It is stronger than a broker with
// access rules allows.
type thief string

// The kinds of thieves. A request is answered with lies of one kind.
const (
	noThief  thief = ""
	claims   thief = "claims"  // claims every request with nonces of its own
	opens    thief = "opened"  // reports every grant as opened
	fails    thief = "failed"  // reports every grant as failed
	drops    thief = "dropped" // reports every grant as dropped
	confuses thief = "all"     // all of them
)

// thieves are the kinds from which a seed chooses.
var thieves = []thief{claims, opens, fails, drops, confuses}

// hear is called for each message of the cloud.
func (t thief) hear(w *fixture, m protocol.Message) {
	switch m := m.(type) {
	case protocol.Ask:
		if t == claims || t == confuses {
			nonce := make([]byte, 22)
			r := w.net.fate("thief " + m.RequestID)
			for i := range nonce {
				nonce[i] = 'A' + byte(r.IntN(26))
			}
			nonce[21] = 'A' // the last of 22 characters has 2 bits
			t.say(w, protocol.Claim{RequestID: m.RequestID, Nonce: string(nonce)}, m.RequestID)
		}
	case protocol.Grant:
		for _, outcome := range []protocol.Outcome{protocol.Opened, protocol.Failed, protocol.Dropped} {
			if t != confuses && t != thief(outcome) {
				continue
			}
			for _, device := range m.Doors {
				for _, nonce := range []string{m.Nonce, ""} {
					t.say(w, protocol.Result{RequestID: m.RequestID, Nonce: nonce, Device: device, Outcome: outcome, Detail: "thief"},
						m.RequestID+" "+device+" "+string(outcome)+" "+nonce)
				}
			}
		}
	}
}

// say sends a message on the thief's own topic and on the topic of the branch.
func (t thief) say(w *fixture, m protocol.Message, label string) {
	w.count("lies")
	for _, username := range []string{protocol.AgentID(branch) + "-thief", ""} {
		payload, err := protocol.Encode(m)
		if err != nil {
			w.violation("the thief cannot encode %+v: %v", m, err)
			return
		}
		from := protocol.Agent{Branch: branch, Username: username}
		w.net.toCloud("thief "+username+string(m.Kind())+" "+label, time.Now().Add(protocol.ResultTTL), &life{pi: w.pi}, func() {
			if err := w.cloud.receivePayload(from, m.Kind(), payload); err != nil {
				w.violation("the cloud cannot decode: %v", err)
			}
		})
	}
}
