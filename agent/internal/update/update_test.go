package update

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/yeolda/yeolda/protocol"
)

var (
	release = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	other   = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	keys    = []ed25519.PublicKey{release.Public().(ed25519.PublicKey)}
	deb     = []byte("a Debian package")
)

func signed(key ed25519.PrivateKey, address string, content []byte) protocol.Update {
	sum := sha256.Sum256(content)
	return protocol.Update{Version: "2.0.0", Packages: []protocol.Package{protocol.SignPackage(key, "2.0.0",
		protocol.Package{Architecture: "arm64", URL: address, SHA256: hex.EncodeToString(sum[:])})}}
}

type fixture struct {
	*Updater
	changed chan struct{}
	url     string
	served  []byte
	status  int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{changed: make(chan struct{}, 10), served: deb, status: http.StatusOK}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(f.status)
		_, _ = w.Write(f.served)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL + "/agent.deb"
	f.Updater = &Updater{Dir: filepath.Join(t.TempDir(), "update"), Version: "1.0.0", Architecture: "arm64",
		Keys: func() ([]ed25519.PublicKey, error) { return keys, nil }, Changed: func() { f.changed <- struct{}{} }, Log: slog.New(slog.DiscardHandler)}
	return f
}

// ask asks for an update and returns its status when the package is fetched or the reason is known why it is not.
func (f *fixture) ask(t *testing.T, m protocol.Update) protocol.UpdateStatus {
	t.Helper()
	f.Ask(t.Context(), m)
	for {
		<-f.changed
		status := f.Status()
		if status == nil {
			t.Fatal("got no status of the update")
		}
		if status.State != protocol.UpdateFetching || status.Detail != "" {
			return *status
		}
	}
}

// slowServer provides a package once finish was called.
type slowServer struct {
	url     string
	finish  func()
	fetched atomic.Int32 // requests that it has answered
}

func provideSlowly(t *testing.T, deb []byte) *slowServer {
	t.Helper()
	finished := make(chan struct{})
	s := &slowServer{finish: sync.OnceFunc(func() { close(finished) })}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		<-finished
		s.fetched.Add(1)
		_, _ = w.Write(deb)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(s.finish)
	s.url = server.URL
	return s
}

// A version failed before, and the cloud asks for a repaired package of it: that the agent fetches it is announced before the package is there.
func TestFetchOfARepairedPackageIsAnnounced(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got := f.ask(t, signed(other, f.url, deb)); got.State != protocol.UpdateFailed {
		t.Fatalf("got %+v, want failed", got)
	}
	for len(f.changed) > 0 {
		<-f.changed
	}
	repaired := []byte("repaired")
	slow := provideSlowly(t, repaired)
	f.Ask(t.Context(), signed(release, slow.url, repaired))
	select {
	case <-f.changed:
	case <-time.After(5 * time.Second):
		t.Fatal("nothing is announced while the package is fetched")
	}
	if got := f.Status(); got.State != protocol.UpdateFetching || got.Detail != "" {
		t.Errorf("got %+v, want fetching", got)
	}
	slow.finish()
	<-f.changed
	if got := f.Status(); got.State != protocol.UpdateInstalling {
		t.Errorf("got %+v, want installing", got)
	}
}

func TestUpdateIsFetchedAndInstalled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got := f.ask(t, signed(release, f.url, deb)); got.State != protocol.UpdateInstalling || got.Version != "2.0.0" {
		t.Fatalf("got %+v, want installing", got)
	}
	f.Ask(t.Context(), signed(release, f.url, deb)) // repeated: nothing happens
	work := t.TempDir()
	installed := 0
	install := func(name string) error {
		installed++
		content, err := os.ReadFile(name)
		if err != nil || !bytes.Equal(content, deb) || filepath.Dir(name) != work {
			t.Errorf("installed %s: %q, %v", name, content, err)
		}
		return nil
	}
	if err := os.Chmod(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Install(f.Dir, work, keys, install); err != nil || installed != 1 {
		t.Fatalf("got %v, %d installations, want 1", err, installed)
	}
	if info, err := os.Stat(work); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the agent cannot read the outcome in %v, %v", info, err)
	}
	if err := Install(f.Dir, work, keys, install); err == nil || installed != 1 {
		t.Errorf("a second installation of one request: got %v", err)
	}

	// The Pi has restored the old version: the same package is not installed again, another one is.
	rolledBack := Outcome{protocol.UpdateRolledBack, "it does not connect", 1}
	f.Outcomes = func() []Outcome { return []Outcome{rolledBack} }
	f.Load()
	if got := f.Status(); got.State != protocol.UpdateRolledBack || got.Detail != "it does not connect" {
		t.Errorf("got %+v, want rolled-back", got)
	}
	f.Ask(t.Context(), signed(release, f.url, deb))
	if _, err := os.Stat(filepath.Join(f.Dir, requestFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a package that was rolled back is requested again: %v", err)
	}
	f.served = []byte("a repaired package")
	if got := f.ask(t, signed(release, f.url, f.served)); got.Version != "2.0.0" || got.State != protocol.UpdateInstalling {
		t.Errorf("got %+v, want installing: the outcome is that of the earlier package", got)
	}
	rolledBack.At++ // for the same reason
	if got := f.Status(); got.State != protocol.UpdateRolledBack {
		t.Errorf("got %+v, want rolled-back again", got)
	}
	f.Version = "2.0.0"
	if got := f.Status(); got != nil {
		t.Errorf("the version runs: got %+v, want no status", got)
	}
}

