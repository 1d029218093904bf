package pass

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/yeolda/yeolda/protocol"
)

const (
	journalFile = "journal"

	maxEntries = 4096    // that the cloud has not acknowledged; beyond that, the oldest are lost
	maxLines   = 512     // of a file whose entries are acknowledged, before it is written anew
	maxGrowth  = 4 << 20 // bytes of a file before it is written anew in any case
)

// errNotStored is returned when an entry could not be written, so that the door must stay closed.
var errNotStored = errors.New("the journal cannot be written")

// journal holds the attempts at the keypads, the codes that were used and the wrong attempts in a row. It is a file of lines,
// each behind the digest of itself and the line before it, so that a line that a power failure tore is recognised:
//
//	snapshot     the state when the file was written
//	begin        an attempt that may open a door, with the code that it uses; on disk before the lock is driven
//	end          its result
//	refused      an attempt that opens nothing
//
// The entries for the cloud follow from these lines. An entry gets its hash when it and all entries before it have ended.
// The caller serialises all calls.
type journal struct {
	disk Disk

	state    snapshot
	open     []opening         // that have begun and are not entries yet, in order
	codesOf  map[string]uint64 // by device: the first step that is acceptable after the restart
	digest   string            // of the last line
	lines    int
	size     int
	damaged  bool   // the end of the file could not be read, or a write failed: the file must be written anew
	stored   uint64 // number of the last entry that is on disk, so that a restart does not change it
	dropped  uint64
	unproven bool // the file was damaged when the agent started, so codes may have been used that it does not show
}

// snapshot is the state of a journal.
type snapshot struct {
	Journal string                `json:"journal"`
	Branch  string                `json:"branch,omitempty"`  // of the entries; empty: of a version that did not record it
	Next    uint64                `json:"next"`              // number of the next entry
	Last    string                `json:"last"`              // hash of the entry before it
	Entries []protocol.PassEntry  `json:"entries,omitempty"` // not acknowledged
	Codes   map[string]*usedCodes `json:"codes,omitempty"`   // by protocol.CodeDevice
	Wrong   map[string]int        `json:"wrong,omitempty"`   // by device: wrong attempts in a row
	// Locked holds, by device, the end of the lock-out that the last of these began.
	Locked map[string]time.Time `json:"locked,omitempty"`
}

// usedCodes holds the codes that were used at a device.
type usedCodes struct {
	Highest uint64           `json:"highest"` // step
	Used    map[uint64][]int `json:"used"`    // by step: the index digits
}

// code identifies a one-time code.
type code struct {
	Device string `json:"device"` // protocol.CodeDevice
	Step   uint64 `json:"step"`
	Index  int    `json:"index"`
}

// attempt is the part of an entry that is known before the lock is driven.
type attempt struct {
	Entry  uint64          `json:"entry"`
	Pass   string          `json:"pass,omitempty"`
	Device string          `json:"device"`
	At     time.Time       `json:"at"`
	Source protocol.Source `json:"source"`
	Code   *code           `json:"code,omitempty"`
}

type result struct {
	Entry   uint64                `json:"entry"`
	Outcome protocol.EntryOutcome `json:"outcome"`
	Reason  string                `json:"reason,omitempty"`
}

type opening struct {
	attempt
	result *result // nil: the lock is being driven
}

// line is one line of the file; exactly one field is set.
type line struct {
	Snapshot *snapshot `json:"snapshot,omitempty"`
	Begin    *attempt  `json:"begin,omitempty"`
	End      *result   `json:"end,omitempty"`
	Refused  *refusal  `json:"refused,omitempty"`
}

type refusal struct {
	attempt
	Reason string `json:"reason"`
	Wrong  int    `json:"wrong,omitempty"` // attempts in a row at this device, if this one counts
	// Locked is the end of the lock-out that this one begins, if any.
	Locked time.Time `json:"locked,omitzero"`
}

// makeMaps makes the maps that a snapshot without entries leaves out.
func (s *snapshot) makeMaps() {
	if s.Codes == nil {
		s.Codes = make(map[string]*usedCodes)
	}
	if s.Wrong == nil {
		s.Wrong = make(map[string]int)
	}
	if s.Locked == nil {
		s.Locked = make(map[string]time.Time)
	}
}

