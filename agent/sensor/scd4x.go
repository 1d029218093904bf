package sensor

import (
	"errors"
	"time"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
)

const (
	scd4xAddress = 0x62
	scd4xFresh   = 10 * time.Second       // how long a measurement may be used again; a new one follows every 5 s
	scd4xPause   = time.Millisecond       // between a command and its answer, by the data sheet
	scd4xPoll    = 100 * time.Millisecond // polling interval for a measurement
)

// scd4x is an SCD40 or SCD41, which measures temperature, humidity and CO2 every 5 seconds and returns each measurement once.
// periph's driver always waits for the next measurement, which exceeds the time of a reading.
type scd4x struct {
	dev  i2c.Dev
	last physic.Env
	at   time.Time // of last
}

func openSCD4x(bus i2c.Bus, address uint16) (driver, error) {
	s := &scd4x{dev: i2c.Dev{Bus: bus, Addr: address}}
	// A chip that already measures rejects this command; a missing chip fails the first reading.
	_ = s.dev.Tx([]byte{0x21, 0xB1}, nil)
	return s, nil
}

// Sense implements driver. The first measurement after power-on takes five seconds: a reading with less time fails, and the
// next one succeeds.
func (s *scd4x) Sense(env *physic.Env) error {
	for {
		ready, err := s.ask(0xE4, 0xB8, 1)
		if err != nil {
			return err
		}
		if ready[0]&0x07FF != 0 {
			break
		}
		if time.Since(s.at) < scd4xFresh {
			*env = s.last
			return nil
		}
		time.Sleep(scd4xPoll)
	}
	words, err := s.ask(0xEC, 0x05, 3) // CO2, temperature, humidity
	if err != nil {
		return err
	}
	celsius, humidity := -45+175*float64(words[1])/65535, 100*float64(words[2])/65535
	env.Temperature = physic.ZeroCelsius + physic.Temperature(celsius*float64(physic.Celsius))
	env.Humidity = physic.RelativeHumidity(humidity * float64(physic.PercentRH))
	s.last, s.at = *env, time.Now()
	return nil
}

func (s *scd4x) ask(high, low byte, n int) ([]uint16, error) {
	if err := s.dev.Tx([]byte{high, low}, nil); err != nil {
		return nil, err
	}
	time.Sleep(scd4xPause)
	answer := make([]byte, 3*n)
	if err := s.dev.Tx(nil, answer); err != nil {
		return nil, err
	}
	words := make([]uint16, n)
	var err error
	for i := range words {
		var ok bool
		if words[i], ok = word(answer[3*i : 3*i+3]); !ok {
			err = errors.Join(err, errChecksum)
		}
	}
	return words, err
}
