package notify

import (
	"errors"
	"strings"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

var errNumber = errors.New("not a Korean phone number")

// mobile converts a Korean phone number to the provider's format: 01012345678.
func mobile(number string) (string, error) {
	number = booking.FoldPhone(number)
	digits := booking.NormalizePhone(number)
	foreign := strings.Contains(number, "+") && !strings.HasPrefix(digits, "0")
	if foreign || strings.Trim(number, "0123456789+-. ()") != "" || len(digits) < 8 || len(digits) > 12 {
		return "", errNumber
	}
	return digits, nil
}

// carrierBytes returns the length of s in the carriers' encoding: one byte per ASCII character, two bytes otherwise.
func carrierBytes(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x80 {
			n++
		}
	}
	return n
}

// cut truncates s to at most limit bytes in the carriers' encoding.
func cut(s string, limit int) string {
	n := 0
	for i, r := range s {
		if n += carrierBytes(string(r)); n > limit {
			return s[:i]
		}
	}
	return s
}
