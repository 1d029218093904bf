package light

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/yeolda/yeolda/protocol"
)

// Limits of the real agent; see agent/internal/link.
const (
	connectTimeout  = 20 * time.Second // TCP and CONNACK together
	failoverTimeout = 5 * time.Second  // the same, while there are brokers that were not tried yet
	packetTimeout   = 3 * time.Second  // for the acknowledgement of anything sent
	eventDelay      = 250 * time.Millisecond
	eventTTL        = 10 * time.Minute
)

// phase is the state of an agent's connection.
type phase uint8

const (
	waiting     phase = iota // for the next attempt
	dialing                  // TCP
	connecting               // CONNECT was sent
	subscribing              // SUBSCRIBE for the credential was sent
	following                // SUBSCRIBE for the branch was sent
	announcing               // the status was sent
	online                   // the status was acknowledged
)

// agent is one light agent. Only the loop uses it.
type agent struct {
	branch   string
	password string
	bootID   string

	phase      phase
	connection uint32 // counts the connections
	socket     int32  // -1: none
	lastID     uint16 // of a packet
	pacer      pacer
	broker     uint8 // place of the broker to try in the agent's order

	began       time.Duration // when the connection became usable
	limit       time.Duration // end of the current phase
	heartbeatAt time.Duration
	statusAt    time.Duration
	due         int64 // tick of the timer; 0: none

	partial  []byte              // of a packet that has not arrived completely
	unacked  []sent              // in order
	queue    []outboxItem        // not sent: there is no connection
	later    []timed             // events that are not due
	requests map[string]*request // by id; nil: none
}

// sent is a PUBLISH that the broker has not acknowledged.
type sent struct {
	id    uint16
	limit time.Duration
	item  outboxItem
}

// outboxItem is a message that outlives a connection if it has an expiry.
type outboxItem struct {
	kind    protocol.Kind
	payload []byte
	expires time.Duration // 0: with the connection
}

type timed struct {
	at    time.Duration
	event protocol.Event
}

// request is an unlock request; see agent/internal/door.
type request struct {
	nonce     string
	claimedAt time.Duration
	decided   bool
	results   []protocol.Result
	expires   time.Duration
}

func newAgent(branch, password string) agent {
	return agent{branch: branch, password: password, bootID: rand.Text(), socket: -1}
}

func (a *agent) identity() protocol.Agent {
	return protocol.Agent{Branch: a.branch, Username: protocol.AgentID(a.branch)}
}

// wire is what an agent needs of its loop.
type wire interface {
	now() time.Duration
	write(packet []byte) error
	keys() []ed25519.PublicKey
	status(a *agent) protocol.Status
	opened() // a door was opened
}

// errRejected is returned when the broker ends or rejects a connection.
var errRejected = errors.New("light: rejected by the broker")

// errTakenOver is returned when another client has connected with the agent's credential.
var errTakenOver = errors.New("light: session taken over")

// errSilent is returned when the broker has not answered in time.
var errSilent = errors.New("light: no answer from the broker")

// start sends the CONNECT packet on a new TCP connection.
func (a *agent) start(w wire) error {
	packet, err := a.connectPacket()
	if err != nil {
		return err
	}
	a.phase = connecting
	return w.write(packet)
}

// receive handles bytes from the broker.
func (a *agent) receive(w wire, received []byte) error {
	if len(a.partial) > 0 {
		received = append(a.partial, received...)
		a.partial = nil
	}
	for {
		header, body, rest, ok, err := nextPacket(received)
		if err != nil {
			return err
		}
		if !ok {
			if len(rest) > 0 {
				a.partial = append([]byte(nil), rest...)
			}
			return nil
		}
		received = rest
		if err := a.handle(w, header, body); err != nil {
			return err
		}
	}
}

func (a *agent) handle(w wire, header byte, body []byte) error {
	if header>>4 == packets.Puback && len(body) == 2 { // nearly every packet: success without properties
		return a.acknowledged(w, uint16(body[0])<<8|uint16(body[1]))
	}
	pk, err := decode(header, body)
	if err != nil {
		return err
	}
	switch pk.FixedHeader.Type {
	case packets.Connack:
		if pk.ReasonCode != packets.CodeSuccess.Code {
			return fmt.Errorf("%w: CONNACK 0x%02X", errRejected, pk.ReasonCode)
		}
		if err := w.write(pingPacket); err != nil {
			return err
		}
		return a.subscribe(w, subscribing, a.identity())
	case packets.Suback:
		for _, code := range pk.ReasonCodes {
			if code >= packets.ErrUnspecifiedError.Code {
				return fmt.Errorf("%w: SUBACK 0x%02X", errRejected, code)
			}
		}
		if a.phase == subscribing {
			return a.subscribe(w, following, protocol.Agent{Branch: a.branch})
		}
		a.phase = announcing
		return a.publishStatus(w)
	case packets.Puback:
		return a.acknowledged(w, pk.PacketID)
	case packets.Publish:
		a.message(w, pk)
		return a.flush(w)
	case packets.Disconnect:
		if pk.ReasonCode == packets.ErrSessionTakenOver.Code {
			return errTakenOver
		}
		return fmt.Errorf("%w: DISCONNECT 0x%02X", errRejected, pk.ReasonCode)
	}
	return nil
}

