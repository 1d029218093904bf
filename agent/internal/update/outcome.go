package update

import (
	"os"

	"github.com/yeolda/yeolda/protocol"
)

// Outcome is the result of an installation that did not succeed; zero: there is none.
type Outcome struct {
	State  protocol.UpdateState `json:"state"`
	Detail string               `json:"detail"`
	At     int64                `json:"at"` // when it was written, in nanoseconds: two outcomes may have the same reason
}

// Outcomes returns the outcomes in files, which contain the reasons of the states.
func Outcomes(files map[string]protocol.UpdateState) (found []Outcome) {
	for name, state := range files {
		info, err := os.Stat(name)
		if err != nil {
			continue
		}
		if text, err := os.ReadFile(name); err == nil {
			found = append(found, Outcome{state, string(text), info.ModTime().UnixNano()})
		}
	}
	return found
}
