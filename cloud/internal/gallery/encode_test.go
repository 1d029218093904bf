package gallery

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"slices"
	"testing"
)

// striped returns a photo whose left half is red and whose right half is blue.
func striped(w, h int) image.Image {
	photo := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			c := color.RGBA{255, 0, 0, 255}
			if x >= w/2 {
				c = color.RGBA{0, 0, 255, 255}
			}
			photo.SetRGBA(x, y, c)
		}
	}
	return photo
}

// withExif returns a JPEG with an orientation and a text that stands for the place where it was taken.
func withExif(t *testing.T, photo image.Image, orientation byte) []byte {
	t.Helper()
	var plain bytes.Buffer
	if err := jpeg.Encode(&plain, photo, nil); err != nil {
		t.Fatal(err)
	}
	exif := "Exif\x00\x00MM\x00\x2a\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00" + string(orientation) + "\x00\x00\x00\x00\x00\x00GPS 37.4979"
	segment := append([]byte{0xff, 0xe1, 0, byte(len(exif) + 2)}, exif...)
	return slices.Concat(plain.Bytes()[:2], segment, plain.Bytes()[2:])
}

func TestEncode(t *testing.T) {
	t.Parallel()
	var clear bytes.Buffer
	if err := png.Encode(&clear, image.NewNRGBA(image.Rect(0, 0, 640, 320))); err != nil {
		t.Fatal(err)
	}
	webp, err := base64.StdEncoding.DecodeString(redWebP)
	if err != nil {
		t.Fatal(err)
	}
	type size struct{ w, h int }
	for name, tc := range map[string]struct {
		data   []byte
		sizes  []size
		corner color.RGBA // upper left of the smallest file
	}{
		"four widths":      {withExif(t, striped(2000, 1000), 1), []size{{320, 160}, {480, 240}, {960, 480}, {1600, 800}}, color.RGBA{255, 0, 0, 255}},
		"not enlarged":     {withExif(t, striped(500, 400), 1), []size{{320, 256}, {480, 384}}, color.RGBA{255, 0, 0, 255}},
		"narrow":           {withExif(t, striped(400, 320), 1), []size{{320, 256}}, color.RGBA{255, 0, 0, 255}},
		"turned by 180":    {withExif(t, striped(500, 400), 3), []size{{320, 256}, {480, 384}}, color.RGBA{0, 0, 255, 255}},
		"turned left":      {withExif(t, striped(1000, 500), 8), []size{{320, 640}, {480, 960}}, color.RGBA{0, 0, 255, 255}},
		"turned right":     {withExif(t, striped(1000, 500), 6), []size{{320, 640}, {480, 960}}, color.RGBA{255, 0, 0, 255}},
		"bad orientation":  {withExif(t, striped(500, 400), 9), []size{{320, 256}, {480, 384}}, color.RGBA{255, 0, 0, 255}},
		"WebP":             {webp, []size{{320, 320}}, color.RGBA{255, 0, 0, 255}},
		"transparent, PNG": {clear.Bytes(), []size{{320, 160}, {480, 240}}, color.RGBA{255, 255, 255, 255}},
	} {
		files, err := Encode(t.Context(), tc.data, widths...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []size
		for i, f := range files {
			decoded, err := jpeg.Decode(bytes.NewReader(f.Data))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if bounds := decoded.Bounds(); bounds.Dx() != f.Width || bounds.Dy() != f.Height {
				t.Errorf("%s: file is %v, want %d x %d", name, bounds, f.Width, f.Height)
			}
			if bytes.Contains(f.Data, []byte("Exif")) || bytes.Contains(f.Data, []byte("GPS")) {
				t.Errorf("%s: file %d has metadata of the upload", name, i)
			}
			if !ValidName(f.Name) {
				t.Errorf("%s: name %q", name, f.Name)
			}
			if r, g, b, _ := decoded.At(5, 5).RGBA(); i == 0 && (far(r, tc.corner.R) || far(g, tc.corner.G) || far(b, tc.corner.B)) {
				t.Errorf("%s: corner is %d %d %d, want %v", name, r>>8, g>>8, b>>8, tc.corner)
			}
			got = append(got, size{f.Width, f.Height})
		}
		if !slices.Equal(got, tc.sizes) {
			t.Errorf("%s: sizes %v, want %v", name, got, tc.sizes)
		}
	}
}

// TestEncodeAll checks that the formats show the same picture, and that AVIF is no format of uploads.
func TestEncodeAll(t *testing.T) {
	t.Parallel()
	files, err := encodeAll(t.Context(), withExif(t, striped(2000, 1000), 1), widths...)
	if err != nil || len(files) != len(widths) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		// Two colours are so few bytes that AVIF is not smaller in small widths.
		if f.WebP == nil || f.AVIF == nil && f.Width == maxAVIF || f.AVIF != nil && f.Width > maxAVIF {
			t.Errorf("%d pixels: AVIF of %d bytes, WebP of %d", f.Width, len(f.AVIF), len(f.WebP))
		}
		for _, data := range [][]byte{f.WebP, f.AVIF} {
			if data == nil {
				continue
			}
			picture, format, err := image.Decode(bytes.NewReader(data))
			if err != nil || picture.Bounds().Dx() != f.Width || picture.Bounds().Dy() != f.Height || len(data) >= len(f.Data) {
				t.Fatalf("%s of %d bytes for %d: %v", format, len(data), len(f.Data), err)
			}
			for x, want := range map[int]color.RGBA{5: {255, 0, 0, 255}, f.Width - 5: {0, 0, 255, 255}} {
				if r, g, b, _ := picture.At(x, 5).RGBA(); far(r, want.R) || far(g, want.G) || far(b, want.B) {
					t.Errorf("%s of %d pixels at %d: %d %d %d, want %v", format, f.Width, x, r>>8, g>>8, b>>8, want)
				}
			}
		}
	}
	if _, err := encodeAll(t.Context(), files[2].AVIF, widths...); !errors.Is(err, ErrPhoto) {
		t.Errorf("an AVIF is uploaded: %v, want ErrPhoto", err)
	}
}

