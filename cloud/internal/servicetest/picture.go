package servicetest

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"testing"
)

// Picture returns a square PNG with sides of that many pixels, in base64.
func Picture(t testing.TB, side int) string {
	t.Helper()
	drawn := image.NewNRGBA(image.Rect(0, 0, side, side))
	drawn.Set(1, 1, color.Black)
	var encoded bytes.Buffer
	if err := png.Encode(&encoded, drawn); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(encoded.Bytes())
}
