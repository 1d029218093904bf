package sensor

import (
	"errors"
	"time"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
)

// sensirion is an SHT3x or SHT4x: a command starts a measurement, which is read later as two words with checksums.
type sensirion struct {
	dev      i2c.Dev
	command  []byte        // single shot, high repeatability, no clock stretching
	takes    time.Duration // the maximum by the data sheet
	humidity func(raw uint16) float64
}

func openSHT3x(bus i2c.Bus, address uint16) (driver, error) {
	return &sensirion{
		dev: i2c.Dev{Bus: bus, Addr: address}, command: []byte{0x24, 0x00}, takes: 16 * time.Millisecond,
		humidity: func(raw uint16) float64 { return 100 * float64(raw) / 65535 },
	}, nil
}

func openSHT4x(bus i2c.Bus, address uint16) (driver, error) {
	return &sensirion{
		dev: i2c.Dev{Bus: bus, Addr: address}, command: []byte{0xFD}, takes: 9 * time.Millisecond,
		humidity: func(raw uint16) float64 { return -6 + 125*float64(raw)/65535 },
	}, nil
}

var errChecksum = errors.New("wrong checksum")

// Sense implements driver.
func (s *sensirion) Sense(env *physic.Env) error {
	if err := s.dev.Tx(s.command, nil); err != nil {
		return err
	}
	time.Sleep(s.takes)
	var answer [6]byte
	if err := s.dev.Tx(nil, answer[:]); err != nil {
		return err
	}
	temperature, ok1 := word(answer[:3])
	humidity, ok2 := word(answer[3:])
	if !ok1 || !ok2 {
		return errChecksum
	}
	celsius := -45 + 175*float64(temperature)/65535
	env.Temperature = physic.ZeroCelsius + physic.Temperature(celsius*float64(physic.Celsius))
	env.Humidity = physic.RelativeHumidity(s.humidity(humidity) * float64(physic.PercentRH))
	return nil
}

// word decodes two bytes and their CRC-8 (polynomial 0x31, start 0xFF).
func word(b []byte) (value uint16, ok bool) {
	crc := byte(0xFF)
	for _, octet := range b[:2] {
		crc ^= octet
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 0x31
			} else {
				crc <<= 1
			}
		}
	}
	return uint16(b[0])<<8 | uint16(b[1]), crc == b[2]
}
