package protocol

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// The limits of passes: leased PINs and one-time codes that a guest types at a keypad of the agent (docs/specification.md, Keypads).
const (
	MaxPasses  = 2000
	PINDigits  = 6
	CodeDigits = 8

	// CodeStep is the length of a time step of the one-time codes. The agent accepts the current step, the previous one and the
	// one after it, so a code lives for at most two steps after it was made.
	CodeStep = time.Minute
	// CodesPerStep is the number of codes that one keypad, or all front keypads of a branch together, can accept per step.
	CodesPerStep = 10

	// CodeKeySize is the length of the key of the one-time codes in bytes, and VerifierSize that of a PIN's verifier.
	CodeKeySize  = 32
	VerifierSize = 32
)

const (
	sealKeySize   = 32                             // X25519 public key
	sealedKeySize = CodeKeySize + sealKeySize + 16 // NaCl anonymous box
	minSalt       = 16
	maxSalt       = 64
	// The largest cost of a PIN check that an agent accepts: about 2 s and 256 MiB on a small board.
	maxKDFTime    = 16
	maxKDFMemory  = 256 << 10
	maxKDFThreads = 4
)

// The domains of signatures and digests.
const (
	beaconDomain = "yeolda/v1 beacon"
	passDomain   = "yeolda/v1 passes" //nolint:gosec // a domain is no secret
	codeDomain   = "yeolda/v1 code"
	entryDomain  = "yeolda/v1 pass entry"
)

// Beacon is the cloud's time, signed with a grant key. It answers a Heartbeat with a nonce. The cloud read its clock after the
// agent sent that heartbeat and before the beacon arrived, so these two moments bound the error, however long the network
// delayed either message.
type Beacon struct {
	Branch    string    `json:"branch"`
	BootID    string    `json:"bootId"` // of the heartbeat
	Nonce     string    `json:"nonce"`  // of the heartbeat
	Time      time.Time `json:"time"`   // UTC, whole milliseconds
	Signature string    `json:"signature"`
}

// signed returns the bytes that the signature covers.
func (m Beacon) signed(username string) []byte {
	var b []byte
	for _, s := range []string{beaconDomain, m.Branch, username, m.BootID, m.Nonce} {
		b = appendField(b, s)
	}
	return appendTime(b, m.Time)
}

// Sign returns the beacon with its signature for the agent with this user name.
func (m Beacon) Sign(key ed25519.PrivateKey, username string) Beacon {
	m.Signature = sign(key, m.signed(username))
	return m
}

// Verify returns ErrSignature unless one of the keys has signed the beacon for the agent with this user name.
func (m Beacon) Verify(username string, keys ...ed25519.PublicKey) error {
	return verify(m.signed(username), m.Signature, keys)
}

// PassList holds the passes that one agent may accept. The cloud sends it to the active agent after every change, when the
// agent connects and every 15 minutes. The agent stores it before use and answers with PassApplied. It never goes back to a
// list of a lower epoch, or of the same epoch and a lower version; a list of the same epoch and version replaces the stored one
// if it was issued later.
//
// A list without passes revokes all of them; the cloud sends one to an agent that is no longer active.
type PassList struct {
	Branch     string    `json:"branch"`
	Epoch      uint64    `json:"epoch"`   // from 1
	Version    uint64    `json:"version"` // from 1
	IssuedAt   time.Time `json:"issuedAt"`
	LeaseUntil time.Time `json:"leaseUntil"` // no PIN of this list opens from then on
	KDF        KDF       `json:"kdf"`
	CodeEpoch  uint64    `json:"codeEpoch"`
	CodeKey    string    `json:"codeKey"` // of CodeKeySize bytes, sealed to Status.SealKey; empty: the agent has none, or may accept no codes
	Passes     []Pass    `json:"passes"`
	Signature  string    `json:"signature"` // Ed25519, base64url; see Sign
}

// Pass allows one PIN to open doors for a time. Times are UTC and have whole milliseconds.
type Pass struct {
	Pass      string    `json:"pass"` // UUID
	Doors     []string  `json:"doors"`
	NotBefore time.Time `json:"notBefore"`
	NotAfter  time.Time `json:"notAfter"` // the first moment at which it does not open
	Verifier  string    `json:"verifier"` // the KDF of the six digits, base64
}

