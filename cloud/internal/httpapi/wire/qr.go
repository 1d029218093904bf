package wire

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/boombuler/barcode/qr"
)

// QR returns a QR code as lines of 0 and 1.
func QR(text string) (string, error) {
	code, err := qr.Encode(text, qr.M, qr.Unicode)
	if err != nil {
		return "", fmt.Errorf("encode a QR code: %w", err)
	}
	rows := make([]string, code.Bounds().Dy())
	for y := range rows {
		row := make([]byte, code.Bounds().Dx())
		for x := range row {
			row[x] = '0'
			if code.At(x, y) == color.Black {
				row[x] = '1'
			}
		}
		rows[y] = string(row)
	}
	return strings.Join(rows, "\n"), nil
}
