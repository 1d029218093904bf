package company

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// ErrContrast is returned for a text that is not a colour, or a colour on which or in which text is hard to read.
var ErrContrast = errors.New("company: the contrast of the colour is too low")

// minContrast is the contrast of text that WCAG 2.2 requires (success criterion 1.4.3).
const minContrast = 4.5

// Grounds of the pages, on which the colour is the colour of links, and under white text the colour of buttons.
var (
	white = rgb{255, 255, 255}
	ink   = rgb{0, 0, 0}
	night = rgb{0x17, 0x17, 0x1c} // of the key page in the dark
)

type rgb [3]float64 // 0 to 255

func parseColor(text string) (c rgb, ok bool) {
	if len(text) != 7 || text[0] != '#' {
		return c, false
	}
	n, err := strconv.ParseUint(text[1:], 16, 32)
	if err != nil {
		return c, false
	}
	return rgb{float64(n >> 16), float64(n >> 8 & 255), float64(n & 255)}, true
}

func (c rgb) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(math.Round(c[0])), int(math.Round(c[1])), int(math.Round(c[2])))
}

// mix returns the colour with a part of another one.
func (c rgb) mix(other rgb, part float64) (mixed rgb) {
	for i := range c {
		mixed[i] = c[i]*(1-part) + other[i]*part
	}
	return mixed
}

// luminance is the relative luminance of WCAG 2.2, from 0 to 1.
func (c rgb) luminance() float64 {
	linear := func(v float64) float64 {
		if v /= 255; v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c[0]) + 0.7152*linear(c[1]) + 0.0722*linear(c[2])
}

// Contrast returns the contrast ratio of WCAG 2.2 between two colours such as #1b64da, from 1 to 21, or 0 if one of them is not a colour.
func Contrast(a, b string) float64 {
	first, ok := parseColor(a)
	second, valid := parseColor(b)
	if !ok || !valid {
		return 0
	}
	return contrast(first, second)
}

func contrast(a, b rgb) float64 {
	high, low := a.luminance(), b.luminance()
	if high < low {
		high, low = low, high
	}
	return (high + 0.05) / (low + 0.05)
}

// soft is the light ground behind text in the colour.
func (c rgb) soft() rgb { return c.mix(white, 0.92) }

// toward mixes the colour with another one until it is legible on a ground.
func (c rgb) toward(other, ground rgb) rgb {
	mixed := c
	for part := 0.0; part < 1; part += 0.05 {
		if mixed = c.mix(other, part); contrast(mixed, ground) >= minContrast {
			break
		}
	}
	return mixed
}

func (b Brand) checkColor() error {
	if b.Color == "" {
		return nil
	}
	if c, ok := parseColor(b.Color); !ok || contrast(c, c.soft()) < minContrast {
		return ErrContrast
	}
	return nil
}

// Style returns the CSS variables of the brand's colour for all pages but the key page, or "" without one.
func (b Brand) Style() string {
	c, ok := parseColor(b.Color)
	if !ok {
		return ""
	}
	return fmt.Sprintf(":root{--blue:%s;--blue-deep:%s;--blue-soft:%s}", c, c.mix(ink, 0.2), c.soft())
}

// KeyStyle returns the CSS variables of the brand's colour for the key page, or "" without one.
func (b Brand) KeyStyle() string {
	c, ok := parseColor(b.Color)
	if !ok {
		return ""
	}
	dark := c.mix(night, 0.75)
	return fmt.Sprintf(":root{--brand:%s;--brand-text:%s;--soft:%s;--on-soft:%s}@media (prefers-color-scheme:dark){:root{--brand-text:%s;--soft:%s;--on-soft:%s}}",
		c, c, c.soft(), c.mix(ink, 0.2), c.toward(white, night), dark, c.toward(white, dark))
}