// KDF is the memory-hard function that turns the six digits of a PIN (ASCII) into the verifier of a pass. One salt serves the
// whole list, so that the agent computes it once for each attempt.
type KDF struct {
	Name      string `json:"name"` // KDFArgon2id
	Time      uint32 `json:"time"`
	MemoryKiB uint32 `json:"memoryKiB"`
	Threads   uint32 `json:"threads"`
	Salt      string `json:"salt"` // 16 to 64 bytes, base64
}

// KDFArgon2id is Argon2id (RFC 9106).
const KDFArgon2id = "argon2id"

// signed returns the bytes that the signature covers: every field in order, behind the user name of the agent.
func (l PassList) signed(username string) []byte {
	b := make([]byte, 0, 512+192*len(l.Passes))
	for _, s := range []string{passDomain, l.Branch, username} {
		b = appendField(b, s)
	}
	b = binary.BigEndian.AppendUint64(b, l.Epoch)
	b = binary.BigEndian.AppendUint64(b, l.Version)
	b = appendTime(appendTime(b, l.IssuedAt), l.LeaseUntil)
	b = appendField(b, l.KDF.Name)
	for _, n := range []uint32{l.KDF.Time, l.KDF.MemoryKiB, l.KDF.Threads} {
		b = binary.BigEndian.AppendUint32(b, n)
	}
	b = appendField(b, l.KDF.Salt)
	b = binary.BigEndian.AppendUint64(b, l.CodeEpoch)
	b = appendField(b, l.CodeKey)
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Passes)))
	for _, p := range l.Passes {
		b = appendField(b, p.Pass)
		b = binary.BigEndian.AppendUint32(b, uint32(len(p.Doors)))
		for _, device := range p.Doors {
			b = appendField(b, device)
		}
		b = appendTime(appendTime(b, p.NotBefore), p.NotAfter)
		b = appendField(b, p.Verifier)
	}
	return b
}

// Sign returns the list with its signature for the agent with this user name.
func (l PassList) Sign(key ed25519.PrivateKey, username string) PassList {
	l.Signature = sign(key, l.signed(username))
	return l
}

// Verify returns ErrSignature unless one of the keys has signed the list for the agent with this user name.
func (l PassList) Verify(username string, keys ...ed25519.PublicKey) error {
	return verify(l.signed(username), l.Signature, keys)
}

// PassApplied reports the list that the agent uses from now on: no earlier list opens a door any more, not even for an attempt
// that began before.
type PassApplied struct {
	Epoch   uint64 `json:"epoch"`
	Version uint64 `json:"version"`
}

// AppliedPasses is the state of the passes in a status.
type AppliedPasses struct {
	Epoch   uint64     `json:"epoch"` // 0: no list
	Version uint64     `json:"version"`
	Clock   ClockState `json:"clock"`
}

// ClockState describes whether the agent knows the time.
type ClockState string

// The states of the agent's clock. While it is untrusted, the agent rejects every pass.
const (
	ClockTrusted   ClockState = "trusted"
	ClockUntrusted ClockState = "untrusted"
)

// Source is what a guest typed at the keypad.
type Source string

// The sources.
const (
	SourceCode Source = "code"
	SourcePIN  Source = "pin"
)

// EntryOutcome is the result of an attempt at a keypad.
type EntryOutcome string

// The outcomes of an attempt.
const (
	EntryOpened  EntryOutcome = "opened"
	EntryFailed  EntryOutcome = "failed"  // the pass was right, and the agent knows that the door did not open
	EntryRefused EntryOutcome = "refused" // see the reasons
	EntryUnknown EntryOutcome = "unknown" // the pass was right, and the agent ended before it knew the result of the drive
)

// The reasons of refused entries. Those of failed entries are details of the hardware.
const (
	ReasonWrong     = "wrong"           // no pass and no code
	ReasonTooEarly  = "too-early"       // of a PIN
	ReasonTooLate   = "too-late"        // of a PIN
	ReasonOtherDoor = "other-door"      // a PIN of another room
	ReasonUsed      = "used"            // a code that has opened a door before
	ReasonLockedOut = "locked-out"      // a wrong attempt that locked the keypad; attempts during a lock-out leave no entry
	ReasonNoClock   = "clock-untrusted" // the agent does not know the time
	ReasonNoList    = "no-list"         // the agent has no pass list, or its lease has ended
	ReasonBusy      = "busy"            // the agent could not finish in time
	ReasonStorage   = "storage"         // the journal could not be written
)

