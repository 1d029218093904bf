// Package update installs new versions of the agent on the cloud's word.
//
//	cloud ─► Update ─► agent: fetch, verify ─► request.json ─► systemd (path unit) ─► root: copy, verify again, dpkg
//	                                                                                    └► trial: keep or restore
//
// The agent runs without privileges and can only leave a request. Root trusts neither the agent nor the cloud: it installs a
// package only if a release key has signed it. These are in the installed package and in a file that only root may write.
package update

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/agent/internal/durable"
	"github.com/yeolda/yeolda/protocol"
)

const (
	fetchTimeout = 15 * time.Minute // on a slow connection
	stallTimeout = time.Minute      // without a byte
	maxPackage   = 200 << 20
	// spaceLeft is the space that an installation leaves on the disk, for the journal of the keypads; see package doctor.
	spaceLeft = 8 << 20
	// askedTimeout is how long an update counts as asked for after a request. The service repeats it every few seconds, unless the rollout was
	// stopped.
	askedTimeout = time.Minute
	// retryDelay is the delay before a package is fetched again.
	retryDelay = 30 * time.Second
)

// The files in the folder that the agent and root share. The agent owns the folder.
const (
	requestFile = "request.json"
	packageFile = "package.deb"
	stateFile   = "state.json"
)

// Request is what the agent leaves for root.
type Request struct {
	Version string           `json:"version"`
	Package protocol.Package `json:"package"`
}

// Updater fetches updates. Its fields are set before the first call.
type Updater struct {
	Dir          string // shared with root
	Work         string // of root, see Install; empty: none
	Version      string // that runs
	Architecture string // Debian's name
	Keys         func() ([]ed25519.PublicKey, error)
	Outcomes     func() []Outcome // what root and the trial left; nil: nothing
	Changed      func()           // called when the status changes; must neither block nor call the Updater; may be nil
	Log          *slog.Logger
	Client       *http.Client // nil: http.DefaultClient

	free    func(dir string) (bytes uint64, err error) // nil: of the disk
	program func() (bytes uint64)                      // size of the running program; nil: the real one
	replace func(name string, text []byte) error       // nil: write

	disk sync.Mutex // held while the state is stored

	mu    sync.Mutex
	busy  bool
	tried time.Time
	asked time.Time // when the service last asked for the update that is being fetched
	last  state
}

// state is the last update that the agent was asked for. It survives restarts, so that a version that was rolled back is not
// installed again and again.
type state struct {
	protocol.UpdateStatus
	SHA256      string    `json:"sha256"`
	Rollout     uint64    `json:"rollout,omitempty"`     // that asked for it
	Interrupted int       `json:"interrupted,omitempty"` // installations that left no outcome
	Earlier     []Outcome `json:"outcomes,omitempty"`    // of other updates: present when this one began
}

// maxInterrupted is the number of interrupted installations after which an update is not tried again.
const maxInterrupted = 3

// Load reads the state of the last update when the agent starts.
func (u *Updater) Load() {
	if u.load() {
		u.store()
	}
}

// load reads the state and reports whether it has changed.
func (u *Updater) load() (changed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if text, err := os.ReadFile(filepath.Join(u.Dir, stateFile)); err == nil {
		_ = json.Unmarshal(text, &u.last) // of no importance: the update begins again
	}
	return u.endInterrupted()
}

// endInterrupted ends an installation that was interrupted, by a power cut or because the installer was killed, and reports whether there was
// one. It is tried again when the cloud repeats its request. mu is held.
func (u *Updater) endInterrupted() bool {
	if !u.interrupted() {
		return false
	}
	u.last.Interrupted++
	if u.last.Interrupted < maxInterrupted {
		u.end(protocol.UpdateFetching, "the installation was interrupted")
	} else {
		u.end(protocol.UpdateFailed, "the installation was interrupted repeatedly")
	}
	return true
}

// interrupted reports whether an installation began, is over, and left neither the new version nor a reason. mu is held.
func (u *Updater) interrupted() bool {
	if u.last.State != protocol.UpdateInstalling || u.last.Version == u.Version || installing(u.Work) {
		return false
	}
	if u.outcome() != (Outcome{}) {
		return false
	}
	_, err := os.Stat(filepath.Join(u.Dir, requestFile)) // left for the installer, which starts at boot
	return errors.Is(err, os.ErrNotExist)
}

// Status returns the last update, or nil if the agent runs that version.
func (u *Updater) Status() *protocol.UpdateStatus {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last.Version == "" || u.last.Version == u.Version {
		return nil
	}
	status := u.last.UpdateStatus
	if found := u.outcome(); status.State == protocol.UpdateInstalling && found != (Outcome{}) {
		status.State, status.Detail = found.State, protocol.Clip(found.Detail)
	}
	return &status
}