func (a *agent) subscribe(w wire, next phase, to protocol.Agent) error {
	packet, err := subscribePacket(a.nextID(), to)
	if err != nil {
		return err
	}
	a.phase, a.limit = next, w.now()+packetTimeout
	return w.write(packet)
}

func (a *agent) nextID() uint16 {
	if a.lastID++; a.lastID == 0 { // [MQTT-2.2.1-2]
		a.lastID = 1
	}
	return a.lastID
}

// acknowledged handles the acknowledgement of a PUBLISH. That of the first status makes the agent online.
func (a *agent) acknowledged(w wire, id uint16) error {
	for i, s := range a.unacked {
		if s.id == id {
			a.unacked = append(a.unacked[:i], a.unacked[i+1:]...)
			break
		}
	}
	if a.phase != announcing {
		return nil
	}
	a.phase, a.began = online, w.now()
	a.heartbeatAt, a.statusAt = w.now()+protocol.FirstHeartbeat(), w.now()+protocol.FirstStatusAgain()
	return a.flush(w)
}

// message handles a message from the cloud.
func (a *agent) message(w wire, pk packets.Packet) {
	to, kind, ok := protocol.ParseAgentTopic(pk.TopicName)
	if !ok || to.Branch != a.branch {
		return
	}
	switch kind {
	case protocol.KindDoorAsk:
		if m, err := protocol.Decode[protocol.Ask](pk.Payload); err == nil {
			a.ask(w, m)
		}
	case protocol.KindDoorGrant:
		if m, err := protocol.Decode[protocol.Grant](pk.Payload); err == nil {
			a.grant(w, m)
		}
	case protocol.KindDoorDeny:
		if m, err := protocol.Decode[protocol.Deny](pk.Payload); err == nil {
			if r := a.requests[m.RequestID]; r != nil && r.nonce == m.Nonce {
				r.decided = true
			}
		}
	}
}

// ask answers an ask as the real agent does: with the same claim while its nonce can be used, and with the results after a
// grant.
func (a *agent) ask(w wire, m protocol.Ask) {
	for _, device := range m.Doors {
		if !hasDoor(device) {
			return
		}
	}
	now := w.now()
	for id, r := range a.requests {
		if now > r.expires {
			delete(a.requests, id)
		}
	}
	r := a.requests[m.RequestID]
	if r == nil {
		if a.requests == nil {
			a.requests = make(map[string]*request)
		}
		r = &request{}
		a.requests[m.RequestID] = r
	}
	if r.decided {
		a.report(now, r.results)
		return
	}
	if r.nonce == "" || now-r.claimedAt > protocol.GrantAge {
		r.nonce, r.claimedAt, r.expires = protocol.NewNonce(), now, now+protocol.ResultTTL
	}
	a.put(protocol.Claim{RequestID: m.RequestID, Nonce: r.nonce}, r.claimedAt+protocol.GrantAge)
}

// grant opens the doors of a grant, at most once for each nonce.
func (a *agent) grant(w wire, m protocol.Grant) {
	now := w.now()
	if m.Branch != a.branch || m.Verify(w.keys()...) != nil {
		return
	}
	r := a.requests[m.RequestID]
	switch {
	case r == nil || r.nonce != m.Nonce:
		for _, device := range m.Doors {
			a.report(now, []protocol.Result{{RequestID: m.RequestID, Nonce: m.Nonce, Device: device, Outcome: protocol.Unknown,
				Detail: "the nonce is unknown; the agent may have restarted"}})
		}
		return
	case r.decided:
		a.report(now, r.results)
		return
	}
	r.decided, r.expires = true, now+protocol.ResultTTL
	for _, device := range m.Doors {
		result := protocol.Result{RequestID: m.RequestID, Nonce: m.Nonce, Device: device, Outcome: protocol.Opened}
		if age := now - r.claimedAt; age > protocol.GrantAge {
			result.Outcome, result.Detail = protocol.Dropped, fmt.Sprintf("the grant arrived %v after the claim", age.Round(time.Millisecond))
		} else {
			w.opened()
			event := protocol.Event{Kind: protocol.EventEnergized, Device: device, RequestID: m.RequestID}
			a.later = append(a.later, timed{now + eventDelay, event})
			event.Kind, event.EnergizedMs = protocol.EventReleased, m.PulseMs
			a.later = append(a.later, timed{now + m.Pulse() + eventDelay, event})
		}
		r.results = append(r.results, result)
	}
	slices.SortStableFunc(a.later, func(x, y timed) int { return cmp.Compare(x.at, y.at) })
	a.report(now, r.results)
}

