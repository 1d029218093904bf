package pass

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/curve25519"
	"golang.org/x/crypto/nacl/box"

	"github.com/yeolda/yeolda/protocol"
)

const (
	listFile = "list.json"
	sealFile = "seal.json"
)

// errOldList is returned for a list that is not newer than the one in use.
var errOldList = errors.New("the list is not newer than the one in use")

// list is a pass list in use. inFlight counts the attempts that it judges and that may still open a door.
type list struct {
	protocol.PassList
	salt      []byte
	verifiers [][]byte
	codeKey   []byte // nil: no codes
	inFlight  sync.WaitGroup
}

// newList prepares a verified list.
func newList(m protocol.PassList, seal sealKey) (*list, error) {
	l := &list{PassList: m}
	var err error
	if l.salt, err = base64.StdEncoding.DecodeString(m.KDF.Salt); err != nil {
		return nil, fmt.Errorf("salt: %w", err)
	}
	for _, p := range m.Passes {
		verifier, err := base64.StdEncoding.DecodeString(p.Verifier)
		if err != nil {
			return nil, fmt.Errorf("pass %s: %w", p.Pass, err)
		}
		l.verifiers = append(l.verifiers, verifier)
	}
	if m.CodeKey != "" {
		if l.codeKey, err = seal.open(m.CodeKey); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// newerThan reports whether the list may replace another one.
func (l *list) newerThan(old *list) bool {
	switch {
	case l.Epoch != old.Epoch:
		return l.Epoch > old.Epoch
	case l.Version != old.Version:
		return l.Version > old.Version
	}
	return l.IssuedAt.After(old.IssuedAt)
}

// matches returns the passes with this PIN. It takes as long for a wrong PIN as for a right one.
func (l *list) matches(pin string) []protocol.Pass {
	if len(pin) != protocol.PINDigits {
		return nil
	}
	hash := argon2.IDKey([]byte(pin), l.salt, l.KDF.Time, l.KDF.MemoryKiB, uint8(l.KDF.Threads), protocol.VerifierSize) //nolint:gosec // Validate limits Threads to 4
	var found []protocol.Pass
	for i, verifier := range l.verifiers {
		if subtle.ConstantTimeCompare(hash, verifier) == 1 {
			found = append(found, l.Passes[i])
		}
	}
	return found
}

// storedList is the content of the list's file. A list belongs to one credential: a new enrolment starts without passes.
type storedList struct {
	Username string            `json:"username"`
	List     protocol.PassList `json:"list"`
}

// loadList returns the stored list, or nil if there is none for this credential. verify checks its signature. If the seal key was lost, it
// returns errSealed with a list of PINs without codes.
func loadList(disk Disk, username string, seal sealKey, verify func(protocol.PassList) error) (*list, error) {
	data, err := disk.Read(listFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no list is no error
	}
	if err != nil {
		return nil, fmt.Errorf("pass list: %w", err)
	}
	var stored storedList
	if err := json.Unmarshal(data, &stored); err != nil {
		return nil, fmt.Errorf("pass list: %w", err)
	}
	if stored.Username != username {
		return nil, nil //nolint:nilnil // no list is no error
	}
	if err := errors.Join(stored.List.Validate(), verify(stored.List)); err != nil {
		return nil, fmt.Errorf("pass list: %w", err)
	}
	l, err := newList(stored.List, seal)
	if errors.Is(err, errSealed) {
		stored.List.CodeKey = ""
		l, _ = newList(stored.List, seal)
	}
	return l, err
}

func storeList(disk Disk, username string, m protocol.PassList) error {
	data, err := json.Marshal(storedList{username, m})
	if err != nil {
		return err
	}
	return disk.Replace(listFile, data)
}

// sealKey is the X25519 key to which the cloud seals the key of the codes. It never leaves the machine.
type sealKey struct{ public, private [32]byte }

func (k sealKey) store(disk Disk, username string) error {
	data, err := json.Marshal(storedSealKey{username, base64.StdEncoding.EncodeToString(k.private[:])})
	if err != nil {
		return err
	}
	return disk.Replace(sealFile, data)
}

type storedSealKey struct {
	Username string `json:"username"`
	Private  string `json:"private"`
}

// loadSealKey returns the key of this credential; a new credential gets a new one, also if it cannot be stored.
func loadSealKey(disk Disk, username string) (sealKey, error) {
	var stored storedSealKey
	if data, err := disk.Read(sealFile); err == nil && json.Unmarshal(data, &stored) == nil && stored.Username == username {
		if private, err := base64.StdEncoding.DecodeString(stored.Private); err == nil && len(private) == 32 {
			public, err := curve25519.X25519(private, curve25519.Basepoint)
			if err != nil {
				return sealKey{}, fmt.Errorf("seal key: %w", err)
			}
			return sealKey{[32]byte(public), [32]byte(private)}, nil
		}
	}
	public, private, err := box.GenerateKey(rand.Reader)
	if err != nil {
		return sealKey{}, fmt.Errorf("seal key: %w", err)
	}
	key := sealKey{*public, *private}
	return key, key.store(disk, username)
}

// errSealed is returned for a key of the codes that this agent cannot open.
var errSealed = errors.New("code key: it is not sealed to the key of this agent")

func (k sealKey) open(text string) ([]byte, error) {
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("code key: %w", err)
	}
	key, ok := box.OpenAnonymous(nil, sealed, &k.public, &k.private)
	if !ok || len(key) != protocol.CodeKeySize {
		return nil, errSealed
	}
	return key, nil
}

// window returns why a pass does not open now, or "" and how long it still does.
func window(p protocol.Pass, now Span) (reason string, left time.Duration) {
	switch {
	case now.Earliest.Before(p.NotBefore):
		return protocol.ReasonTooEarly, 0
	case !now.Latest.Before(p.NotAfter):
		return protocol.ReasonTooLate, 0
	}
	return "", p.NotAfter.Sub(now.Latest)
}
