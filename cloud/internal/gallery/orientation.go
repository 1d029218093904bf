package gallery

import (
	"bytes"
	"encoding/binary"
	"image"
)

// turn is an EXIF orientation: how the stored pixels have to be turned or mirrored (EXIF 2.32, tag 0x0112).
type turn uint16

const upright turn = 1

// keepsSides reports whether width and height stay the same.
func (t turn) keepsSides() bool { return t < 5 }

// width returns the width of the photo as it is to be seen.
func (t turn) width(photo image.Image) int {
	if t.keepsSides() {
		return photo.Bounds().Dx()
	}
	return photo.Bounds().Dy()
}

// apply returns the photo as it is to be seen.
func (t turn) apply(photo *image.RGBA) *image.RGBA {
	if t == upright {
		return photo
	}
	w, h := photo.Bounds().Dx(), photo.Bounds().Dy()
	to := image.Rect(0, 0, w, h)
	if !t.keepsSides() {
		to = image.Rect(0, 0, h, w)
	}
	turned := image.NewRGBA(to)
	for y := range h {
		for x := range w {
			toX, toY := t.place(x, y, w, h)
			copy(turned.Pix[turned.PixOffset(toX, toY):][:4], photo.Pix[photo.PixOffset(x, y):][:4])
		}
	}
	return turned
}

// place returns where the stored pixel x, y of a photo w wide and h high is seen.
func (t turn) place(x, y, w, h int) (int, int) {
	switch t {
	case 2:
		return w - 1 - x, y
	case 3:
		return w - 1 - x, h - 1 - y
	case 4:
		return x, h - 1 - y
	case 5:
		return y, x
	case 6:
		return h - 1 - y, x
	case 7:
		return h - 1 - y, w - 1 - x
	case 8:
		return y, w - 1 - x
	}
	return x, y
}

// orientation reads the EXIF orientation of a JPEG; upright if it has none.
func orientation(data []byte) turn {
	for at := 2; at+4 <= len(data) && data[at] == 0xff; {
		marker, length := data[at+1], int(binary.BigEndian.Uint16(data[at+2:]))
		if marker == 0xda || length < 2 || at+2+length > len(data) { // the image data, or damaged
			break
		}
		if tiff, ok := bytes.CutPrefix(data[at+4:at+2+length], []byte("Exif\x00\x00")); ok && marker == 0xe1 {
			return tiffOrientation(tiff)
		}
		at += 2 + length
	}
	return upright
}

// tiffOrientation reads tag 0x0112 of the first directory.
func tiffOrientation(tiff []byte) turn {
	if len(tiff) < 8 {
		return upright
	}
	var order binary.ByteOrder = binary.BigEndian
	if tiff[0] == 'I' {
		order = binary.LittleEndian
	}
	at := int64(order.Uint32(tiff[4:]))
	if at+2 > int64(len(tiff)) {
		return upright
	}
	entries := tiff[at+2:]
	for range order.Uint16(tiff[at:]) {
		if len(entries) < 12 {
			break
		}
		if order.Uint16(entries) == 0x0112 {
			if found := turn(order.Uint16(entries[8:])); found >= 1 && found <= 8 {
				return found
			}
			break
		}
		entries = entries[12:]
	}
	return upright
}
