package update

import (
	"os"

	"github.com/yeolda/yeolda/protocol"
)

// Outcome is what an installation left that did not succeed. The zero value is none.
type Outcome struct {
	State  protocol.UpdateState `json:"state"`
	Detail string               `json:"detail"`
	At     int64                `json:"at"` // when it was written, in nanoseconds: two outcomes may have the same reason
}

// LastOutcome returns the latest outcome in files, which contain the reasons of the states.
func LastOutcome(files map[string]protocol.UpdateState) (last Outcome) {
	for name, state := range files {
		info, err := os.Stat(name)
		if err != nil || info.ModTime().UnixNano() < last.At {
			continue
		}
		if text, err := os.ReadFile(name); err == nil {
			last = Outcome{state, string(text), info.ModTime().UnixNano()}
		}
	}
	return last
}
