package toss

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"
)

// kst is the provider's clock. Korea has no daylight saving time, so the fixed
// offset is right and needs no time-zone database.
var kst = time.FixedZone("KST", 9*60*60)

// won is an amount. The provider sends JSON numbers; copies of its specification
// show strings, so a quoted or fractionless decimal number is taken as well.
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

// wireTime is a time of the provider: RFC 3339, or local time in Korea when the
// offset is missing. A time that cannot be read is zero: no decision rests on one,
// and a payment must stay readable.
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

// wireEasyPay takes both shapes seen: an object with the provider's name, or the bare name.
type wireEasyPay string

func (e *wireEasyPay) UnmarshalJSON(b []byte) error {
	var object struct {
		Provider string `json:"provider"`
	}
	if json.Unmarshal(b, &object) == nil {
		*e = wireEasyPay(object.Provider)
		return nil
	}
	var name string
	if json.Unmarshal(b, &name) == nil {
		*e = wireEasyPay(name)
	}
	return nil
}

// localTime is the format of times in requests: local in Korea, without an offset.
func localTime(t time.Time) string { return t.In(kst).Format("2006-01-02T15:04:05") }