func TestUpdateIsRejected(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		update func(url string) protocol.Update
		state  protocol.UpdateState
	}{
		"signed with another key":       {func(url string) protocol.Update { return signed(other, url, deb) }, protocol.UpdateFailed},
		"content that was not signed":   {func(url string) protocol.Update { return signed(release, url, []byte("other")) }, protocol.UpdateFetching},
		"a version that was not signed": {func(url string) protocol.Update { u := signed(release, url, deb); u.Version = "3.0.0"; return u }, protocol.UpdateFailed},
		"no package for the architecture": {func(url string) protocol.Update {
			u := signed(release, url, deb)
			u.Packages[0].Architecture = "armhf"
			return u
		}, protocol.UpdateFailed},
		"server does not answer": {func(string) protocol.Update { return signed(release, "http://127.0.0.1:1/agent.deb", deb) }, protocol.UpdateFetching},
	} {
		f := newFixture(t)
		if got := f.ask(t, c.update(f.url)); got.State != c.state || got.Detail == "" {
			t.Errorf("%s: got %+v, want %s", name, got, c.state)
		}
		if _, err := os.Stat(filepath.Join(f.Dir, requestFile)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the installer was asked: %v", name, err)
		}
	}
}

// TestAnotherRolloutTriesAgain fails an update, after which an operator removes the cause and begins another rollout of the same version. Only
// that tries the package again, once.
func TestAnotherRolloutTriesAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var outcome []Outcome
	f.Outcomes = func() []Outcome { return outcome }
	m := signed(release, f.url, deb)
	m.Rollout = 7
	requested := func() bool {
		_, err := os.Stat(filepath.Join(f.Dir, requestFile))
		return err == nil
	}
	install := func(at int64) {
		t.Helper()
		if !requested() {
			t.Fatal("the installer was not asked")
		}
		if err := os.Remove(filepath.Join(f.Dir, requestFile)); err != nil {
			t.Fatal(err)
		}
		outcome = []Outcome{{protocol.UpdateFailed, "no space left on device", at}}
	}
	f.ask(t, m)
	m.Rollout = 8
	f.Ask(t.Context(), m) // while the installer runs
	if f.busy {
		t.Fatal("an installation in progress is begun again")
	}
	install(1)
	m.Rollout = 7
	f.Ask(t.Context(), m)
	if f.busy || f.Status().State != protocol.UpdateFailed {
		t.Fatalf("the same rollout: got %+v, want failed", f.Status())
	}
	m.Rollout = 8
	for len(f.changed) > 0 {
		<-f.changed
	}
	if f.Ask(t.Context(), m); len(f.changed) == 0 {
		t.Fatal("another rollout: the package is not tried again")
	}
	if got := f.ask(t, m); got.State != protocol.UpdateInstalling {
		t.Fatalf("another rollout: got %+v, want installing", got)
	}
	install(2)
	restarted := &Updater{Dir: f.Dir, Version: f.Version, Architecture: f.Architecture, Keys: f.Keys, Outcomes: f.Outcomes, Log: f.Log}
	restarted.Load()
	for _, m.Rollout = range []uint64{8, 0} { // an older service names none
		restarted.Ask(t.Context(), m)
		if got := restarted.Status(); restarted.busy || got.State != protocol.UpdateFailed {
			t.Errorf("repeated after a restart: got %+v, want failed", got)
		}
	}
}