// outcome returns what root or the trial left of the last update, or the zero value. The outcome of an earlier update is there
// until the next package is unpacked.
func (u *Updater) outcome() (last Outcome) {
	for _, found := range u.left() {
		if !slices.Contains(u.last.Earlier, found) && found.At >= last.At {
			last = found
		}
	}
	return last
}

func (u *Updater) left() []Outcome {
	if u.Outcomes == nil {
		return nil
	}
	return u.Outcomes()
}

// ended reports whether the last update has failed or was rolled back. mu is held.
func (u *Updater) ended() bool {
	return u.last.State == protocol.UpdateFailed || u.last.State == protocol.UpdateInstalling && u.outcome() != (Outcome{})
}

// Ask begins an update, unless it is in progress, is installed, or has failed before with the same package in the same rollout.
func (u *Updater) Ask(ctx context.Context, m protocol.Update) {
	p, ok := m.For(u.Architecture)
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.busy && u.endInterrupted() {
		go u.store() // not here, where other requests of the service wait
	}
	switch {
	case u.busy:
		if m.Version == u.last.Version && p.SHA256 == u.last.SHA256 {
			u.asked = time.Now()
		}
		return
	case m.Version == u.Version:
		return
	case u.last.Version != m.Version || u.last.SHA256 != p.SHA256 || u.ended() && m.Rollout != u.last.Rollout && m.Rollout != 0:
		u.last = state{SHA256: p.SHA256, Rollout: m.Rollout, Earlier: u.left()}
	case u.last.State != protocol.UpdateFetching || time.Since(u.tried) < retryDelay:
		return
	}
	u.tried = time.Now()
	u.asked = u.tried
	u.last.UpdateStatus = protocol.UpdateStatus{Version: m.Version, State: protocol.UpdateFetching}
	if !ok {
		u.end(protocol.UpdateFailed, "there is no package for "+u.Architecture)
		go u.store()
		return
	}
	u.busy = true
	u.announce()
	go func() {
		u.fetched(m.Version, u.fetch(ctx, m.Version, p))
		u.store()
	}()
}

// fetched sets the state of an update by the outcome of its fetch.
func (u *Updater) fetched(version string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.busy = false
	var permanent permanentError
	switch {
	case errors.As(err, &permanent):
		u.Log.Error("update rejected", "version", version, "error", err)
		u.end(protocol.UpdateFailed, err.Error())
	case err != nil:
		u.Log.Warn("update not fetched", "version", version, "error", err)
		u.end(protocol.UpdateFetching, err.Error()) // asked again, it is fetched again
	default:
		u.Log.Info("update passed to the installer", "version", version)
	}
}

// end sets the state of the update, which the caller then stores. mu is held.
func (u *Updater) end(s protocol.UpdateState, detail string) {
	u.last.State, u.last.Detail = s, protocol.Clip(detail)
}

// store stores the state of the update and announces it.
func (u *Updater) store() {
	if err := u.record(); err != nil {
		u.Log.Warn("state of the update not stored", "error", err)
	}
	u.announce()
}

// record stores the state of the update. It does not hold mu while it writes, because a card can stall: the watchdog waits for Status, and
// the messages of the service wait for Ask.
func (u *Updater) record() error {
	u.disk.Lock()
	defer u.disk.Unlock()
	u.mu.Lock()
	text, err := json.Marshal(u.last)
	u.mu.Unlock()
	if err != nil {
		return err
	}
	return u.write(stateFile, text)
}

// write replaces a file in the folder.
func (u *Updater) write(name string, text []byte) error {
	if u.replace != nil {
		return u.replace(filepath.Join(u.Dir, name), text)
	}
	return write(filepath.Join(u.Dir, name), text)
}

func (u *Updater) announce() {
	if u.Changed != nil {
		u.Changed()
	}
}

// permanentError is a reason not to fetch the same package again.
type permanentError struct{ error }

// fetch fetches a package, verifies it and leaves the request for root.
func (u *Updater) fetch(ctx context.Context, version string, p protocol.Package) error {
	keys, err := u.Keys()
	if err != nil {
		return permanentError{err}
	}
	if err := p.Verify(version, keys...); err != nil {
		return permanentError{fmt.Errorf("the release key has not signed the package: %w", err)}
	}
	if !u.has(p) {
		if err := u.download(ctx, p); err != nil {
			return err
		}
	}
	u.mu.Lock()
	wanted := time.Since(u.asked) < askedTimeout
	u.mu.Unlock()
	if !wanted {
		return errors.New("the package is fetched, but the service no longer asks for it")
	}
	return u.request(version, p)
}

