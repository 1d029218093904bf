package passlive

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/nacl/box"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

const branch = "gangnam"

var (
	devices  = []string{"front_1", "front_2", "room_1", "room_2", "room_3"}
	thiefKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	kdf      = protocol.KDF{Name: protocol.KDFArgon2id, Time: 1, MemoryKiB: 8, Threads: 1, Salt: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{3}, 16))}
)

// guest is a stay with its present PIN.
type guest struct {
	room                string
	pass                protocol.Pass
	pin                 string
	earlier             []string
	notBefore, notAfter time.Time
	cancelled           bool
}

// issued is a list that was sent, with what it allows, by PIN.
type issued struct {
	list  protocol.PassList
	byPIN map[string]protocol.Pass
}

// freed is time that a guest left. Until it is sold it is in quarantine.
type freed struct {
	room                string
	notBefore, notAfter time.Time
	pins                []string
	soldAt              time.Time
}

// madeCode is a code that the cloud has made.
type madeCode struct {
	device, agent string
	at            time.Time
	used          int
}

// entry is what is being typed at a keypad.
type entry struct {
	digits  string
	at      time.Time
	applied protocol.PassApplied // what the agent had acknowledged before
}

// process is an agent with its machine.
type process struct {
	w        *world
	username string
	settings settings
	hardware bool // there is a hardware clock
	lost     int  // of boots: number of the present one

	mu       sync.Mutex
	running  *exec.Cmd
	stdin    io.WriteCloser
	ended    chan struct{}
	done     chan struct{}            // a command is obeyed
	verdicts map[string]chan report   // by device
	keypads  map[string]chan struct{} // hold a token while an entry is judged
	typed    map[string]entry
	knows    bool // the time: by a beacon since the start, or by the hardware clock at the start
	rtcGood  bool // a beacon has set the hardware clock, and nothing else since
	sealKey  string
	driven   int
}

// world is a branch with two agents and their cloud.
type world struct {
	t      *testing.T
	rand   *mathrand.Rand
	broker *brokertest.Broker
	agents []*process
	moving sync.RWMutex // held for writing while the time is moved

	mu         sync.Mutex
	offset     time.Duration
	active     *process
	guests     []*guest
	freed      []*freed
	epoch      uint64
	version    uint64
	ids        int
	keys       map[string][]byte
	lists      map[string][]issued
	applied    map[string]protocol.PassApplied
	codes      map[string]*madeCode
	indexes    map[string]int
	entries    map[string]map[uint64]protocol.PassEntry
	trace      []string
	violations []string
	counts     map[string]int
}

func (w *world) now() time.Time { return time.Now().Add(w.offset) }