func (a *agent) report(now time.Duration, results []protocol.Result) {
	for _, result := range results {
		a.put(result, now+protocol.ResultTTL)
	}
}

// put queues a message until it expires.
func (a *agent) put(m protocol.Message, expires time.Duration) {
	if payload, err := protocol.Encode(m); err == nil { // every message is of a valid form
		a.queue = append(a.queue, outboxItem{m.Kind(), payload, expires})
	}
}

// flush sends the queued messages if the agent is online.
func (a *agent) flush(w wire) error {
	if a.phase != online {
		return nil
	}
	queue := a.queue
	a.queue = nil
	for i, item := range queue {
		if w.now() > item.expires {
			continue
		}
		if err := a.publish(w, item); err != nil {
			a.queue = append(a.queue, queue[i+1:]...)
			return err
		}
	}
	return nil
}

func (a *agent) publish(w wire, item outboxItem) error {
	id := a.nextID()
	packet, err := publishPacket(id, a.identity(), item.kind, item.payload)
	if err != nil {
		return err
	}
	if item.expires == 0 {
		item.payload = nil // it is never sent again
	}
	a.unacked = append(a.unacked, sent{id, w.now() + packetTimeout, item})
	return w.write(packet)
}

func (a *agent) publishStatus(w wire) error {
	payload, err := protocol.Encode(w.status(a))
	if err != nil {
		return err
	}
	return a.publish(w, outboxItem{kind: protocol.KindStatus, payload: payload})
}

func (a *agent) publishHeartbeat(w wire) error {
	payload, err := protocol.Encode(protocol.Heartbeat{BootID: a.bootID, Connection: a.connection, UptimeMs: w.now().Milliseconds()})
	if err != nil {
		return err
	}
	return a.publish(w, outboxItem{kind: protocol.KindHeartbeat, payload: payload})
}

// tick does what is due on a connection. It returns errSilent if an acknowledgement is overdue.
func (a *agent) tick(w wire) error {
	now := w.now()
	if len(a.unacked) > 0 && now >= a.unacked[0].limit || a.phase != online && now >= a.limit {
		return errSilent
	}
	for len(a.later) > 0 && a.phase == online {
		if a.later[0].at > now {
			break
		}
		a.put(protocol.Telemetry{At: time.Now(), Events: []protocol.Event{a.later[0].event}}, now+eventTTL)
		a.later = a.later[1:]
	}
	if err := a.flush(w); err != nil || a.phase != online {
		return err
	}
	if now >= a.statusAt {
		a.statusAt += protocol.StatusInterval
		if err := a.publishStatus(w); err != nil {
			return err
		}
	}
	if now >= a.heartbeatAt {
		a.heartbeatAt += protocol.HeartbeatInterval
		return a.publishHeartbeat(w)
	}
	return nil
}

// next returns when tick must be called.
func (a *agent) next() time.Duration {
	if a.phase != online {
		return a.limit
	}
	at := min(a.heartbeatAt, a.statusAt)
	if len(a.unacked) > 0 {
		at = min(at, a.unacked[0].limit)
	}
	if len(a.later) > 0 {
		at = min(at, a.later[0].at)
	}
	return at
}

// end closes the state of a connection. Messages that were not acknowledged return to the queue. It sets when the next connection
// begins; in a pool, to another broker.
func (a *agent) end(now time.Duration, err error, pool bool) {
	used := time.Duration(0)
	if a.phase == online {
		used = now - a.began
	}
	reached := a.phase > dialing
	var queue []outboxItem
	for _, s := range a.unacked {
		if s.item.expires > now {
			queue = append(queue, s.item)
		}
	}
	a.queue = append(queue, a.queue...)
	a.unacked, a.partial, a.phase = nil, nil, waiting
	if !errors.Is(err, errTakenOver) {
		a.broker++
	}
	a.limit = now + a.pacer.next(used, reached, err, pool)
}
