package sensor

import (
	"errors"
	"fmt"
	"sync"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
)

// Mux is a PCA9548 or TCA9548: eight buses behind one, for chips with identical addresses. The port is selected before each
// transfer and closed after it, which takes a fraction of a millisecond. A mux that lost power therefore works again at once,
// and chips behind it never interfere with chips on the main bus.
type Mux struct {
	bus     i2c.Bus
	address uint16
	mu      sync.Mutex
}

// NewMux returns the multiplexer at an address of 0x70 to 0x77.
func NewMux(bus i2c.Bus, address uint16) (*Mux, error) {
	if address < 0x70 || address > 0x77 {
		return nil, fmt.Errorf("address 0x%02x of the PCA9548 is not within 0x70 to 0x77", address)
	}
	return &Mux{bus: bus, address: address}, nil
}

// Port returns the bus behind a port, 0 to 7.
func (m *Mux) Port(n uint8) (i2c.Bus, error) {
	if n > 7 {
		return nil, fmt.Errorf("port %d of the PCA9548 is not within 0 to 7", n)
	}
	return port{m, n}, nil
}

type port struct {
	mux *Mux
	n   uint8
}

func (p port) String() string {
	return fmt.Sprintf("%v port %d of 0x%02x", p.mux.bus, p.n, p.mux.address)
}

// Tx implements i2c.Bus.
func (p port) Tx(address uint16, w, r []byte) error {
	m := p.mux
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.bus.Tx(m.address, []byte{1 << p.n}, nil); err != nil {
		return fmt.Errorf("select port %d: %w", p.n, err)
	}
	return errors.Join(m.bus.Tx(address, w, r), m.bus.Tx(m.address, []byte{0}, nil))
}

// SetSpeed implements i2c.Bus.
func (p port) SetSpeed(f physic.Frequency) error { return p.mux.bus.SetSpeed(f) }
