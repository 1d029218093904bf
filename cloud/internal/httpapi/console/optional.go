package console

import "encoding/json"

// optional is a field of a request that distinguishes null from a missing value.
type optional[T any] struct {
	value T
	given bool
}

// UnmarshalJSON implements json.Unmarshaler.
func (o *optional[T]) UnmarshalJSON(text []byte) error {
	o.given = true
	return json.Unmarshal(text, &o.value)
}

// MarshalJSON implements json.Marshaler.
func (o optional[T]) MarshalJSON() ([]byte, error) { return json.Marshal(o.value) }
