package company

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// TestContrast compares the ratio with values that WCAG's formula gives, and checks that no accepted colour is hard to read
// anywhere on the pages.
func TestContrast(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		a, b string
		want float64
	}{{"#000000", "#ffffff", 21}, {"#ffffff", "#ffffff", 1}, {"#777777", "#ffffff", 4.48}, {"#1b64da", "#ffffff", 5.41}} {
		a, _ := parseColor(tc.a)
		b, _ := parseColor(tc.b)
		if got := contrast(a, b); math.Abs(got-tc.want) > 0.01 {
			t.Errorf("%s on %s: %.2f, want %.2f", tc.a, tc.b, got, tc.want)
		}
	}
	accepted := 0
	for red := 0; red < 256; red += 15 {
		for green := 0; green < 256; green += 15 {
			for blue := 0; blue < 256; blue += 15 {
				c := rgb{float64(red), float64(green), float64(blue)}
				b := Brand{Color: c.String()}
				if err := b.checkColor(); errors.Is(err, ErrContrast) {
					continue
				}
				accepted++
				dark := c.mix(night, 0.75)
				for _, pair := range [][2]rgb{{c, white}, {c, {0xf5, 0xf7, 0xf9}}, {c, c.soft()}, {c.mix(ink, 0.2), c.soft()}, {c.toward(white, night), night}, {c.toward(white, dark), dark}} {
					if ratio := contrast(pair[0], pair[1]); ratio < minContrast {
						t.Fatalf("%s: %s on %s has %.2f", c, pair[0], pair[1], ratio)
					}
				}
			}
		}
	}
	if accepted < 500 {
		t.Errorf("%d colours accepted", accepted)
	}
	for _, bad := range []string{"#fff", "1b64da0", "#1b64d;", "red", "#+b64da", strings.Repeat("#", 7)} {
		if err := (Brand{Color: bad}).checkColor(); !errors.Is(err, ErrContrast) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