// TestStoppedUpdateIsNotInstalled fetches a package so slowly that the rollout was stopped meanwhile. If the service asks again, the package
// is not fetched again.
func TestStoppedUpdateIsNotInstalled(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	slow := provideSlowly(t, deb)
	m := signed(release, slow.url, deb)
	f.Ask(t.Context(), m)
	<-f.changed
	f.mu.Lock()
	f.asked = f.asked.Add(-askedTimeout)
	f.mu.Unlock()
	slow.finish()
	<-f.changed
	if got := f.Status(); got.State != protocol.UpdateFetching || got.Detail == "" {
		t.Fatalf("got %+v, want that the package is fetched only", got)
	}
	if _, err := os.Stat(filepath.Join(f.Dir, requestFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the installer was asked: %v", err)
	}
	f.mu.Lock()
	f.tried = f.tried.Add(-retryDelay)
	f.mu.Unlock()
	if got, fetched := f.ask(t, m), slow.fetched.Load(); got.State != protocol.UpdateInstalling || fetched != 1 {
		t.Errorf("asked again: got %+v after %d downloads, want installing after 1", got, fetched)
	}
}

// TestRepeatedRequestKeepsUpdateWanted repeats the request while the package is fetched, as the service does.
func TestRepeatedRequestKeepsUpdateWanted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	slow := provideSlowly(t, deb)
	m := signed(release, slow.url, deb)
	f.Ask(t.Context(), m)
	<-f.changed
	f.mu.Lock()
	f.asked = f.asked.Add(-askedTimeout)
	f.mu.Unlock()
	f.Ask(t.Context(), m)
	slow.finish()
	<-f.changed
	if got := f.Status(); got.State != protocol.UpdateInstalling {
		t.Errorf("got %+v, want installing", got)
	}
}

// stalling is a server that accepts a request and answers with a part of a package, or not at all, and then sends nothing more.
type stalling struct{ part []byte }

func (s stalling) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.part == nil {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	body, server := io.Pipe()
	go func() {
		for _, b := range s.part {
			time.Sleep(stallTimeout - time.Second) // slow, but not stalled
			_, _ = server.Write([]byte{b})
		}
		<-r.Context().Done()
		_ = server.CloseWithError(r.Context().Err())
	}()
	return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Body: body, Request: r}, nil
}

// TestStalledDownloadKeepsNoUpdateOut: a download that receives nothing any more ends after a minute, not after a quarter of an hour, in which no
// other update was fetched.
func TestStalledDownloadKeepsNoUpdateOut(t *testing.T) {
	t.Parallel()
	for name, part := range map[string][]byte{"no answer": nil, "a part": deb[:3]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				u := &Updater{Dir: filepath.Join(t.TempDir(), "update"), Version: "1.0.0", Architecture: "arm64", Client: &http.Client{Transport: stalling{part}},
					Keys: func() ([]ed25519.PublicKey, error) { return keys, nil }, Log: slog.New(slog.DiscardHandler)}
				u.Ask(t.Context(), signed(release, "https://server.invalid/agent.deb", deb))
				time.Sleep(time.Duration(len(part))*stallTimeout + stallTimeout/2)
				if got := u.Status(); got.State != protocol.UpdateFetching || got.Detail != "" {
					t.Fatalf("before the time limit: got %+v, want fetching", got)
				}
				time.Sleep(stallTimeout)
				if got := u.Status(); got.State != protocol.UpdateFetching || got.Detail != errStalled.Error() {
					t.Fatalf("after the time limit: got %+v, want the reason", got)
				}
				if _, err := os.Stat(filepath.Join(u.Dir, packageFile)); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("a part of the package remains: %v", err)
				}
				u.Client = &http.Client{Transport: stalling{}}
				u.Ask(t.Context(), signed(release, "https://server.invalid/agent.deb", []byte("another package")))
				if got := u.Status(); got.State != protocol.UpdateFetching || got.Detail != "" {
					t.Errorf("got %+v, want the other update being fetched", got)
				}
				time.Sleep(2 * stallTimeout)
			})
		})
	}
}

