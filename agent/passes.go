package agent

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/yeolda/yeolda/agent/internal/link"
	"github.com/yeolda/yeolda/agent/internal/pass"
	"github.com/yeolda/yeolda/agent/keypad"
	"github.com/yeolda/yeolda/protocol"
)

// clockCheckInterval is how often the hardware clock is compared with the beacons' time.
const clockCheckInterval = 2 * time.Second

// passes connects the keypads, the controller that judges them and the cloud.
type passes struct {
	agent      *agent
	clock      *pass.Clock
	controller *pass.Controller
	keypads    []Keypad
	beacons    chan protocol.Beacon // the last one, received and not handled
}

func newPasses(a *agent, board Board) *passes {
	disk := pass.Dir(a.config.PassDir)
	p := &passes{agent: a, clock: pass.NewClock(a.config.Clocks, disk, a.log), keypads: board.Keypads, beacons: make(chan protocol.Beacon, 1)}
	p.controller = pass.NewController(pass.Config{
		Branch: a.config.Branch, Username: a.config.Username, Devices: board.keypads(), Disk: disk, Clock: p.clock,
		Verify:    func(m protocol.PassList) error { return m.Verify(a.config.Username, *a.trusted.Load()...) },
		Open:      a.doors.Open,
		Send:      func(m protocol.Message, life time.Duration) { a.link.Send(m, nil, life) },
		Connected: a.link.Connected, Changed: a.link.Refresh,
		Now: a.config.Now, Logger: a.log,
	})
	return p
}

// run reads the keypads until ctx is done.
func (p *passes) run(ctx context.Context) {
	var work sync.WaitGroup
	defer p.controller.Wait() // for the results of the last attempts
	defer work.Wait()
	work.Go(func() { p.controller.Run(ctx) })
	work.Go(func() { p.watchClock(ctx) })
	for _, k := range p.keypads {
		work.Go(func() {
			k.Reader.Read(ctx, func(digits string, at time.Time) keypad.Verdict {
				return keypad.Verdict(p.controller.Attempt(k.Device, digits, at))
			})
		})
	}
}

// watchClock handles beacons, and notices when another program sets the hardware clock.
func (p *passes) watchClock(ctx context.Context) {
	tick := time.NewTicker(clockCheckInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case m := <-p.beacons:
			p.beacon(m)
		}
		p.clock.Check()
	}
}

// receive dispatches a message about passes. p is nil if no keypad is read.
func (p *passes) receive(m link.Message) error {
	if p == nil {
		return nil
	}
	switch m.Kind {
	case protocol.KindBeacon:
		return dispatch(m, p.receiveBeacon)
	case protocol.KindPassList:
		return dispatch(m, p.controller.List)
	}
	return dispatch(m, p.controller.Ack)
}

// receiveBeacon has watchClock handle a beacon: the hardware clock is read then, and its bus can hang.
func (p *passes) receiveBeacon(m protocol.Beacon) {
	select {
	case <-p.beacons: // only the answer to the last heartbeat counts
	default:
	}
	p.beacons <- m
}

// beacon handles a beacon.
func (p *passes) beacon(m protocol.Beacon) {
	before := p.clock.State()
	if err := p.verifyBeacon(m); err != nil {
		p.agent.log.Warn("beacon ignored", "error", err)
		return
	}
	if err := p.clock.Beacon(m); err != nil {
		p.agent.log.Debug("beacon ignored", "error", err)
		return
	}
	if before != protocol.ClockTrusted {
		p.agent.link.Refresh()
	}
}

func (p *passes) verifyBeacon(m protocol.Beacon) error {
	if m.Branch != p.agent.config.Branch || m.BootID != p.agent.bootID {
		return fmt.Errorf("the beacon is for branch %s, boot %s", m.Branch, m.BootID)
	}
	return m.Verify(p.agent.config.Username, *p.agent.trusted.Load()...)
}

func (p *passes) selfTests() []protocol.SelfTest {
	tests := []protocol.SelfTest{p.controller.SelfTest()}
	for _, k := range p.keypads {
		if err := k.Reader.Err(); err != nil {
			tests = append(tests, protocol.SelfTest{Name: "keypad " + k.Device, Detail: protocol.Clip(err.Error())})
		}
	}
	return tests
}