// PassEntry is an entry of the agent's journal: one attempt at a keypad. The agent repeats it until a PassAck covers it, so the
// cloud ignores duplicates (journal, entry). Entries are numbered without gaps and chained by their hashes, so a missing or changed
// entry is noticed. A gap means that the bounded journal dropped entries that were never acknowledged.
type PassEntry struct {
	Journal  string       `json:"journal"`        // random, new with each journal file
	Entry    uint64       `json:"entry"`          // from 1
	Pass     string       `json:"pass,omitempty"` // empty for a code, and if no pass matches
	Device   string       `json:"device"`
	At       time.Time    `json:"at"` // by the agent's pass clock; by its system clock with ReasonNoClock
	Outcome  EntryOutcome `json:"outcome"`
	Reason   string       `json:"reason"` // of a refusal or failure
	Source   Source       `json:"source"`
	Previous string       `json:"previous"` // hash of the previous entry; empty for the first
	Hash     string       `json:"hash"`     // see Chain
}

// Chain returns the hash of an entry: SHA-256 over every other field, base64url without padding.
func (e PassEntry) Chain() string {
	b := appendField(appendField(nil, entryDomain), e.Journal)
	b = binary.BigEndian.AppendUint64(b, e.Entry)
	b = appendTime(appendField(appendField(b, e.Pass), e.Device), e.At)
	for _, s := range []string{string(e.Outcome), e.Reason, string(e.Source), e.Previous} {
		b = appendField(b, s)
	}
	sum := sha256.Sum256(b)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// PassAck acknowledges that every entry of this journal up to Entry is stored.
type PassAck struct {
	Journal string `json:"journal"`
	Entry   uint64 `json:"entry"`
}

// FrontDoors is the device of codes for the front doors: each front keypad of a branch accepts them, once in all.
const FrontDoors = "front"

// CodeDevice returns the device for which codes of a keypad are made: FrontDoors, or the device itself.
func CodeDevice(device string) string {
	if kind, _, err := ParseDevice(device); err == nil && kind == DoorFront {
		return FrontDoors
	}
	return device
}

// Step returns the time step of a moment.
func Step(at time.Time) uint64 { return uint64(max(at.Unix(), 0)) / uint64(CodeStep/time.Second) }

// Code returns the one-time code of a device (see CodeDevice) in a time step: the digit i (0 to 9), which distinguishes the codes
// of one step, and seven digits of an HMAC (RFC 2104) with SHA-256 over the domain, branch, device, step and i.
func Code(key []byte, branch, device string, step uint64, i int) string {
	mac := hmac.New(sha256.New, key)
	b := appendField(appendField(appendField(nil, codeDomain), branch), device)
	b = append(binary.BigEndian.AppendUint64(b, step), byte(i))
	mac.Write(b)
	return fmt.Sprintf("%d%07d", i, binary.BigEndian.Uint64(mac.Sum(nil))%10_000_000)
}

func appendTime(b []byte, t time.Time) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(t.UnixMilli()))
}

// Kind implements Message.
func (Beacon) Kind() Kind { return KindBeacon }

// Kind implements Message.
func (PassList) Kind() Kind { return KindPassList }

// Kind implements Message.
func (PassApplied) Kind() Kind { return KindPassApplied }

// Kind implements Message.
func (PassEntry) Kind() Kind { return KindPassEntry }

// Kind implements Message.
func (PassAck) Kind() Kind { return KindPassAck }

// Validate checks the form of a beacon. Verify checks the signature.
func (m Beacon) Validate() error {
	return errors.Join(checkBranch(m.Branch), checkBootID(m.BootID), checkNonce(m.Nonce), checkTime("time", m.Time), checkSignature(m.Signature))
}

// Validate checks the form of a list. Verify checks the signature.
func (l PassList) Validate() error {
	err := errors.Join(checkBranch(l.Branch), checkTime("issuedAt", l.IssuedAt), checkTime("leaseUntil", l.LeaseUntil),
		l.KDF.validate(), checkSignature(l.Signature))
	if l.Epoch == 0 || l.Version == 0 {
		err = errors.Join(err, errors.New("epoch or version is 0"))
	}
	if l.CodeKey != "" {
		err = errors.Join(err, checkBytes("codeKey", l.CodeKey, sealedKeySize))
	}
	if len(l.Passes) > MaxPasses {
		return errors.Join(err, fmt.Errorf("passes has %d entries, want at most %d", len(l.Passes), MaxPasses))
	}
	seen := make(map[string]struct{}, len(l.Passes))
	for _, p := range l.Passes {
		if passErr := p.validate(); passErr != nil {
			return errors.Join(err, fmt.Errorf("pass %q: %w", Clip(p.Pass), passErr))
		}
		if _, twice := seen[p.Pass]; twice {
			return errors.Join(err, fmt.Errorf("pass %q is listed more than once", p.Pass))
		}
		seen[p.Pass] = struct{}{}
	}
	return err
}