// TestStalledCardHoldsUpNothing stores the state of an update on a card that stalls, as cheap ones do after a package was written. The
// watchdog is fed by what asks for the status, and doors are asked for by what passes on the requests of the service.
func TestStalledCardHoldsUpNothing(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		architecture string
		changes      int
	}{"fetched": {"arm64", 2}, "no package": {"armhf", 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			stalled := filepath.Join(f.Dir, stateFile+".new")
			if err := errors.Join(os.MkdirAll(f.Dir, 0o700), syscall.Mkfifo(stalled, 0o600)); err != nil {
				t.Fatal(err)
			}
			m := signed(release, f.url, deb)
			m.Packages[0].Architecture = tt.architecture
			done := make(chan struct{})
			go func() {
				defer close(done)
				f.Ask(t.Context(), m)
				for s := f.Status(); s.State == protocol.UpdateFetching; s = f.Status() {
					runtime.Gosched()
				}
				f.Ask(t.Context(), m)
			}()
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Error("the card holds up the agent")
			}
			drain, err := os.Open(stalled) // the card works again
			if err != nil {
				t.Fatal(err)
			}
			defer drain.Close()
			_, _ = io.Copy(io.Discard, drain)
			for range tt.changes {
				<-f.changed
			}
		})
	}
}

// TestFetchLeavesSpace fetches packages on a card that is nearly full: what is left of it is needed for the journal of the keypads.
func TestFetchLeavesSpace(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	name := filepath.Join(f.Dir, packageFile)
	if err := write(name, []byte("of an earlier update")); err != nil {
		t.Fatal(err)
	}
	f.free = func(string) (uint64, error) {
		if _, err := os.Stat(name); err == nil {
			t.Error("the package of the earlier update takes space")
		}
		return spaceLeft + 2*(1000+uint64(len(deb))) - 1, nil // root copies the package, and the program is kept beside the new one
	}
	f.program = func() uint64 { return 1000 }
	if got := f.ask(t, signed(release, f.url, deb)); got.State != protocol.UpdateFetching || !strings.Contains(got.Detail, "KiB") {
		t.Errorf("got %+v, want the space that is free", got)
	}

	enough := newFixture(t)
	enough.program = f.program
	enough.free = func(string) (uint64, error) { return spaceLeft + 2*(1000+uint64(len(deb))), nil }
	if got := enough.ask(t, signed(release, enough.url, deb)); got.State != protocol.UpdateInstalling {
		t.Errorf("with enough space: got %+v, want installing", got)
	}

	chunked := newFixture(t) // its size is not announced
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		_, _ = w.Write(deb)
	}))
	t.Cleanup(server.Close)
	chunked.program = f.program
	chunked.free = func(string) (uint64, error) { return spaceLeft + 2*(1000+uint64(len(deb))) - 2, nil }
	if got := chunked.ask(t, signed(release, server.URL, deb)); got.State != protocol.UpdateFetching || !strings.Contains(got.Detail, "too large") {
		t.Errorf("of an unknown size: got %+v, want that it is too large", got)
	}

	torn := newFixture(t)
	if got := torn.ask(t, signed(release, torn.url, []byte("another"))); got.State != protocol.UpdateFetching || got.Detail == "" {
		t.Errorf("got %+v, want that the package is another one", got)
	}
	for _, dir := range []string{f.Dir, torn.Dir} {
		if info, err := os.Stat(filepath.Join(dir, packageFile)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the package remains: %v, %v", info, err)
		}
	}
}

// TestRootInstallsOnlySignedPackages plays an agent that was taken over: root installs nothing that the release key has not signed.
func TestRootInstallsOnlySignedPackages(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, deb, 0o600); err != nil {
		t.Fatal(err)
	}
	request := func(u protocol.Update) []byte {
		text, err := json.Marshal(Request{u.Version, u.Packages[0]})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for name, prepare := range map[string]func(dir string) error{
		"signed with another key": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, requestFile), request(signed(other, "", deb)), 0o600),
				os.WriteFile(filepath.Join(dir, packageFile), deb, 0o600))
		},
		"other content": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, requestFile), request(signed(release, "", deb)), 0o600),
				os.WriteFile(filepath.Join(dir, packageFile), []byte("other"), 0o600))
		},
		"package is a link": func(dir string) error {
			return errors.Join(os.WriteFile(filepath.Join(dir, requestFile), request(signed(release, "", deb)), 0o600),
				os.Symlink(secret, filepath.Join(dir, packageFile)))
		},
		"request is a link": func(dir string) error { return os.Symlink(secret, filepath.Join(dir, requestFile)) },
		"not JSON":          func(dir string) error { return os.WriteFile(filepath.Join(dir, requestFile), []byte("{"), 0o600) },
		"no request":        func(string) error { return nil },
	} {
		dir := t.TempDir()
		if err := prepare(dir); err != nil {
			t.Fatal(err)
		}
		if err := Install(dir, t.TempDir(), keys, func(string) error { t.Errorf("%s: installed", name); return nil }); err == nil {
			t.Errorf("%s: got no error", name)
		}
		if _, err := os.Lstat(filepath.Join(dir, requestFile)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the request remains: %v", name, err)
		}
	}
}

