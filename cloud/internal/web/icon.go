package web

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
)

// The mark is a white door with a keyhole on the brand's blue, drawn in a square of 512. src/icon.svg is the same
// drawing; browsers that want pixels get them from here.
var (
	brandBlue  = color.NRGBA{0x1b, 0x64, 0xda, 0xff}
	brandWhite = color.NRGBA{0xff, 0xff, 0xff, 0xff}
)

// A shape is a signed distance: negative inside, in the units of the drawing.
type shape func(x, y float64) float64

func box(left, top, right, bottom, radius float64) shape {
	cx, cy, halfWidth, halfHeight := (left+right)/2, (top+bottom)/2, (right-left)/2, (bottom-top)/2
	return func(x, y float64) float64 {
		dx, dy := math.Abs(x-cx)-halfWidth+radius, math.Abs(y-cy)-halfHeight+radius
		return math.Hypot(math.Max(dx, 0), math.Max(dy, 0)) + math.Min(math.Max(dx, dy), 0) - radius
	}
}

func circle(cx, cy, radius float64) shape {
	return func(x, y float64) float64 { return math.Hypot(x-cx, y-cy) - radius }
}

func union(shapes ...shape) shape {
	return func(x, y float64) float64 {
		distance := math.Inf(1)
		for _, s := range shapes {
			distance = math.Min(distance, s(x, y))
		}
		return distance
	}
}

var (
	door    = union(circle(256, 224, 96), box(160, 224, 352, 404, 6))
	keyhole = union(circle(256, 240, 32), box(240, 244, 272, 330, 10))
)

// drawIcon draws the mark. A maskable icon is filled to its corners, and its drawing stays within the inner 80 %.
func drawIcon(size int, maskable bool) ([]byte, error) {
	ground, scale := box(0, 0, 512, 512, 116), 1.0
	if maskable {
		ground, scale = box(-512, -512, 1024, 1024, 0), 1.2
	}
	img := image.NewNRGBA(image.Rect(0, 0, size, size))
	unit := 512 / float64(size)
	for py := range size {
		for px := range size {
			x, y := (float64(px)+.5)*unit, (float64(py)+.5)*unit
			dx, dy := 256+(x-256)*scale, 256+(y-256)*scale
			ink := mix(brandBlue, brandWhite, cover(door(dx, dy), unit*scale))
			ink = mix(ink, brandBlue, cover(keyhole(dx, dy), unit*scale))
			ink.A = uint8(255 * cover(ground(x, y), unit))
			img.SetNRGBA(px, py, ink)
		}
	}
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, img); err != nil {
		return nil, fmt.Errorf("draw icon: %w", err)
	}
	return encoded.Bytes(), nil
}

// cover is how much of a pixel lies inside a shape at that distance from its middle.
func cover(distance, pixel float64) float64 {
	return math.Min(1, math.Max(0, .5-distance/pixel))
}

func mix(under, over color.NRGBA, share float64) color.NRGBA {
	channel := func(u, o uint8) uint8 { return uint8(math.Round(float64(u) + (float64(o)-float64(u))*share)) }
	return color.NRGBA{channel(under.R, over.R), channel(under.G, over.G), channel(under.B, over.B), 255}
}
