package ir

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// prontoClock is the unit of the carrier period in a Pronto code, in µs.
const prontoClock = 0.241246

// Pronto decodes a learned code in Pronto hex: words of four digits, namely 0000, the carrier period, the number of pairs in
// the once sequence and in the repeat sequence, and the pairs in carrier periods. The signal is the once sequence, or the
// repeat sequence if the once sequence is empty.
func Pronto(text string) (Signal, error) {
	s, err := pronto(text)
	if err != nil {
		return Signal{}, fmt.Errorf("pronto: %w", err)
	}
	return s, nil
}

func pronto(text string) (Signal, error) {
	fields := strings.Fields(text)
	if len(fields) > maxDurations {
		return Signal{}, errors.New("code is too long")
	}
	words := make([]uint32, len(fields))
	for i, f := range fields {
		w, err := strconv.ParseUint(f, 16, 16)
		if err != nil || len(f) != 4 {
			return Signal{}, fmt.Errorf("word %d is not four hexadecimal digits", i+1)
		}
		words[i] = uint32(w)
	}
	if len(words) < 4 || words[0] != 0 {
		return Signal{}, errors.New("not a learned, modulated code")
	}
	period, once, repeat := words[1], int(words[2]), int(words[3])
	if period == 0 || len(words) != 4+2*(once+repeat) {
		return Signal{}, fmt.Errorf("%d words do not match the header", len(words))
	}
	pairs := words[4 : 4+2*once]
	if once == 0 {
		pairs = words[4:]
	}
	micros := prontoClock * float64(period)
	durations := make([]uint32, len(pairs))
	for i, periods := range pairs {
		durations[i] = uint32(float64(periods)*micros + 0.5)
	}
	return newSignal(int(1e6/micros+0.5), durations)
}
