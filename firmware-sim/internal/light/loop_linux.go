package light

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tickLength is the resolution of the timers, and ticks the number of their slots. A timer beyond the last slot is set
	// again when it fires.
	tickLength = 20 * time.Millisecond
	ticks      = 1024
	maxEvents  = 256
	// readSize is the size of the buffer that all agents share.
	readSize = 64 << 10
)

// loop owns the agents of a fleet.
type loop struct {
	*Fleet
	epoll  int
	agents []agent
	slots  [ticks][]int32 // indexes of agents by the tick at which they are due
	tick   int64          // up to which timers have fired
	clock  time.Duration  // since the start; read once for each round
	buffer []byte
}

// wired is an agent with its loop.
type wired struct {
	*loop
	at int
}

func (w wired) now() time.Duration        { return w.clock }
func (w wired) keys() []ed25519.PublicKey { return w.config.GrantKeys }
func (w wired) opened()                   { w.counted.opened.Add(1) }

// write writes a packet at once. A socket whose buffer is full belongs to a broker that does not read.
func (w wired) write(packet []byte) error {
	n, err := unix.Write(int(w.agents[w.at].socket), packet)
	if err == nil && n < len(packet) || errors.Is(err, unix.EAGAIN) {
		return errSilent
	}
	return err
}

