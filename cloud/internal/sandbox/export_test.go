package sandbox

import (
	"fmt"
	"time"
)

// Each change is saved at once, so that CheckSaved finds one that is not noted even if an element changes twice.
func init() { saveInterval = time.Microsecond }

// CheckSaved compares the state of a closed sandbox with what its state file and the changes since the last save contain.
func (s *Sandbox) CheckSaved() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := replay{state: newState()}
	st, err := readState(s.opts.StateFile)
	if err != nil {
		return err
	}
	p.apply(st.whole())
	p.apply(s.state.takeChanges())
	saved := p.done()
	if live, saved := s.encodeAt(&s.state), s.encodeAt(&saved); live != saved {
		return fmt.Errorf("state\n%s\nof the file\n%s", live, saved)
	}
	return nil
}

// encodeAt applies the transitions that are due, which need not be saved, and encodes a state.
func (s *Sandbox) encodeAt(st *state) string {
	for _, r := range st.Payments {
		st.advance(r, s.now())
	}
	for i := range st.Receipts {
		st.Receipts[i].advance(s.now())
	}
	return string(mustJSON(st.whole()))
}