// redWebP is a lossless WebP file of 400 x 400 red pixels.
const redWebP = "UklGRt4AAABXRUJQVlA4TNIAAAAvj8FjAI0SABICAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABAAAEf1P3yQEyDQHAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" +
	"AuwAgP5HLMbuf/5/B/+/g//fwf/v4P938P87+P8d/P8O/n8H/7+D/9/B/+/g/3fw/zv4/x38/w7+fwf/v4P/38H/7+D/d/D/O/j/Hfz/Dv5/B/+/g//fwf/v4P938P87+P8d/P8O/n8H" +
	"/7+D/9/B/+/g/3fw/zvUvwM="

func far(got uint32, want uint8) bool {
	return int(got>>8)-int(want) > 20 || int(want)-int(got>>8) > 20
}

func TestEncodeRejectsWhatIsNoPhoto(t *testing.T) {
	t.Parallel()
	photo := withExif(t, striped(500, 400), 1)
	for name, data := range map[string][]byte{
		"nothing": nil, "text": []byte("<svg onload=alert(1)>"), "cut off": photo[:len(photo)/2], "too large": make([]byte, MaxUpload+1),
		"too small": withExif(t, striped(319, 400), 1), "too long": withExif(t, striped(1000, 330), 1), "too many pixels": manyPixels(t),
	} {
		if _, err := Encode(t.Context(), data, widths...); err != ErrPhoto { //nolint:errorlint // returned as it is
			t.Errorf("%s: got %v, want ErrPhoto", name, err)
		}
	}
}

// manyPixels returns the header of a PNG of 10,000 x 10,000 pixels, which must not be decoded.
func manyPixels(t *testing.T) []byte {
	t.Helper()
	var small bytes.Buffer
	if err := png.Encode(&small, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	data := small.Bytes()
	copy(data[16:], []byte{0, 0, 0x27, 0x10, 0, 0, 0x27, 0x10})
	binary.BigEndian.PutUint32(data[29:], crc32.ChecksumIEEE(data[12:29]))
	if size, err := png.DecodeConfig(bytes.NewReader(data)); err != nil || size.Width != 10_000 {
		t.Fatalf("header: %v, %v", size, err)
	}
	return data
}

func FuzzOrientation(f *testing.F) {
	f.Add([]byte("\xff\xd8\xff\xe1\x00\x22Exif\x00\x00II*\x00\x08\x00\x00\x00\x01\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if got := orientation(data); got < 1 || got > 8 {
			t.Errorf("orientation %d", got)
		}
	})
}
