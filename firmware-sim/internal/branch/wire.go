package branch

import (
	"encoding/json"
	"sync"

	"github.com/yeolda/yeolda/firmware-sim/internal/netsim"
	"github.com/yeolda/yeolda/protocol"
)

// Message is one MQTT message between agent and cloud, for the log of the panel.
type Message struct {
	FromAgent bool
	Kind      protocol.Kind
	Payload   []byte
}

// MarshalJSON writes names and ids, without nonces and signatures. It parses a payload only when a client watches.
func (m Message) MarshalJSON() ([]byte, error) {
	var payload struct {
		RequestID string   `json:"requestId"`
		Device    string   `json:"device"`
		Doors     []string `json:"doors"`
		Outcome   string   `json:"outcome"`
	}
	// A payload that is not JSON is shown without its content.
	_ = json.Unmarshal(m.Payload, &payload)
	if payload.Device != "" {
		payload.Doors = []string{payload.Device}
	}
	return json.Marshal(struct {
		FromAgent bool          `json:"fromAgent"`
		Kind      protocol.Kind `json:"kind"`
		RequestID string        `json:"requestId,omitempty"`
		Devices   []string      `json:"devices,omitempty"`
		Outcome   string        `json:"outcome,omitempty"`
	}{m.FromAgent, m.Kind, payload.RequestID, payload.Doors, payload.Outcome})
}

// wire taps one connection of the agent.
type wire struct {
	branch *Branch

	mu     sync.Mutex
	said   bool // the agent has sent its status
	online bool // and the broker has acknowledged it
	down   bool
}

func (b *Branch) newWire() netsim.Tap { return &wire{branch: b} }

// FromAgent implements netsim.Tap.
func (w *wire) FromAgent(topic string, payload []byte) {
	branch, kind, ok := protocol.ParseTopic(topic)
	if !ok || branch != w.branch.cfg.Branch {
		return
	}
	if kind == protocol.KindStatus {
		if s, err := protocol.Decode[protocol.Status](payload); err == nil && s.State == protocol.Online {
			w.mu.Lock()
			w.said = true
			w.mu.Unlock()
		}
	}
	w.branch.log(true, kind, payload)
}

// ToAgent implements netsim.Tap.
func (w *wire) ToAgent(topic string, payload []byte) {
	branch, kind, ok := protocol.ParseTopic(topic)
	if !ok || branch != w.branch.cfg.Branch {
		return
	}
	w.branch.log(false, kind, payload)
}

// Acked implements netsim.Tap. An agent is online when the broker has acknowledged its status.
func (w *wire) Acked(topic string) {
	if _, kind, ok := protocol.ParseTopic(topic); !ok || kind != protocol.KindStatus {
		return
	}
	w.mu.Lock()
	changed := w.said && !w.online && !w.down
	w.online = w.online || changed
	w.mu.Unlock()
	if changed {
		w.branch.count(+1)
	}
}

// Down implements netsim.Tap.
func (w *wire) Down() {
	w.mu.Lock()
	changed := w.online
	w.online, w.down = false, true
	w.mu.Unlock()
	if changed {
		w.branch.count(-1)
	}
}

// count adds to the number of connections on which the agent is online.
func (b *Branch) count(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wires += n
	b.notifyPresence()
}

// log passes a message to the panel, except heartbeats, which would hide the rest.
func (b *Branch) log(fromAgent bool, kind protocol.Kind, payload []byte) {
	if kind != protocol.KindHeartbeat {
		b.cfg.Changed(Change{Message: &Message{FromAgent: fromAgent, Kind: kind, Payload: payload}})
	}
}
