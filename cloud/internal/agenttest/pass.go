package agenttest

import (
	"crypto/rand"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/nacl/box"

	"github.com/yeolda/yeolda/protocol"
)

// sealKeys are the keys with which an agent receives the key of one-time codes; both are nil without keypads.
type sealKeys struct{ public, private *[32]byte }

func newSealKeys(t testing.TB) (k sealKeys) {
	t.Helper()
	var err error
	if k.public, k.private, err = box.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k sealKeys) announced() string {
	if k.public == nil {
		return ""
	}
	return base64.StdEncoding.EncodeToString(k.public[:])
}

// lease uses a pass list that a trusted key has signed, and acknowledges it.
func (a *Agent) lease(m protocol.PassList) {
	a.mu.Lock()
	faults, current := a.faults, a.list
	keys := slices.Clone(a.keys)
	a.mu.Unlock()
	older := m.Epoch < current.Epoch || m.Epoch == current.Epoch && m.Version < current.Version
	if faults.IgnoreLists || older || m.Branch != a.cfg.Branch || m.Verify(a.cfg.Username, keys...) != nil {
		return
	}
	var codeKey []byte
	if boxed, err := base64.StdEncoding.DecodeString(m.CodeKey); err == nil && a.sealed.public != nil {
		codeKey, _ = box.OpenAnonymous(nil, boxed, a.sealed.public, a.sealed.private)
	}
	a.note(func() { a.list, a.codeKey = m, codeKey })
	if !faults.HideLists {
		_ = a.Publish(protocol.PassApplied{Epoch: m.Epoch, Version: m.Version})
	}
}

// List returns the pass list in use.
func (a *Agent) List() protocol.PassList {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list
}

// Opens reports whether a PIN opens a door at a time, by the list in use.
func (a *Agent) Opens(device, pin string, at time.Time) (pass string, ok bool) {
	list := a.List()
	salt, err := base64.StdEncoding.DecodeString(list.KDF.Salt)
	if err != nil || !at.Before(list.LeaseUntil) || len(list.Passes) == 0 {
		return "", false
	}
	hash := base64.StdEncoding.EncodeToString(argon2.IDKey([]byte(pin), salt, list.KDF.Time, list.KDF.MemoryKiB, uint8(list.KDF.Threads), protocol.VerifierSize)) //nolint:gosec // at most 4
	for _, p := range list.Passes {
		if p.Verifier == hash && slices.Contains(p.Doors, device) && !at.Before(p.NotBefore) && at.Before(p.NotAfter) {
			return p.Pass, true
		}
	}
	return "", false
}

// Takes reports whether the agent takes a one-time code at a door at a time. It does not record the use.
func (a *Agent) Takes(device, code string, at time.Time) bool {
	a.mu.Lock()
	key := a.codeKey
	a.mu.Unlock()
	if key == nil || len(code) != protocol.CodeDigits {
		return false
	}
	now := protocol.Step(at)
	for step := now - 1; step <= now+1; step++ {
		if protocol.Code(key, a.cfg.Branch, protocol.CodeDevice(device), step, int(code[0]-'0')) == code {
			return true
		}
	}
	return false
}

// Enter appends an attempt to the agent's journal and returns it. It is sent with Publish.
func (a *Agent) Enter(e protocol.PassEntry) protocol.PassEntry {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.Journal, e.Entry = a.journal, uint64(len(a.entries)+1)
	if n := len(a.entries); n > 0 {
		e.Previous = a.entries[n-1].Hash
	}
	e.At = e.At.UTC().Truncate(time.Millisecond)
	e.Hash = e.Chain()
	a.entries = append(a.entries, e)
	return e
}

// Acked returns every acknowledgement of journal entries received so far.
func (a *Agent) Acked() []protocol.PassAck {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.acked)
}

// Beacons returns every beacon received so far.
func (a *Agent) Beacons() []protocol.Beacon {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.beacons)
}
