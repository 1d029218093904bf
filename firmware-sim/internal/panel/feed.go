package panel

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"github.com/yeolda/yeolda/firmware-sim/internal/branch"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
)

const (
	// backlog is how many changes a slow reader may be behind before it is disconnected; it then reconnects and starts
	// from a snapshot.
	backlog = 1024
	// A page that does not answer pings is disconnected.
	pingInterval = 20 * time.Second
	pongLimit    = 50 * time.Second
	writeLimit   = 10 * time.Second
	// shownActuations is the number of past actuations per branch in a snapshot.
	shownActuations = 50
)

// Feed numbers the changes of all branches and sends them to the readers.
type Feed struct {
	mu      sync.Mutex
	seq     uint64
	readers map[*reader]struct{}
	closed  bool
}

type reader struct {
	branch string // empty: all
	lines  chan []byte
}

// NewFeed returns a feed without readers.
func NewFeed() *Feed { return &Feed{readers: make(map[*reader]struct{})} }

// delta is one change on the wire; type names the field that is set.
type delta struct {
	Seq    uint64    `json:"seq"`
	Type   string    `json:"type"`
	At     time.Time `json:"at"`
	Branch string    `json:"branch"`
	branch.Change
}

// Publish sends a change to the readers. It never blocks: a reader that is too far behind is disconnected.
func (f *Feed) Publish(name string, c branch.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seq++
	var line []byte
	for r := range f.readers {
		if r.branch != "" && r.branch != name {
			continue
		}
		if line == nil {
			d := delta{Seq: f.seq, Type: typeOf(c), At: time.Now(), Branch: name, Change: c}
			var err error
			if line, err = json.Marshal(d); err != nil {
				panic("panel: encode a change:  " + err.Error()) // plain structs always can
			}
		}
		select {
		case r.lines <- line:
		default:
			f.drop(r)
		}
	}
}

func typeOf(c branch.Change) string {
	switch {
	case c.Door != nil:
		return "door"
	case c.Actuation != nil:
		return "actuation"
	case c.AirConditioner != nil:
		return "airConditioner"
	case c.Sensor != nil:
		return "sensor"
	case c.Keypad != nil:
		return "keypad"
	case c.Presence != nil:
		return "presence"
	case c.Playback != nil:
		return "tape"
	}
	return "message"
}

// subscribe adds a reader and returns the number of the last change that it will not receive.
func (f *Feed) subscribe(name string) (*reader, uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &reader{branch: name, lines: make(chan []byte, backlog)}
	f.readers[r] = struct{}{}
	if f.closed {
		f.drop(r)
	}
	return r, f.seq
}

// drop disconnects a reader. mu is held.
func (f *Feed) drop(r *reader) {
	if _, reading := f.readers[r]; reading {
		delete(f.readers, r)
		close(r.lines)
	}
}

func (f *Feed) unsubscribe(r *reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(r)
}

// Close disconnects every reader, and every later one.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for r := range f.readers {
		f.drop(r)
	}
}

// snapshot is the first message of a stream. It may already contain changes that follow: changes carry whole rows, so
// applying one twice is harmless.
type snapshot struct {
	Seq      uint64          `json:"seq"`
	Type     string          `json:"type"`
	At       time.Time       `json:"at"`
	Branches []branchHistory `json:"branches"`
}

type branchHistory struct {
	hardware.State
	branch.Playback
	Actuations []hardware.Actuation `json:"actuations"` // the latest, oldest first
}

// upgrader rejects pages of other origins, which is gorilla's default.
var upgrader = websocket.Upgrader{HandshakeTimeout: writeLimit}

// stream sends a snapshot and then every change, of all branches or the one in ?branch=, until the reader disconnects
// or falls behind.
func (p *Panel) stream(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("branch")
	branches := p.all()
	if name != "" {
		b := p.Named(name)
		if b == nil {
			handle(func(http.ResponseWriter, *http.Request) (any, error) { return nil, errNoBranch })(w, r)
			return
		}
		branches = []*branch.Branch{b}
	}
	conn, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has sent the response
	}
	defer func() { _ = conn.Close() }()
	reader, seq := p.feed.subscribe(name)
	defer p.feed.unsubscribe(reader)

	first := snapshot{Seq: seq, Type: "snapshot", At: time.Now()}
	for _, b := range branches {
		past := b.Hardware().Actuations()
		first.Branches = append(first.Branches, branchHistory{b.State(), b.Playback(), past[max(0, len(past)-shownActuations):]})
	}
	text, err := json.Marshal(first)
	if err != nil || write(conn, websocket.TextMessage, text) != nil {
		return
	}
	go listen(conn)
	send(conn, reader)
}

func write(conn *websocket.Conn, kind int, data []byte) error {
	if err := conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return conn.WriteMessage(kind, data)
}

// listen handles pongs and closes; a page sends nothing else.
func listen(conn *websocket.Conn) {
	defer func() { _ = conn.Close() }() // ends send too
	conn.SetReadLimit(512)
	extend := func(string) error { return conn.SetReadDeadline(time.Now().Add(pongLimit)) }
	conn.SetPongHandler(extend)
	for err := extend(""); err == nil; {
		_, _, err = conn.NextReader()
	}
}

func send(conn *websocket.Conn, r *reader) {
	ping := time.NewTicker(pingInterval)
	defer ping.Stop()
	for {
		var err error
		select {
		case line, reading := <-r.lines:
			if !reading {
				_ = write(conn, websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseGoingAway, "start again"))
				return
			}
			err = write(conn, websocket.TextMessage, line)
		case <-ping.C:
			err = write(conn, websocket.PingMessage, nil)
		}
		if err != nil {
			return
		}
	}
}
