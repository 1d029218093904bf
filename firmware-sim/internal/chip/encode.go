package chip

import "math"

// crc8 is the checksum of all chips here: polynomial x^8+x^5+x^4+1, start 0xFF
// (data sheets of AHT20 5.4.4 and SHT4x 4.4).
func crc8(data ...byte) byte {
	crc := byte(0xFF)
	for _, b := range data {
		crc ^= b
		for range 8 {
			if crc&0x80 != 0 {
				crc = crc<<1 ^ 0x31
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// raw maps a value between low and low+span to the full range of a converter with the given number of bits, and clips
// like the converter.
func raw(value, low, span float64, bits int) uint32 {
	top := float64(uint32(1)<<bits - 1)
	return uint32(math.Round(min(max((value-low)/span*top, 0), top)))
}

// words encodes 16-bit words as Sensirion chips do, each followed by its checksum, and copies as many bytes as r has
// room for.
func words(r []byte, values ...uint32) {
	var out []byte
	for _, v := range values {
		hi, lo := byte(v>>8), byte(v)
		out = append(out, hi, lo, crc8(hi, lo))
	}
	copy(r, out)
}
