// Package sensor reads the thermo-hygrometers that are sold for branches, over any I²C bus of periph's.
package sensor

import "context"

// Reading is one measurement.
type Reading struct {
	Celsius          float64
	RelativeHumidity float64 // percent
}

// Reader measures. Read returns within its context's deadline, even when the bus hangs.
type Reader interface {
	Read(ctx context.Context) (Reading, error)
}
