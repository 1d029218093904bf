package branch

import (
	"strconv"
	"sync"
	"time"
)

// machine holds the clocks of the simulated machine. It implements agent.Clocks.
type machine struct {
	mu       sync.Mutex
	starts   int
	started  time.Time
	hardware bool // there is a hardware clock
}

// start restarts the machine.
func (m *machine) start(hardware bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.starts, m.started, m.hardware = m.starts+1, time.Now(), hardware
}

// restart restarts the machine with the hardware clock that it has.
func (m *machine) restart() {
	_, hardware := m.HardwareClock()
	m.start(hardware)
}

// Uptime implements agent.Clocks.
func (m *machine) Uptime() (boot string, since time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strconv.Itoa(m.starts), time.Since(m.started)
}

// HardwareClock implements agent.Clocks.
func (m *machine) HardwareClock() (seconds int64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return time.Now().Unix(), m.hardware
}