// TestKeysOfSeveralFiles reads the keys of the package and those of the administrator, which may be missing.
func TestKeysOfSeveralFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	packaged, own := filepath.Join(dir, "packaged"), filepath.Join(dir, "own")
	if err := os.WriteFile(packaged, []byte("# no key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if keys, err := Keys(packaged, own); err == nil {
		t.Errorf("without a key: got %v, want an error", keys)
	}
	if err := os.WriteFile(own, []byte(base64.StdEncoding.EncodeToString(keys[0])), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Keys(packaged, own); err != nil || len(got) != 1 || !got[0].Equal(keys[0]) {
		t.Errorf("got %v, %v, want the administrator's key", got, err)
	}
	if err := os.WriteFile(own, []byte("no key at all"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Keys(packaged, own); err == nil {
		t.Errorf("with a damaged file: got %v, want an error", got)
	}
}

// TestOutcomes: of two outcomes of one update, the later counts; if the clock was set back between two updates, that of the second one.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	f, dir := newFixture(t), t.TempDir()
	failed, rolledBack := filepath.Join(dir, "failed"), filepath.Join(dir, "rolled-back")
	files := map[string]protocol.UpdateState{failed: protocol.UpdateFailed, rolledBack: protocol.UpdateRolledBack}
	f.Outcomes = func() []Outcome { return Outcomes(files) }
	if got := f.ask(t, signed(release, f.url, deb)); got.State != protocol.UpdateInstalling {
		t.Errorf("got %+v, want installing", got)
	}
	leave := func(name string, second int64) {
		t.Helper()
		at := time.Unix(second, 0)
		if err := errors.Join(os.WriteFile(name, []byte("why"), 0o600), os.Chtimes(name, at, at)); err != nil {
			t.Fatal(err)
		}
		if got := f.Status(); got.State != files[name] || got.Detail != "why" {
			t.Errorf("at %d: got %+v, want %s", second, got, files[name])
		}
	}
	leave(rolledBack, 1000)
	leave(failed, 1001)
	leave(rolledBack, 1002)
	f.served = []byte("a repaired package")
	f.ask(t, signed(release, f.url, f.served))
	leave(failed, 990)
}

// TestInterruptedInstallationIsRepeated cuts the power while root installs a package: the next request of the cloud installs it
// again, twice.
func TestInterruptedInstallationIsRepeated(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for cut := 1; ; cut++ {
		if got := f.ask(t, signed(release, f.url, deb)); got.State != protocol.UpdateInstalling {
			t.Fatalf("got %+v, want installing", got)
		}
		if again := (&Updater{Dir: f.Dir, Version: f.Version, Log: f.Log}); cut == 1 {
			if again.Load(); again.Status().State != protocol.UpdateInstalling {
				t.Fatalf("before the installer has begun: got %+v, want installing", again.Status())
			}
		}
		if err := os.Remove(filepath.Join(f.Dir, requestFile)); err != nil { // the installer begins, then the power is cut
			t.Fatal(err)
		}
		f.Updater = &Updater{Dir: f.Dir, Version: f.Version, Architecture: f.Architecture, Keys: f.Keys, Log: f.Log}
		f.Load()
		f.Changed = func() { f.changed <- struct{}{} }
		if f.over(t, cut) {
			break
		}
	}
}

// over checks the update after a number of interrupted installations, and reports whether it has failed for good.
func (f *fixture) over(t *testing.T, interrupted int) bool {
	t.Helper()
	status, want := f.Status(), protocol.UpdateFetching
	if interrupted == maxInterrupted {
		want = protocol.UpdateFailed
	}
	if status.State != want || status.Detail == "" {
		t.Fatalf("after %d interruptions: got %+v, want %s", interrupted, status, want)
	}
	return want == protocol.UpdateFailed
}

// TestKilledInstallerIsNoticed kills root's part, as the kernel does without memory or systemd after its limit: the next request of the cloud
// begins the update again although the agent was not restarted, twice. While the installer works, nothing begins.
func TestKilledInstallerIsNoticed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Work = t.TempDir()
	m := signed(release, f.url, deb)
	changes := 0
	// await waits for a change after which the update is as it should be.
	await := func(is func() bool) {
		t.Helper()
		for !is() {
			select {
			case <-f.changed:
				changes++
			case <-time.After(5 * time.Second):
				t.Fatalf("it never happens; the update is %+v", f.Status())
			}
		}
	}
	idle := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.busy && Requested(f.Dir)
	}
	for killed := 1; ; killed++ {
		f.Ask(t.Context(), m)
		await(idle)
		installer, err := lock(f.Work, unix.LOCK_EX)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(f.Dir, requestFile)); err != nil {
			t.Fatal(err)
		}
		if f.Ask(t.Context(), m); f.Status().State != protocol.UpdateInstalling {
			t.Fatalf("while the installer works: got %+v, want installing", f.Status())
		}
		installer.Close() // its process has ended
		f.Ask(t.Context(), m)
		if f.over(t, killed) {
			break
		}
		f.mu.Lock()
		f.tried = f.tried.Add(-retryDelay)
		f.mu.Unlock()
	}
	await(func() bool { return changes == 3*maxInterrupted }) // each installation begins, is passed on and ends: all of it is stored
}

