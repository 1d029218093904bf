package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// saveInterval bounds the changes that a crash of the sandbox can lose.
var saveInterval = 100 * time.Millisecond

// compactSize is the least size of a state file, in bytes, at which it is compacted while the sandbox runs.
const compactSize = 64 << 20

// journal is the state file: a whole state in the first line, then a line with the changes of each save. It is compacted at
// the start, and when it has doubled since.
type journal struct {
	path      string
	file      *os.File
	size      int64  // of the complete lines
	compactAt int64  // the size at which it is compacted
	waiting   []byte // lines whose writing failed
}

// openJournal reads and compacts a state file. No file is an empty state.
func openJournal(path string) (*journal, state, error) {
	j := &journal{path: path}
	st, err := j.compact()
	if err != nil {
		return nil, state{}, err
	}
	return j, st, nil
}

func (j *journal) close() { _ = j.file.Close() } // each write has reported its own error

// append adds a line. After an error the line is kept and written with the next one.
func (j *journal) append(c changes) error {
	j.waiting = append(append(j.waiting, mustJSON(c)...), '\n')
	if _, err := j.file.WriteAt(j.waiting, j.size); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	j.size += int64(len(j.waiting))
	j.waiting = nil
	if j.size < j.compactAt {
		return nil
	}
	_, err := j.compact()
	if err != nil {
		j.compactAt = 2 * j.size
	}
	return err
}

// compact replaces the file by one with the same state in one line. It reads the file, not the state of the sandbox, so
// requests do not wait for it.
func (j *journal) compact() (state, error) {
	st, err := readState(j.path)
	if err != nil {
		return state{}, err
	}
	file, size, err := writeState(j.path, st.whole())
	if err != nil {
		return state{}, fmt.Errorf("write the state file: %w", err)
	}
	if j.file != nil {
		_ = j.file.Close() // it has been replaced
	}
	j.file, j.size, j.compactAt = file, size, max(compactSize, 2*size)
	return st, nil
}

func readState(path string) (state, error) {
	p := replay{state: newState()}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p.done(), nil
	}
	if err != nil {
		return state{}, fmt.Errorf("read the state file: %w", err)
	}
	defer file.Close()
	lines := json.NewDecoder(bufio.NewReader(file))
	for n := 0; ; n++ {
		c := newChanges()
		err := lines.Decode(&c)
		if err == io.EOF || n > 0 && errors.Is(err, io.ErrUnexpectedEOF) { // the sandbox was killed while it wrote the last line
			return p.done(), nil
		}
		if err != nil {
			return state{}, fmt.Errorf("read line %d of the state file: %w", n+1, err)
		}
		p.apply(c)
	}
}

// writeState replaces the file by one with a single line. It returns the open file and its size.
func writeState(path string, whole changes) (*os.File, int64, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".sandbox-*")
	if err != nil {
		return nil, 0, err
	}
	line := append(mustJSON(whole), '\n')
	if _, err = f.Write(line); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	return f, int64(len(line)), nil
}

// keep schedules a save, which happens at the latest before Close returns. The caller holds s.mu.
func (s *Sandbox) keep() {
	if s.journal == nil {
		s.state.dropChanges()
		return
	}
	if s.ctx.Err() != nil {
		return
	}
	s.unsaved = true
	if !s.saving {
		s.saving = true
		s.wg.Go(s.save)
	}
}

// save writes lines until no change is unsaved. It holds s.mu only while it takes the changes: encoding and writing them, and
// compacting the file, take longer than a request may wait. Errors are logged; the sandbox continues in memory.
func (s *Sandbox) save() {
	for {
		select {
		case <-time.After(saveInterval):
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		if !s.unsaved {
			s.saving = false
			s.mu.Unlock()
			return
		}
		s.unsaved = false
		taken := s.state.takeChanges()
		s.mu.Unlock()
		if err := s.journal.append(taken); err != nil {
			s.log.Error("sandbox: saving the state failed", "error", err)
		}
	}
}