// request leaves the request for root. The state is stored first: after a power cut between the two, a version that was rolled back would be
// installed again.
func (u *Updater) request(version string, p protocol.Package) error {
	text, err := json.Marshal(Request{version, p})
	if err != nil {
		return err
	}
	u.mu.Lock()
	u.end(protocol.UpdateInstalling, "")
	u.mu.Unlock()
	if err := u.record(); err != nil {
		return err
	}
	return u.write(requestFile, text)
}

// has reports whether a package is there already.
func (u *Updater) has(p protocol.Package) bool {
	file, err := os.Open(filepath.Join(u.Dir, packageFile))
	if err != nil {
		return false
	}
	defer file.Close()
	return copyVerified(io.Discard, file, p) == nil
}

// errStalled ends a download that receives nothing. The next request of the service, for this update or another one, begins a new one.
var errStalled = fmt.Errorf("the server has sent nothing for %v", stallTimeout)

// stallReader ends a download that receives nothing for stallTimeout.
type stallReader struct {
	io.Reader
	timer *time.Timer
}

// Read implements io.Reader. The time between two reads does not count: a card may be slow to write.
func (r stallReader) Read(b []byte) (int, error) {
	r.timer.Reset(stallTimeout)
	defer r.timer.Stop()
	return r.Reader.Read(b)
}

// download fetches a package into the folder. On an error, nothing of it remains there.
func (u *Updater) download(ctx context.Context, p protocol.Package) (err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	stalled := time.AfterFunc(stallTimeout, func() { end(errStalled) })
	defer func() {
		stalled.Stop()
		if err != nil && context.Cause(ctx) == errStalled { //nolint:errorlint // it is never wrapped
			err = errStalled
		}
		end(nil)
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL, nil)
	if err != nil {
		return permanentError{err}
	}
	client := u.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	stalled.Stop()
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", request.URL.Host, response.Status)
	}
	if err := os.MkdirAll(u.Dir, 0o700); err != nil {
		return err
	}
	name := filepath.Join(u.Dir, packageFile)
	defer func() {
		if err != nil {
			_ = os.Remove(name) // on a full disk, keypads open nothing
		}
	}()
	_ = os.Remove(name) // of an earlier update
	room, err := u.checkSpace(response.ContentLength)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = copyVerified(file, http.MaxBytesReader(nil, io.NopCloser(stallReader{response.Body, stalled}), room), p)
	return errors.Join(err, file.Sync(), file.Close())
}

// checkSpace returns the size of the largest package for which the disk has space, or an error if a package of a size is larger; below 0:
// unknown. Root copies the package, and the program is kept beside the new one.
func (u *Updater) checkSpace(size int64) (room int64, err error) {
	free, program := u.free, u.program
	if free == nil {
		free = diskSpace
	}
	if program == nil {
		program = programSize
	}
	available, err := free(u.Dir)
	if err != nil {
		return 0, err
	}
	fixed, needed := spaceLeft+2*program(), 2*uint64(max(size, 0)) //nolint:gosec // not negative
	if available <= fixed || available < fixed+needed {
		return 0, fmt.Errorf("%d KiB of the disk are free, the installation needs %d", available>>10, (fixed+needed)>>10)
	}
	return int64((available - fixed) / 2), nil //nolint:gosec // half of a disk
}

// programSize returns the size of the running program; 0: unknown.
func programSize() uint64 {
	name, err := os.Executable()
	if err != nil {
		return 0
	}
	info, err := os.Stat(name)
	if err != nil {
		return 0
	}
	return uint64(info.Size()) //nolint:gosec // not negative
}

// diskSpace returns the free space of the disk of a folder.
func diskSpace(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil //nolint:gosec // the size of a block is positive
}

// copyVerified copies a package and compares its hash.
func copyVerified(to io.Writer, from io.Reader, p protocol.Package) error {
	sum := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, maxPackage)); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != p.SHA256 {
		return errors.New("the package does not have the hash that was signed")
	}
	return nil
}

func write(name string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	return durable.Replace(name, text)
}

// Keys reads release keys from files, of which some may be missing: Ed25519 public keys in base64, one in a line.
func Keys(names ...string) ([]ed25519.PublicKey, error) {
	var all strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("release keys: %w", err)
		}
		all.Write(append(text, '\n'))
	}
	var keys []ed25519.PublicKey
	for line := range strings.Lines(all.String()) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, err := protocol.ParseKey(line)
		if err != nil {
			return nil, fmt.Errorf("release keys: %w", err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no release key in the package or in /etc/yeolda-agent/release-keys: no update is accepted")
	}
	return keys, nil
}
