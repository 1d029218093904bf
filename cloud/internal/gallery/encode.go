package gallery

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	_ "image/png" // a format of uploads
	"slices"

	"github.com/gen2brain/avif"
	"github.com/gen2brain/webp" // a format of uploads, too
	"golang.org/x/image/draw"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// Bounds of an uploaded photo.
const (
	MaxUpload = 6 << 20    // bytes
	maxPixels = 25_000_000 // about 100 MB in memory
	minSide   = 320        // pixels
	maxRatio  = 3          // of the longer to the shorter side
)

// ErrPhoto is returned for data that is not a JPEG, PNG or WebP within the bounds.
var ErrPhoto = errors.New("gallery: not a photo")

// Card is the width of a photo on a card.
const Card = 480

// widths are those in which a room's photo is stored: for a thumbnail, a card, a phone's screen and a large one.
var widths = []int{320, Card, 960, 1600}

// Qualities of the files. On a phone's dense screen no difference to higher ones is visible.
const (
	quality     = 72
	webpQuality = 72
	avifQuality = 55
	avifSpeed   = 8 // of 10
)

// maxAVIF is the largest width (pixels) in AVIF: its encoder needs 80 MB for 960 pixels and 300 MB for 1600.
const maxAVIF = 960

const nameBytes = 16 // of the hash in a file's name

// uploads are the formats that are decoded; the packages know more.
var uploads = []string{"jpeg", "png", "webp"}

// File is a photo in one width.
type File struct {
	booking.PhotoFile
	Data []byte // JPEG

	// The same in smaller formats; nil where encodeAll left one out.
	WebP, AVIF []byte
}

// decoding bounds the memory: one photo is decoded at a time.
var decoding = make(chan struct{}, 1)

// encodeAll returns the files of Encode, in WebP and up to maxAVIF in AVIF too where that is smaller.
func encodeAll(ctx context.Context, data []byte, widths ...int) ([]File, error) {
	return encode(ctx, data, (*File).shrink, widths...)
}

// Encode returns a photo in each of the widths (pixels, the smallest first), turned as its EXIF orientation asks. A photo is
// not enlarged: widths above its own are left out, except the smallest. It returns ErrPhoto, or the context's error.
func Encode(ctx context.Context, data []byte, widths ...int) ([]File, error) {
	return encode(ctx, data, func(*File, image.Image) error { return nil }, widths...)
}

// encode calls more for each file with its pixels, while no other photo is decoded.
func encode(ctx context.Context, data []byte, more func(*File, image.Image) error, widths ...int) ([]File, error) {
	if len(data) > MaxUpload {
		return nil, ErrPhoto
	}
	size, format, err := image.DecodeConfig(bytes.NewReader(data))
	long, short := max(size.Width, size.Height), min(size.Width, size.Height)
	if err != nil || !slices.Contains(uploads, format) || short < minSide || long > maxRatio*short || long > maxPixels/short {
		return nil, ErrPhoto
	}
	select {
	case decoding <- struct{}{}:
		defer func() { <-decoding }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	photo, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, ErrPhoto
	}
	turn := upright
	if format == "jpeg" {
		turn = orientation(data)
	}
	var files []File
	// From large to small: each width is made of the previous one, so only the first scaling reads all pixels.
	for i := len(widths) - 1; i >= 0; i-- {
		width := min(widths[i], turn.width(photo))
		if width < widths[i] && i > 0 {
			continue
		}
		scaled := turn.apply(scale(photo, width, turn))
		photo, turn = scaled, upright
		var encoded bytes.Buffer
		if err := jpeg.Encode(&encoded, scaled, &jpeg.Options{Quality: quality}); err != nil {
			return nil, fmt.Errorf("gallery: encode: %w", err)
		}
		sum := sha256.Sum256(encoded.Bytes())
		name := hex.EncodeToString(sum[:nameBytes])
		file := File{PhotoFile: booking.PhotoFile{Name: name, Width: scaled.Bounds().Dx(), Height: scaled.Bounds().Dy()}, Data: encoded.Bytes()}
		if err := more(&file, scaled); err != nil {
			return nil, fmt.Errorf("gallery: encode: %w", err)
		}
		files = append(files, file)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	slices.Reverse(files)
	return files, nil
}

// shrink encodes a file in the formats that are smaller than JPEG.
func (f *File) shrink(pixels image.Image) error {
	var encoded bytes.Buffer
	if err := webp.Encode(&encoded, pixels, webp.Options{Quality: webpQuality, Method: webp.DefaultMethod}); err != nil {
		return err
	}
	smallest := len(f.Data)
	if encoded.Len() < smallest {
		f.WebP, smallest = bytes.Clone(encoded.Bytes()), encoded.Len()
	}
	if f.Width > maxAVIF {
		return nil
	}
	encoded.Reset()
	if err := avif.Encode(&encoded, pixels, avif.Options{Quality: avifQuality, QualityAlpha: avifQuality, Speed: avifSpeed}); err != nil {
		return err
	}
	if encoded.Len() < smallest {
		f.AVIF = bytes.Clone(encoded.Bytes())
	}
	return nil
}

// scale returns the photo on white, in a size that has the width after turning.
func scale(photo image.Image, width int, turn turn) *image.RGBA {
	from := photo.Bounds()
	to := image.Rect(0, 0, width, (from.Dy()*width+from.Dx()/2)/from.Dx())
	if !turn.keepsSides() {
		to = image.Rect(0, 0, (from.Dx()*width+from.Dy()/2)/from.Dy(), width)
	}
	scaled := image.NewRGBA(to)
	draw.Draw(scaled, to, image.NewUniform(color.White), image.Point{}, draw.Src)
	draw.CatmullRom.Scale(scaled, to, photo, from, draw.Over, nil)
	return scaled
}
