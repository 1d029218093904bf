package branchfile

import (
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/yeolda/yeolda/cloud/internal/booking"
)

// readLocation reads the location of a branch: {latitude: 37.4979, longitude: 127.0276}.
func (r *reader) readLocation(n *yaml.Node) *booking.Location {
	location := new(booking.Location)
	before := len(r.problems)
	r.mapping(n, "location",
		required("latitude", r.degrees("latitude", &location.Latitude)),
		required("longitude", r.degrees("longitude", &location.Longitude)))
	if len(r.problems) > before {
		return nil
	}
	r.check(n, location.Validate())
	return location
}

func (r *reader) degrees(what string, into *float64) func(*yaml.Node) {
	return func(n *yaml.Node) {
		value, err := strconv.ParseFloat(n.Value, 64)
		if err != nil || n.Kind != yaml.ScalarNode {
			r.problem(n, "%s is %q; expected degrees such as 37.4979", what, n.Value)
			return
		}
		*into = value
	}
}