// newJournal reads the journal of the machine, which is now one of branch. Attempts whose result is missing get the outcome unknown.
func newJournal(disk Disk, branch string) (*journal, error) {
	j := &journal{disk: disk, codesOf: make(map[string]uint64)}
	data, err := disk.Read(journalFile)
	if err == nil {
		j.read(data)
	}
	if j.state.Journal == "" {
		j.state = snapshot{Journal: protocol.NewNonce(), Next: 1}
		j.unproven = err == nil || !errors.Is(err, fs.ErrNotExist)
	}
	j.state.makeMaps()
	for device, used := range j.state.Codes {
		j.codesOf[device] = used.Highest
	}
	for i := range j.open {
		j.open[i].result = &result{j.open[i].Entry, protocol.EntryUnknown, "the agent ended before the result was known"}
	}
	j.settle()
	if from := j.state.Branch; from != "" && from != branch { // enrolled elsewhere: the entries are of the doors of that branch
		j.state = snapshot{Journal: protocol.NewNonce(), Next: 1, Codes: j.state.Codes, Wrong: j.state.Wrong, Locked: j.state.Locked}
	}
	j.state.Branch = branch
	return j, j.rewrite()
}

// read applies the lines of a file up to the first one that is damaged.
func (j *journal) read(data []byte) {
	previous, rest := "", len(data)
	for text := range bytes.Lines(data) {
		rest -= len(text)
		digest, content, ok := bytes.Cut(bytes.TrimSuffix(text, []byte("\n")), []byte(" "))
		var l line
		if !ok || string(digest) != digestOf(previous, content) || json.Unmarshal(content, &l) != nil {
			j.unproven = rest > 0 // a power failure tears the last line only
			return
		}
		j.apply(l)
		previous = string(digest)
	}
}

func digestOf(previous string, content []byte) string {
	sum := sha256.Sum256(append([]byte(previous+" "), content...))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// apply changes the state by one line.
func (j *journal) apply(l line) {
	switch {
	case l.Snapshot != nil:
		j.state = *l.Snapshot
		j.state.makeMaps()
	case l.Begin != nil:
		j.state.Next = l.Begin.Entry + 1
		j.open = append(j.open, opening{attempt: *l.Begin})
		delete(j.state.Wrong, l.Begin.Device)
		delete(j.state.Locked, l.Begin.Device)
		if c := l.Begin.Code; c != nil {
			j.use(*c)
		}
	case l.End != nil:
		j.setResult(*l.End)
	case l.Refused != nil:
		j.state.Next = l.Refused.Entry + 1
		j.open = append(j.open, opening{l.Refused.attempt, &result{l.Refused.Entry, protocol.EntryRefused, l.Refused.Reason}})
		if l.Refused.Wrong > 0 {
			j.count(l.Refused.Device, l.Refused.Wrong, l.Refused.Locked)
		}
	}
	j.settle()
}

// count records a wrong attempt: their number in a row, and the end of the lock-out that it begins, or the zero time.
func (j *journal) count(device string, wrong int, locked time.Time) {
	j.state.Wrong[device] = wrong
	delete(j.state.Locked, device)
	if !locked.IsZero() {
		j.state.Locked[device] = locked
	}
}

func (j *journal) setResult(r result) {
	for i := range j.open {
		if j.open[i].Entry == r.Entry {
			j.open[i].result = &r
		}
	}
}

// settle turns the attempts that have ended, up to the first one that has not, into entries.
func (j *journal) settle() {
	for len(j.open) > 0 && j.open[0].result != nil {
		o := j.open[0]
		j.open = slices.Delete(j.open, 0, 1)
		e := protocol.PassEntry{
			Journal: j.state.Journal, Entry: o.Entry, Pass: o.Pass, Device: o.Device, At: o.At, Source: o.Source,
			Outcome: o.result.Outcome, Reason: protocol.Clip(o.result.Reason), Previous: j.state.Last,
		}
		e.Hash = e.Chain()
		j.state.Last = e.Hash
		j.state.Entries = append(j.state.Entries, e)
	}
	if extra := len(j.state.Entries) - maxEntries; extra > 0 {
		j.state.Entries = slices.Delete(j.state.Entries, 0, extra)
		j.dropped += uint64(extra)
	}
}

func (j *journal) use(c code) {
	used := j.state.Codes[c.Device]
	if used == nil {
		used = &usedCodes{Used: make(map[uint64][]int)}
		j.state.Codes[c.Device] = used
	}
	used.Highest = max(used.Highest, c.Step)
	used.Used[c.Step] = append(used.Used[c.Step], c.Index)
	for step := range used.Used { // only three steps are ever acceptable
		if step+3 < used.Highest {
			delete(used.Used, step)
		}
	}
}

// fresh reports whether a code has not been used: neither as far as the journal shows, nor before the restart as far as it may
// not show.
func (j *journal) fresh(c code) bool {
	if c.Step < j.codesOf[c.Device] {
		return false
	}
	used := j.state.Codes[c.Device]
	return used == nil || !slices.Contains(used.Used[c.Step], c.Index)
}

// refuseCodesUntil accepts no code of a step up to this one at any device: the codes used before are unknown.
func (j *journal) refuseCodesUntil(step uint64, devices []string) {
	for _, device := range devices {
		d := protocol.CodeDevice(device)
		j.codesOf[d] = max(j.codesOf[d], step+1)
	}
	j.unproven = false
}

// begin writes an attempt that may open a door. The door must stay closed if it returns an error.
func (j *journal) begin(a attempt) (entry uint64, err error) {
	a.Entry = j.state.Next
	return a.Entry, j.append(line{Begin: &a})
}

// end writes the result of an attempt.
func (j *journal) end(r result) error { return j.append(line{End: &r}) }

// refuse writes an attempt that opens nothing; wrong is the number of wrong attempts in a row, or 0 if it does not count. locked is
// the end of the lock-out that it begins, or the zero time.
func (j *journal) refuse(a attempt, reason string, wrong int, locked time.Time) error {
	a.Entry = j.state.Next
	return j.append(line{Refused: &refusal{a, reason, wrong, locked}})
}

// append writes a line and then applies it. After an error the line may be on disk and may become an entry after a restart, so
// the file is written anew, without the line, before the next one.
func (j *journal) append(l line) error {
	if j.damaged || j.lines > maxLines && len(j.state.Entries) == 0 && len(j.open) == 0 || j.size > maxGrowth && len(j.open) == 0 {
		if err := j.rewrite(); err != nil {
			return err
		}
	}
	content, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("%w: %w", errNotStored, err)
	}
	digest := digestOf(j.digest, content)
	text := append([]byte(digest+" "), append(content, '\n')...)
	if err := j.disk.Append(journalFile, text); err != nil {
		j.damaged = true
		return fmt.Errorf("%w: %w", errNotStored, err)
	}
	j.digest, j.lines, j.size = digest, j.lines+1, j.size+len(text)
	j.apply(l)
	j.keep()
	return nil
}