func (w *world) log(format string, args ...any) {
	w.trace = append(w.trace, w.now().UTC().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) violate(format string, args ...any) {
	w.log("VIOLATION: "+format, args...)
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

// newWorld starts a broker and two agents. grantKeys are the keys that the agents trust.
func newWorld(t *testing.T, seed uint64, grantKeys []ed25519.PublicKey) *world {
	t.Helper()
	w := &world{t: t, rand: mathrand.New(mathrand.NewPCG(seed, 0x71FE)), broker: brokertest.Start(t, "127.0.0.1:0"), epoch: 1,
		keys: map[string][]byte{}, lists: map[string][]issued{}, applied: map[string]protocol.PassApplied{}, codes: map[string]*madeCode{},
		indexes: map[string]int{}, entries: map[string]map[uint64]protocol.PassEntry{}, counts: map[string]int{}}
	for i, username := range []string{"agent-gangnam", "agent-gangnam-2"} {
		p := &process{w: w, username: username, hardware: w.rand.IntN(2) == 0, keypads: map[string]chan struct{}{}, typed: map[string]entry{},
			settings: settings{Broker: w.broker.Addr, Username: username, Dir: t.TempDir(), GrantKeys: grantKeys}}
		p.settings.NoHardware = !p.hardware
		for _, device := range devices {
			p.keypads[device] = make(chan struct{}, 1)
		}
		w.keys[username] = bytes.Repeat([]byte{byte(i + 1)}, protocol.CodeKeySize)
		w.agents = append(w.agents, p)
	}
	w.active = w.agents[0]
	stop := make(chan struct{})
	var reading sync.WaitGroup
	reading.Go(func() { w.receive(stop) })
	t.Cleanup(func() {
		for _, p := range w.agents {
			p.kill()
		}
		close(stop)
		reading.Wait()
	})
	for _, p := range w.agents {
		p.boot()
	}
	return w
}

// renew gives a guest a new pass. w.mu is held.
func (w *world) renew(g *guest) {
	if g.pin != "" {
		g.earlier = append(g.earlier, g.pin)
	}
	w.ids++
	g.pin = fmt.Sprintf("%06d", 100_000+(w.ids*7919+w.rand.IntN(7919))%900_000)
	salt, _ := base64.StdEncoding.DecodeString(kdf.Salt)
	hash := argon2.IDKey([]byte(g.pin), salt, kdf.Time, kdf.MemoryKiB, uint8(kdf.Threads), protocol.VerifierSize)
	g.pass = protocol.Pass{Pass: fmt.Sprintf("%08x-9c1e-4b7a-8f62-5d6a0c1b2e3f", w.ids), Doors: []string{"front_1", "front_2", g.room},
		NotBefore: g.notBefore, NotAfter: g.notAfter, Verifier: base64.StdEncoding.EncodeToString(hash)}
}

// add adds a guest. w.mu is held.
func (w *world) add(room string, from, to time.Time) *guest {
	g := &guest{room: room, notBefore: from.UTC().Truncate(time.Second), notAfter: to.UTC().Truncate(time.Second)}
	w.guests = append(w.guests, g)
	w.renew(g)
	return g
}

// publish sends every agent its list. w.mu is held.
func (w *world) publish() {
	for _, p := range w.agents {
		w.version++
		now := w.now().UTC().Truncate(time.Millisecond)
		l := protocol.PassList{Branch: branch, Epoch: w.epoch, Version: w.version, IssuedAt: now, LeaseUntil: now.Add(12 * time.Hour), KDF: kdf, CodeEpoch: 1}
		out := issued{byPIN: map[string]protocol.Pass{}}
		if p == w.active {
			for _, g := range w.guests {
				if !g.cancelled && g.notAfter.After(now) {
					l.Passes = append(l.Passes, g.pass)
					out.byPIN[g.pin] = g.pass
				}
			}
			if public, err := base64.StdEncoding.DecodeString(p.sealKey); err == nil && len(public) == 32 {
				sealed, err := box.SealAnonymous(nil, w.keys[p.username], (*[32]byte)(public), rand.Reader)
				if err != nil {
					panic(err)
				}
				l.CodeKey = base64.StdEncoding.EncodeToString(sealed)
			}
		}
		out.list = l.Sign(brokertest.Key, p.username)
		w.lists[p.username] = append(w.lists[p.username], out)
		w.broker.SendTo(protocol.Agent{Branch: branch, Username: p.username}, out.list)
	}
}

// sell sells the times that no agent may open any more, by the rule of the database. w.mu is held.
func (w *world) sell() {
	for _, q := range w.freed {
		if q.soldAt.IsZero() && w.now().Before(q.notAfter) && !w.mayOpen(q) {
			q.soldAt = w.now()
			w.add(q.room, q.notBefore, q.notAfter)
			w.counts["sold again"]++
			w.log("sold %s again", q.room)
		}
	}
}

// mayOpen reports whether an agent may hold a list with a pass for a freed time. w.mu is held.
func (w *world) mayOpen(q *freed) bool {
	for _, p := range w.agents {
		for _, l := range w.lists[p.username] {
			if older(l.list, w.applied[p.username]) {
				continue
			}
			if slices.ContainsFunc(l.list.Passes, func(x protocol.Pass) bool {
				return slices.Contains(x.Doors, q.room) && x.NotAfter.After(q.notBefore) && x.NotBefore.Before(q.notAfter)
			}) {
				return true
			}
		}
	}
	return false
}

func older(l protocol.PassList, a protocol.PassApplied) bool {
	return l.Epoch < a.Epoch || l.Epoch == a.Epoch && l.Version < a.Version
}

// code makes a one-time code, or returns "" if ten were made for this minute. w.mu is held.
func (w *world) code(device string) string {
	device = protocol.CodeDevice(device)
	step := protocol.Step(w.now())
	key := fmt.Sprint(device, step)
	i := w.indexes[key]
	if i >= protocol.CodesPerStep {
		return ""
	}
	w.indexes[key]++
	digits := protocol.Code(w.keys[w.active.username], branch, device, step, i)
	w.codes[digits] = &madeCode{device: device, at: w.now(), agent: w.active.username}
	return digits
}

// receive handles the messages of the agents.
func (w *world) receive(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case r := <-w.broker.Messages():
			of, _, _ := protocol.ParseAgentTopic(r.Topic)
			for _, p := range w.agents {
				if p.username == of.Username {
					w.moving.RLock()
					w.mu.Lock()
					w.handle(p, r)
					w.mu.Unlock()
					w.moving.RUnlock()
				}
			}
		}
	}
}

