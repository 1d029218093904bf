package fleetconfig

import (
	"fmt"
	"slices"

	"github.com/yeolda/yeolda/agent/ir"
)

// pause is the time between two frames of one press of LG's remotes, in µs.
const pause = 39_750

// Remote returns the agent's built-in code set of a remote control, see ir.Remotes. A press with several frames is one
// signal with pauses, as the remote sends it and a receiver would record it.
func Remote(name string) (*ir.CodeSet, error) {
	set, known := ir.Remote(name)
	if !known {
		return nil, fmt.Errorf("no remote control %q (there are %v)", name, ir.Remotes())
	}
	join(set.Roots)
	return set, nil
}

func join(nodes []ir.Node) {
	for i := range nodes {
		join(nodes[i].Children)
		if code := nodes[i].Code; len(code) > 1 {
			whole := code[0]
			for _, next := range code[1:] {
				whole.Durations = slices.Concat(whole.Durations, []uint32{pause}, next.Durations)
			}
			nodes[i].Code = ir.Code{whole}
		}
	}
}