// keep records that the file shows all entries.
func (j *journal) keep() {
	if n := len(j.state.Entries); n > 0 {
		j.stored = j.state.Entries[n-1].Entry
	}
}

// behind reports whether an entry is not on disk.
func (j *journal) behind() bool {
	n := len(j.state.Entries)
	return n > 0 && j.state.Entries[n-1].Entry > j.stored
}

// unsent returns the entries after sent that are on disk, at most limit.
func (j *journal) unsent(sent uint64, limit int) (entries []protocol.PassEntry) {
	for _, e := range j.state.Entries {
		if e.Entry > sent && e.Entry <= j.stored && len(entries) < limit {
			entries = append(entries, e)
		}
	}
	return entries
}

// rewrite replaces the file by its present state. Attempts in progress are written again.
func (j *journal) rewrite() error {
	j.damaged = true
	state := j.state
	lines := []line{{Snapshot: &state}}
	for _, o := range j.open {
		if o.result != nil && o.result.Outcome == protocol.EntryRefused {
			lines = append(lines, line{Refused: &refusal{o.attempt, o.result.Reason, 0, time.Time{}}})
			continue
		}
		lines = append(lines, line{Begin: &o.attempt})
		if o.result != nil {
			lines = append(lines, line{End: o.result})
		}
	}
	if len(j.open) > 0 {
		state.Next = j.open[0].Entry
	}
	var text []byte
	digest := ""
	for _, l := range lines {
		content, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("%w: %w", errNotStored, err)
		}
		digest = digestOf(digest, content)
		text = append(append(append(text, digest...), ' '), append(content, '\n')...)
	}
	if err := j.disk.Replace(journalFile, text); err != nil {
		return fmt.Errorf("%w: %w", errNotStored, err)
	}
	j.digest, j.lines, j.size, j.damaged = digest, len(lines), len(text), false
	j.keep()
	return nil
}

// acknowledge removes the entries that the cloud has stored.
func (j *journal) acknowledge(m protocol.PassAck) {
	if m.Journal != j.state.Journal {
		return
	}
	j.state.Entries = slices.DeleteFunc(j.state.Entries, func(e protocol.PassEntry) bool { return e.Entry <= m.Entry })
}