func (w *world) handle(p *process, r brokertest.Received) {
	me := protocol.Agent{Branch: branch, Username: p.username}
	switch r.Kind {
	case protocol.KindHeartbeat:
		beat, err := protocol.Decode[protocol.Heartbeat](r.Payload)
		if err != nil || beat.Nonce == "" || w.rand.IntN(10) == 0 {
			return
		}
		p.knows, p.rtcGood = true, p.hardware
		w.broker.SendTo(me, protocol.Beacon{Branch: branch, BootID: beat.BootID, Nonce: beat.Nonce, Time: w.now().UTC().Truncate(time.Millisecond)}.Sign(brokertest.Key, p.username))
	case protocol.KindStatus:
		status, err := protocol.Decode[protocol.Status](r.Payload)
		switch {
		case err != nil || status.State != protocol.Online:
		case p.sealKey != status.SealKey:
			p.sealKey = status.SealKey
			w.publish()
		case status.Passes != nil && status.Passes.Version < w.last(p):
			w.broker.SendTo(me, w.lists[p.username][len(w.lists[p.username])-1].list)
		}
	case protocol.KindPassApplied:
		m, err := protocol.Decode[protocol.PassApplied](r.Payload)
		if a := w.applied[p.username]; err == nil && (m.Epoch > a.Epoch || m.Epoch == a.Epoch && m.Version > a.Version) {
			w.applied[p.username] = m
		}
	case protocol.KindPassEntry:
		e, err := protocol.Decode[protocol.PassEntry](r.Payload)
		if err != nil || e.Chain() != e.Hash {
			w.violate("entry %d does not verify: %v", e.Entry, err)
			return
		}
		if w.entries[e.Journal] == nil {
			w.entries[e.Journal] = map[uint64]protocol.PassEntry{}
		}
		if before, ok := w.entries[e.Journal][e.Entry]; ok && before.Hash != e.Hash {
			w.violate("entry %d was delivered twice with different content", e.Entry)
		}
		w.entries[e.Journal][e.Entry] = e
		upTo := uint64(0)
		for w.entries[e.Journal][upTo+1].Entry != 0 {
			upTo++
		}
		if upTo > 0 {
			w.broker.SendTo(me, protocol.PassAck{Journal: e.Journal, Entry: upTo})
		}
	}
}

// last returns the version of the last list for an agent.
func (w *world) last(p *process) uint64 {
	if l := w.lists[p.username]; len(l) > 0 {
		return l[len(l)-1].list.Version
	}
	return 1
}

// opened holds an opening against what the agent could know. w.mu is held.
func (w *world) opened(p *process, r report) {
	e := p.typed[r.Device]
	w.log("%s opened %s by %s with %s", p.username, r.Device, r.Source, e.digits)
	w.counts["opened by "+string(r.Source)]++
	p.driven++
	if !p.knows {
		w.violate("%s was opened although the agent cannot know the time", r.Device)
	}
	if r.Source == protocol.SourceCode {
		made := w.codes[e.digits]
		switch {
		case made == nil:
			w.violate("%s was opened by %s, which is not a code", r.Device, e.digits)
			return
		case made.device != protocol.CodeDevice(r.Device):
			w.violate("%s was opened by a code of %s", r.Device, made.device)
		case made.agent != p.username:
			w.violate("%s was opened at %s by a code for %s", r.Device, p.username, made.agent)
		case e.at.Sub(made.at) >= 121*time.Second:
			w.violate("%s was opened by a code that is %v old", r.Device, e.at.Sub(made.at))
		case made.used > 0:
			w.violate("%s was opened by a code that was used before", r.Device)
		}
		made.used++
		return
	}
	for _, q := range w.freed {
		if !q.soldAt.IsZero() && q.soldAt.Before(e.at) && q.room == r.Device && slices.Contains(q.pins, e.digits) && !r.At.Before(q.notBefore) && e.at.Before(q.notAfter) {
			w.violate("%s was opened by the PIN of a guest whose time is sold to another", r.Device)
		}
	}
	reason := "no list allows it"
	for _, l := range w.lists[p.username] {
		pass, ok := l.byPIN[e.digits]
		switch {
		case older(l.list, e.applied):
			if ok {
				reason = "only lists before the acknowledged one allow it"
			}
		case !ok:
		case !slices.Contains(pass.Doors, r.Device):
			reason = "it is another door"
		case r.At.Before(pass.NotBefore) || !e.at.Before(pass.NotAfter):
			reason = "it is outside of the window"
		default:
			return
		}
	}
	w.violate("%s was opened by the PIN %s at %s: %s", r.Device, e.digits, p.username, reason)
}