func (p Pass) validate() error {
	err := errors.Join(checkUUID("pass", p.Pass), checkDoors(p.Doors), checkTime("notBefore", p.NotBefore), checkTime("notAfter", p.NotAfter),
		checkBytes("verifier", p.Verifier, VerifierSize))
	if !p.NotBefore.Before(p.NotAfter) {
		err = errors.Join(err, errors.New("notAfter is not later than notBefore"))
	}
	return err
}

func (k KDF) validate() error {
	if k.Name != KDFArgon2id {
		return fmt.Errorf("kdf %q is unknown", Clip(k.Name))
	}
	if k.Time < 1 || k.Time > maxKDFTime || k.Threads < 1 || k.Threads > maxKDFThreads || k.MemoryKiB < 8*k.Threads || k.MemoryKiB > maxKDFMemory {
		return fmt.Errorf("kdf has time %d, memoryKiB %d and threads %d", k.Time, k.MemoryKiB, k.Threads)
	}
	salt, err := base64.StdEncoding.Strict().DecodeString(k.Salt)
	if err != nil || len(salt) < minSalt || len(salt) > maxSalt {
		return fmt.Errorf("salt is not %d to %d bytes in base64", minSalt, maxSalt)
	}
	return nil
}

// Validate implements Message.
func (m PassApplied) Validate() error {
	if m.Epoch == 0 || m.Version == 0 {
		return errors.New("epoch or version is 0")
	}
	return nil
}

func (m AppliedPasses) validate() error {
	if m.Clock != ClockTrusted && m.Clock != ClockUntrusted {
		return fmt.Errorf("clock %q is unknown", Clip(string(m.Clock)))
	}
	return nil
}

// Validate implements Message. It does not check the hash, so that the cloud can record an entry whose chain is broken.
func (e PassEntry) Validate() error {
	var err error
	switch e.Outcome {
	case EntryOpened, EntryFailed, EntryRefused, EntryUnknown:
	default:
		err = fmt.Errorf("outcome %q is unknown", Clip(string(e.Outcome)))
	}
	if e.Source != SourceCode && e.Source != SourcePIN {
		err = errors.Join(err, fmt.Errorf("source %q is unknown", Clip(string(e.Source))))
	}
	if e.Entry == 0 {
		err = errors.Join(err, errors.New("entry is 0"))
	}
	if e.Pass != "" {
		err = errors.Join(err, checkUUID("pass", e.Pass))
	}
	if e.Previous != "" {
		err = errors.Join(err, checkHash("previous", e.Previous))
	}
	_, _, deviceErr := ParseDevice(e.Device)
	return errors.Join(err, deviceErr, checkNonce(e.Journal), checkTime("at", e.At), checkText("reason", e.Reason, maxDetail, false),
		checkHash("hash", e.Hash))
}

// Validate implements Message.
func (m PassAck) Validate() error {
	if m.Entry == 0 {
		return errors.New("entry is 0")
	}
	return checkNonce(m.Journal)
}

func checkBranch(branch string) error {
	if !ValidBranch(branch) {
		return errors.New("branch is not a branch code")
	}
	return nil
}

func checkSignature(text string) error {
	if len(text) != signatureLen {
		return fmt.Errorf("signature is not %d characters long", signatureLen)
	}
	return nil
}

// checkTime accepts the times that signatures cover completely: whole milliseconds of this century.
func checkTime(name string, t time.Time) error {
	if y := t.Year(); y < 2000 || y > 2099 || !t.Equal(t.Truncate(time.Millisecond)) {
		return fmt.Errorf("%s is not a time of this century in whole milliseconds", name)
	}
	return nil
}

// checkBytes checks that a text encodes so many bytes in base64 (standard, with padding).
func checkBytes(name, text string, size int) error {
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != size || len(text) != base64.StdEncoding.EncodedLen(size) {
		return fmt.Errorf("%s is not %d bytes in base64", name, size)
	}
	return nil
}

// checkHash checks that a text is a SHA-256 digest in base64url without padding.
func checkHash(name, text string) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != sha256.Size || len(text) != base64.RawURLEncoding.EncodedLen(sha256.Size) {
		return fmt.Errorf("%s is not a SHA-256 digest in base64url", name)
	}
	return nil
}