func (f *Fleet) run(ctx context.Context) (err error) {
	l := &loop{Fleet: f, agents: make([]agent, len(f.config.Agents)), buffer: make([]byte, readSize)}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return fmt.Errorf("light: epoll: %w", err)
	}
	defer l.close()
	for i, identity := range f.config.Agents {
		l.agents[i] = newAgent(identity.Branch, identity.Password)
		l.schedule(i, 0)
	}
	events := make([]unix.EpollEvent, maxEvents)
	for ctx.Err() == nil {
		n, err := unix.EpollWait(l.epoll, events, int(tickLength.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("light: epoll: %w", err)
		}
		l.clock = time.Since(f.started)
		for _, e := range events[:max(n, 0)] {
			l.ready(int(e.Fd), uint32(e.Pad), e.Events)
		}
		if err := l.fire(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *loop) close() {
	for i := range l.agents {
		if l.agents[i].socket >= 0 {
			_ = unix.Close(int(l.agents[i].socket))
		}
	}
	_ = unix.Close(l.epoll)
}

// schedule sets the timer of an agent, unless it fires earlier.
func (l *loop) schedule(i int, at time.Duration) {
	due := min(max(int64(at/tickLength)+1, l.tick+1), l.tick+ticks-1)
	if a := &l.agents[i]; a.due <= l.tick || due < a.due {
		a.due = due
		l.slots[due%ticks] = append(l.slots[due%ticks], int32(i)) //nolint:gosec // bounded by MaxAgents
	}
}

// fire handles the timers that are due. A slot may hold agents that are due at another time by now. Between slots, sockets
// are served: a hundred thousand attempts in one tick take a while.
func (l *loop) fire(ctx context.Context) error {
	for now := int64(l.clock / tickLength); l.tick < now && ctx.Err() == nil; {
		l.tick++
		slot := l.slots[l.tick%ticks]
		l.slots[l.tick%ticks] = nil
		for _, i := range slot {
			a := &l.agents[i]
			if a.due != l.tick {
				continue
			}
			a.due = 0
			if err := l.turn(int(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn does what is due for an agent.
func (l *loop) turn(i int) error {
	a := &l.agents[i]
	if a.phase == waiting {
		if a.limit > l.clock {
			l.schedule(i, a.limit)
			return nil
		}
		return l.dial(i)
	}
	if a.next() > l.clock {
		l.schedule(i, a.next())
		return nil
	}
	l.settle(i, a.tick(wired{l, i}))
	return nil
}

// dial begins a connection from the address of the agent.
func (l *loop) dial(i int) error {
	a := &l.agents[i]
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("light: socket for agent %d of %d: %w (see ulimit -n)", i+1, len(l.agents), err)
	}
	timeout := connectTimeout
	if a.pacer.failures < uint8(len(l.config.Brokers)) { //nolint:gosec // a few
		timeout = failoverTimeout
	}
	a.socket, a.phase, a.limit = int32(socket), dialing, l.clock+timeout //nolint:gosec // a file descriptor
	a.connection++
	source := unix.SockaddrInet4{Addr: Source(l.config.First + i).As4()}
	address := l.config.Broker(a.branch, int(a.broker))
	broker := unix.SockaddrInet4{Addr: address.Addr().Unmap().As4(), Port: int(address.Port())}
	err = errors.Join(
		unix.SetsockoptInt(socket, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		// The port is chosen by connect, which considers the broker's address: bind would need a port that is free for all.
		unix.SetsockoptInt(socket, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, 1),
		unix.Bind(socket, &source),
		unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, socket, &unix.EpollEvent{
			Events: unix.EPOLLIN | unix.EPOLLOUT | unix.EPOLLRDHUP | unix.EPOLLET, Fd: int32(i), Pad: int32(a.connection)})) //nolint:gosec // an index
	if err != nil {
		return fmt.Errorf("light: prepare a socket: %w", err)
	}
	if err := unix.Connect(socket, &broker); err != nil && !errors.Is(err, unix.EINPROGRESS) {
		l.settle(i, err)
		return nil
	}
	l.schedule(i, a.limit)
	return nil
}

// ready handles the events of a socket. connection identifies the socket: an event may belong to an earlier one.
func (l *loop) ready(i int, connection, events uint32) {
	a := &l.agents[i]
	if a.socket < 0 || a.connection != connection {
		return
	}
	w := wired{l, i}
	if a.phase == dialing {
		if events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) == 0 {
			return
		}
		if code, err := unix.GetsockoptInt(int(a.socket), unix.SOL_SOCKET, unix.SO_ERROR); err != nil || code != 0 {
			l.settle(i, errors.Join(err, unix.Errno(code)))
			return
		}
		l.settle(i, a.start(w))
		return
	}
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLERR|unix.EPOLLHUP) == 0 {
		return
	}
	for {
		n, err := unix.Read(int(a.socket), l.buffer)
		switch {
		case errors.Is(err, unix.EAGAIN):
			l.settle(i, nil)
			return
		case err == nil && n == 0:
			err = errRejected
		case err == nil:
			err = l.receive(w, a, l.buffer[:n])
		}
		// A short read empties a stream socket (epoll(7)), but the end of the stream is an event of its own.
		if err != nil || n < len(l.buffer) && events&unix.EPOLLRDHUP == 0 {
			l.settle(i, err)
			return
		}
	}
}

func (l *loop) receive(w wired, a *agent, received []byte) error {
	before := a.phase
	err := a.receive(w, received)
	if before != online && a.phase == online {
		l.present[w.at].Store(a.connection)
		l.counted.online.Add(1)
		l.counted.accepted.Add(1)
		l.counted.changed.Store(time.Now().UnixMilli())
	}
	return err
}

// settle sets the timer of an agent after something happened, or ends its connection after an error.
func (l *loop) settle(i int, err error) {
	a := &l.agents[i]
	if err != nil {
		l.counted.failed.Add(1)
		switch {
		case errors.Is(err, errSilent):
			l.counted.silent.Add(1)
		case errors.Is(err, errRejected), errors.Is(err, errTakenOver):
			l.counted.rejected.Add(1)
		}
		problem := err.Error()
		l.counted.problem.Store(&problem)
		if a.phase == online {
			l.present[i].Store(0)
			l.counted.online.Add(-1)
			l.counted.changed.Store(time.Now().UnixMilli())
		}
		_ = unix.Close(int(a.socket))
		a.socket = -1
		a.end(l.clock, err, len(l.config.Brokers) > 1)
		l.schedule(i, a.limit)
		return
	}
	l.schedule(i, a.next())
}
