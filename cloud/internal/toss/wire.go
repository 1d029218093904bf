package toss

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// kst is the provider's time zone. Korea has no daylight saving time, so a fixed offset
// is correct and needs no time-zone database.
var kst = time.FixedZone("KST", 9*60*60)

// won is an amount. The provider sends JSON numbers. Copies of its specification show
// strings, so won also accepts a quoted number and a decimal number without a fraction.
type won int

func (w *won) UnmarshalJSON(b []byte) error {
	s := string(bytes.Trim(b, `"`))
	if s == "null" {
		return nil
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		f, ferr := strconv.ParseFloat(s, 64)
		if ferr != nil || f != math.Trunc(f) || math.Abs(f) > 1<<53 {
			return fmt.Errorf("amount %.32q is not a whole number of won", s)
		}
		n = int64(f)
	}
	*w = won(n)
	return nil
}

// wireTime is a time of the provider: RFC 3339, or local time in Korea if the offset is
// missing. An unreadable time becomes zero, so that the payment remains readable.
type wireTime struct{ time.Time }

func (t *wireTime) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return nil //nolint:nilerr // zero, see above
	}
	if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
		t.Time = at
	} else if at, err := time.ParseInLocation("2006-01-02T15:04:05.999999999", s, kst); err == nil {
		t.Time = at
	}
	return nil
}

// localTime formats a time for requests: local time in Korea, without an offset.
func localTime(t time.Time) string { return t.In(kst).Format("2006-01-02T15:04:05") }