// jump moves the time. Nothing is being judged meanwhile.
func (w *world) jump(by time.Duration) {
	w.moving.Lock()
	defer w.moving.Unlock()
	w.mu.Lock()
	w.offset += by
	w.log("%v pass", by)
	w.mu.Unlock()
	for _, p := range w.agents {
		p.send(command{Do: "jump", By: by})
	}
}

// boot starts the machine and the agent; both are off before.
func (p *process) boot() {
	p.w.mu.Lock()
	p.lost++
	p.settings.Boot, p.settings.Booted = fmt.Sprintf("boot %d", p.lost), p.w.now()
	p.knows = p.rtcGood && p.hardware
	p.w.log("%s starts, hardware clock %v", p.username, p.hardware)
	p.w.mu.Unlock()
	p.start()
}

// start starts the agent's process on the running machine.
func (p *process) start() {
	p.w.moving.RLock()
	defer p.w.moving.RUnlock()
	p.w.mu.Lock()
	p.settings.Offset = p.w.offset
	p.w.mu.Unlock()
	text, err := json.Marshal(p.settings)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0]) //nolint:noctx // killed by kill
	cmd.Env = append(os.Environ(), processVariable+"="+string(text))
	cmd.Stderr = p.w.t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		panic(err)
	}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	verdicts := map[string]chan report{}
	for _, device := range devices {
		verdicts[device] = make(chan report, 1)
	}
	ended, done := make(chan struct{}), make(chan struct{}, 1)
	p.mu.Lock()
	p.running, p.stdin, p.ended, p.done, p.verdicts = cmd, stdin, ended, done, verdicts
	p.mu.Unlock()
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			var r report
			if json.Unmarshal(lines.Bytes(), &r) != nil {
				continue
			}
			switch r.What {
			case "opened":
				p.w.mu.Lock()
				p.w.opened(p, r)
				p.w.mu.Unlock()
			case "verdict":
				verdicts[r.Device] <- r
			case "done":
				done <- struct{}{}
			}
		}
	}()
}

// kill ends the agent at any instruction.
func (p *process) kill() {
	p.mu.Lock()
	cmd, ended := p.running, p.ended
	p.running = nil
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Kill()
	<-ended
	_ = cmd.Wait()
}

// send sends a command and waits until it is obeyed. It does nothing if the agent does not run.
func (p *process) send(c command) {
	p.mu.Lock()
	cmd, stdin, ended, done := p.running, p.stdin, p.ended, p.done
	p.mu.Unlock()
	if cmd == nil {
		return
	}
	line, _ := json.Marshal(c)
	if _, err := stdin.Write(append(line, '\n')); err != nil || c.Do == "type" {
		return
	}
	select {
	case <-done:
	case <-ended:
	}
}

// enter types digits at a keypad and waits for the verdict.
func (p *process) enter(device, digits string) {
	p.keypads[device] <- struct{}{}
	defer func() { <-p.keypads[device] }()
	p.w.moving.RLock()
	defer p.w.moving.RUnlock()
	p.mu.Lock()
	running, ended, verdicts := p.running != nil, p.ended, p.verdicts
	p.mu.Unlock()
	if !running {
		return
	}
	p.w.mu.Lock()
	p.typed[device] = entry{digits, p.w.now(), p.w.applied[p.username]}
	p.w.mu.Unlock()
	p.send(command{Do: "type", Device: device, Digits: digits})
	select {
	case r := <-verdicts[device]:
		p.w.mu.Lock()
		p.w.counts["reason "+strings.Fields(r.Reason + " -")[0]]++
		p.w.log("%s: %s at %s: %s", p.username, digits, device, r.Reason)
		p.w.mu.Unlock()
	case <-ended:
	}
}

// hardwareNoticed reports whether what the agent has stored about the hardware clock is how that clock is set now, or nothing. If it
// is, the agent may trust that clock. w.mu is held.
func (p *process) hardwareNoticed() bool {
	var stored struct {
		Hardware struct {
			Seconds  int64     `json:"seconds"`
			Earliest time.Time `json:"earliest"`
		} `json:"hardware"`
	}
	data, err := os.ReadFile(filepath.Join(p.settings.Dir, "clock.json"))
	if err != nil || json.Unmarshal(data, &stored) != nil || stored.Hardware.Seconds == 0 {
		return true
	}
	offset := time.Unix(stored.Hardware.Seconds, 0).Sub(stored.Hardware.Earliest)
	noticed := (offset - p.settings.Hardware).Abs() < time.Minute
	p.rtcGood = p.rtcGood || noticed // by a beacon that was on its way when the clock was set
	return noticed
}
