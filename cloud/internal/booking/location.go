package booking

import (
	"fmt"
	"math"
)

// Location is a place on earth in degrees (WGS 84).
type Location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// Validate returns an [InvalidError] for a value out of bounds.
func (l Location) Validate() error {
	// The comparisons are false for a value that is not a number.
	if !(math.Abs(l.Latitude) <= 90) {
		return invalid("location", "latitude %v; expected -90 to 90", l.Latitude)
	}
	if !(math.Abs(l.Longitude) <= 180) {
		return invalid("location", "longitude %v; expected -180 to 180", l.Longitude)
	}
	return nil
}

func (l *Location) text() string {
	if l == nil {
		return "unknown"
	}
	return fmt.Sprintf("%v, %v", l.Latitude, l.Longitude)
}

// BranchSearch is a search for branches, page by page.
type BranchSearch struct {
	Text  string    // a part of the code, name or address
	Near  *Location // nearest first, branches without a location last; nil: in the order in which they were added
	After int       // with Near the number of branches to skip, otherwise the id of the last one of the previous page
	Limit int
}