// TestPowerCutAfterTheRequest cuts the power when the request is on the card. The installer starts at boot, and the new version is rolled back:
// the package is not installed again.
func TestPowerCutAfterTheRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var stored []byte // when the request is there
	f.replace = func(name string, text []byte) error {
		err := write(name, text)
		if filepath.Base(name) == requestFile {
			stored, _ = os.ReadFile(filepath.Join(f.Dir, stateFile))
		}
		return err
	}
	m := signed(release, f.url, deb)
	f.ask(t, m)
	if err := os.Remove(filepath.Join(f.Dir, stateFile)); err != nil {
		t.Fatal(err)
	}
	if len(stored) > 0 {
		if err := os.WriteFile(filepath.Join(f.Dir, stateFile), stored, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(filepath.Join(f.Dir, requestFile)); err != nil { // by the installer
		t.Fatal(err)
	}
	again := &Updater{Dir: f.Dir, Version: f.Version, Architecture: f.Architecture, Keys: f.Keys, Log: f.Log,
		Outcomes: func() []Outcome { return []Outcome{{protocol.UpdateRolledBack, "it does not connect", 1}} }}
	again.Load()
	if again.Ask(t.Context(), m); again.busy || again.Status().State != protocol.UpdateRolledBack {
		t.Errorf("got %+v, want rolled-back", again.Status())
	}
}

// TestUpdateWithoutRecordIsNotRequested: on a card to which the state cannot be written, a version that is rolled back would be installed
// again and again.
func TestUpdateWithoutRecordIsNotRequested(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.replace = func(name string, text []byte) error {
		if filepath.Base(name) == stateFile {
			return syscall.ENOSPC
		}
		return write(name, text)
	}
	if got := f.ask(t, signed(release, f.url, deb)); got.State != protocol.UpdateFetching || !strings.Contains(got.Detail, "space") {
		t.Errorf("got %+v, want the reason", got)
	}
	if _, err := os.Stat(filepath.Join(f.Dir, requestFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the installer was asked: %v", err)
	}
}

// TestRestartDuringAnInstallation starts the agent again while root waits for the lock of dpkg, as other settings do: the installation is not
// interrupted. It was requested once more, and the next version was installed twice.
func TestRestartDuringAnInstallation(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	m, work := signed(release, f.url, deb), t.TempDir()
	f.ask(t, m)
	restarted := func() *Updater {
		u := &Updater{Dir: f.Dir, Work: work, Version: f.Version, Architecture: f.Architecture, Keys: f.Keys, Log: f.Log}
		u.Load()
		return u
	}
	err := Install(f.Dir, work, keys, func(string) error {
		u := restarted()
		if u.Ask(t.Context(), m); u.busy || u.Status().State != protocol.UpdateInstalling {
			t.Errorf("while it is installed: got %+v, want installing", u.Status())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := restarted().Status(); got.State != protocol.UpdateFetching || got.Detail == "" {
		t.Errorf("after a power cut: got %+v, want interrupted", got)
	}
}
