package protocol

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const sampleUsername = "agent-gangnam-x3"

var sampleTime = time.Date(2026, 11, 21, 9, 30, 0, 250e6, time.UTC)

func sampleBeacon() Beacon {
	return Beacon{Branch: "gangnam", BootID: "b1", Nonce: sampleNonce, Time: sampleTime}.Sign(sampleKey, sampleUsername)
}

func samplePasses() PassList {
	return PassList{
		Branch: "gangnam", Epoch: 3, Version: 14, IssuedAt: sampleTime, LeaseUntil: sampleTime.Add(12 * time.Hour),
		KDF:       KDF{Name: KDFArgon2id, Time: 2, MemoryKiB: 32 << 10, Threads: 4, Salt: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{5}, 16))},
		CodeEpoch: 2, CodeKey: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{6}, sealedKeySize)),
		Passes: []Pass{
			samplePass(0, "front_1", "room_3"),
			samplePass(1, "front_1", "room_4"),
		},
	}.Sign(sampleKey, sampleUsername)
}

func samplePass(n int, doors ...string) Pass {
	return Pass{
		Pass: fmt.Sprintf("%08x%s", n, sampleRequest[8:]), Doors: doors, NotBefore: sampleTime, NotAfter: sampleTime.Add(time.Hour),
		Verifier: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{byte(n)}, VerifierSize)),
	}
}

func sampleEntry() PassEntry {
	e := PassEntry{Journal: sampleNonce, Entry: 7, Pass: sampleRequest, Device: "room_3", At: sampleTime, Outcome: EntryOpened, Source: SourcePIN,
		Previous: strings.Repeat("A", 43)}
	e.Hash = e.Chain()
	return e
}

// TestPassSignaturesCoverEveryField checks that a change of any field, and the name of another agent, invalidates a signature.
func TestPassSignaturesCoverEveryField(t *testing.T) {
	t.Parallel()
	if err := errors.Join(sampleBeacon().Verify(sampleUsername, public(sampleKey)), samplePasses().Verify(sampleUsername, public(sampleKey))); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Beacon){
		"branch":    func(m *Beacon) { m.Branch = "hongdae" },
		"boot":      func(m *Beacon) { m.BootID = "b2" },
		"nonce":     func(m *Beacon) { m.Nonce = NewNonce() },
		"time":      func(m *Beacon) { m.Time = m.Time.Add(time.Millisecond) },
		"signature": func(m *Beacon) { m.Signature = samplePasses().Signature },
	} {
		m := sampleBeacon()
		change(&m)
		if err := m.Verify(sampleUsername, public(sampleKey)); !errors.Is(err, ErrSignature) {
			t.Errorf("beacon: %s changed: %v, want ErrSignature", name, err)
		}
	}
	for name, change := range map[string]func(*PassList){
		"branch":     func(l *PassList) { l.Branch = "hongdae" },
		"epoch":      func(l *PassList) { l.Epoch++ },
		"version":    func(l *PassList) { l.Version++ },
		"issued":     func(l *PassList) { l.IssuedAt = l.IssuedAt.Add(time.Millisecond) },
		"lease":      func(l *PassList) { l.LeaseUntil = l.LeaseUntil.Add(time.Millisecond) },
		"kdf":        func(l *PassList) { l.KDF.Name = "argon2i" },
		"kdf time":   func(l *PassList) { l.KDF.Time++ },
		"kdf memory": func(l *PassList) { l.KDF.MemoryKiB-- },
		"threads":    func(l *PassList) { l.KDF.Threads-- },
		"salt":       func(l *PassList) { l.KDF.Salt = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 16)) },
		"code epoch": func(l *PassList) { l.CodeEpoch++ },
		"code key":   func(l *PassList) { l.CodeKey = "" },
		"a pass":     func(l *PassList) { l.Passes = l.Passes[:1] },
		"order":      func(l *PassList) { l.Passes[0], l.Passes[1] = l.Passes[1], l.Passes[0] },
		"pass id":    func(l *PassList) { l.Passes[0].Pass = sampleRequest },
		"a door":     func(l *PassList) { l.Passes[0].Doors = l.Passes[0].Doors[:1] },
		"begin":      func(l *PassList) { l.Passes[0].NotBefore = l.Passes[0].NotBefore.Add(-time.Millisecond) },
		"end":        func(l *PassList) { l.Passes[0].NotAfter = l.Passes[0].NotAfter.Add(time.Millisecond) },
		"verifier":   func(l *PassList) { l.Passes[0].Verifier = l.Passes[1].Verifier },
	} {
		l := samplePasses()
		change(&l)
		if err := l.Verify(sampleUsername, public(sampleKey)); !errors.Is(err, ErrSignature) {
			t.Errorf("list: %s changed: %v, want ErrSignature", name, err)
		}
	}
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	for name, err := range map[string]error{
		"beacon of another agent": sampleBeacon().Verify("agent-gangnam", public(sampleKey)),
		"list of another agent":   samplePasses().Verify("agent-gangnam", public(sampleKey)),
		"beacon of another key":   sampleBeacon().Verify(sampleUsername, public(other)),
		"list of another key":     samplePasses().Verify(sampleUsername, public(other)),
	} {
		if !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v, want ErrSignature", name, err)
		}
	}
}

// TestPassSignedGolden keeps the signed bytes: an agent of another version must verify them.
func TestPassSignedGolden(t *testing.T) {
	t.Parallel()
	for file, signed := range map[string][]byte{
		"testdata/beacon.signed.hex": sampleBeacon().signed(sampleUsername), "testdata/pass-list.signed.hex": samplePasses().signed(sampleUsername),
	} {
		got := hex.EncodeToString(signed) + "\n"
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: signed bytes are now\n%swere\n%s", file, got, want)
		}
	}
}

// TestEntryChainCoversEveryField checks that no field of an entry can change without its hash.
func TestEntryChainCoversEveryField(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*PassEntry){
		"journal":  func(e *PassEntry) { e.Journal = NewNonce() },
		"entry":    func(e *PassEntry) { e.Entry++ },
		"pass":     func(e *PassEntry) { e.Pass = "" },
		"device":   func(e *PassEntry) { e.Device = "room_4" },
		"at":       func(e *PassEntry) { e.At = e.At.Add(time.Millisecond) },
		"outcome":  func(e *PassEntry) { e.Outcome = EntryFailed },
		"reason":   func(e *PassEntry) { e.Reason = "x" },
		"source":   func(e *PassEntry) { e.Source = SourceCode },
		"previous": func(e *PassEntry) { e.Previous = "" },
	} {
		e := sampleEntry()
		change(&e)
		if e.Chain() == e.Hash {
			t.Errorf("%s changed, and the hash is the same", name)
		}
	}
}

// TestCodeVectors keeps the digits: the cloud makes a code, and an agent of another version must accept it.
func TestCodeVectors(t *testing.T) {
	t.Parallel()
	key := bytes.Repeat([]byte{0x2a}, CodeKeySize)
	step := Step(time.Date(2026, 11, 21, 9, 30, 59, 999e6, time.UTC))
	var got strings.Builder
	for _, v := range []struct {
		branch, device string
		step           uint64
		i              int
	}{
		{"gangnam", FrontDoors, step, 0}, {"gangnam", FrontDoors, step, 9}, {"gangnam", "room_3", step, 0}, {"gangnam", "room_3", step + 1, 0},
		{"hongdae", "room_3", step, 0}, {"gangnam", "room_3", 0, 4},
	} {
		code := Code(key, v.branch, v.device, v.step, v.i)
		fmt.Fprintf(&got, "%s %s %d %d %s\n", v.branch, v.device, v.step, v.i, code)
		mac := hmac.New(sha256.New, key) // independently of appendField
		for _, s := range []string{"yeolda/v1 code", v.branch, v.device} {
			mac.Write([]byte{0, 0, 0, byte(len(s))})
			mac.Write([]byte(s))
		}
		mac.Write([]byte{0, 0, 0, 0, byte(v.step >> 24), byte(v.step >> 16), byte(v.step >> 8), byte(v.step), byte(v.i)})
		n := binary.BigEndian.Uint64(mac.Sum(nil)[:8]) % 10_000_000
		if want := strconv.Itoa(v.i) + fmt.Sprintf("%07d", n); code != want {
			t.Errorf("%+v: code %s, want %s", v, code, want)
		}
	}
	const file = "testdata/codes.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("codes are now\n%swere\n%s", got.String(), want)
	}
}

func TestCodeDevice(t *testing.T) {
	t.Parallel()
	for device, want := range map[string]string{"front_1": FrontDoors, "front_2": FrontDoors, "room_1": "room_1", "room_12": "room_12"} {
		if got := CodeDevice(device); got != want {
			t.Errorf("CodeDevice(%s) = %s, want %s", device, got, want)
		}
	}
}

func TestPassesOutOfForm(t *testing.T) {
	t.Parallel()
	list := func(change func(*PassList)) Message {
		l := samplePasses()
		change(&l)
		return l
	}
	entry := func(change func(*PassEntry)) Message {
		e := sampleEntry()
		change(&e)
		return e
	}
	withPass := func(change func(*Pass)) Message { return list(func(l *PassList) { change(&l.Passes[0]) }) }
	status := func(change func(*Status)) Message {
		s := online(Inventory{})
		change(&s)
		return s
	}
	beacon := func(change func(*Beacon)) Message {
		m := sampleBeacon()
		change(&m)
		return m
	}
	for name, m := range map[string]Message{
		"a beacon of no branch":        beacon(func(m *Beacon) { m.Branch = "+" }),
		"a beacon without a time":      beacon(func(m *Beacon) { m.Time = time.Time{} }),
		"a beacon in microseconds":     beacon(func(m *Beacon) { m.Time = m.Time.Add(time.Microsecond) }),
		"an unsigned beacon":           beacon(func(m *Beacon) { m.Signature = "" }),
		"a beacon of no heartbeat":     beacon(func(m *Beacon) { m.Nonce = "" }),
		"a beacon of no boot":          beacon(func(m *Beacon) { m.BootID = "" }),
		"a heartbeat of a short nonce": Heartbeat{BootID: "b", Nonce: "x"},
		"epoch 0":                      list(func(l *PassList) { l.Epoch = 0 }),
		"version 0":                    list(func(l *PassList) { l.Version = 0 }),
		"an unsigned list":             list(func(l *PassList) { l.Signature = "" }),
		"a list without a lease":       list(func(l *PassList) { l.LeaseUntil = time.Time{} }),
		"another kdf":                  list(func(l *PassList) { l.KDF.Name = "scrypt" }),
		"a kdf of no time":             list(func(l *PassList) { l.KDF.Time = 0 }),
		"a kdf of too much memory":     list(func(l *PassList) { l.KDF.MemoryKiB = 256<<10 + 1 }),
		"a kdf of too little memory":   list(func(l *PassList) { l.KDF.MemoryKiB = 8*l.KDF.Threads - 1 }),
		"a short salt":                 list(func(l *PassList) { l.KDF.Salt = base64.StdEncoding.EncodeToString(make([]byte, 15)) }),
		"a code key in clear":          list(func(l *PassList) { l.CodeKey = base64.StdEncoding.EncodeToString(make([]byte, 32)) }),
		"a pass twice":                 list(func(l *PassList) { l.Passes[1].Pass = l.Passes[0].Pass }),
		"a pass of no door":            withPass(func(p *Pass) { p.Doors = nil }),
		"a pass of an unknown door":    withPass(func(p *Pass) { p.Doors = []string{"roof_1"} }),
		"a pass that ends at once":     withPass(func(p *Pass) { p.NotAfter = p.NotBefore }),
		"a pass without an id":         withPass(func(p *Pass) { p.Pass = "" }),
		"a pass of a PIN in clear":     withPass(func(p *Pass) { p.Verifier = "482913" }),
		"applied nothing":              PassApplied{Version: 1},
		"an unknown outcome":           entry(func(e *PassEntry) { e.Outcome = "open" }),
		"an unknown source":            entry(func(e *PassEntry) { e.Source = "remote" }),
		"entry 0":                      entry(func(e *PassEntry) { e.Entry = 0 }),
		"an entry of no journal":       entry(func(e *PassEntry) { e.Journal = "" }),
		"an entry of no door":          entry(func(e *PassEntry) { e.Device = FrontDoors }),
		"an entry without a hash":      entry(func(e *PassEntry) { e.Hash = "" }),
		"an entry of a short chain":    entry(func(e *PassEntry) { e.Previous = "AAAA" }),
		"an entry of a long reason":    entry(func(e *PassEntry) { e.Reason = letters(241) }),
		"an ack of entry 0":            PassAck{Journal: sampleNonce},
		"an ack of no journal":         PassAck{Entry: 1},
		"a short seal key":             status(func(s *Status) { s.SealKey = "AAAA" }),
		"an unknown clock":             status(func(s *Status) { s.Passes = &AppliedPasses{Clock: "sundial"} }),
		"a keypad of no door":          online(Inventory{Keypads: []string{"front"}}),
		"a keypad twice":               online(Inventory{Keypads: []string{"front_1", "front_1"}}),
	} {
		if m.Validate() == nil {
			t.Errorf("%s is allowed", name)
		}
	}
}

// TestEmptyPassList checks the list of a branch without reservations.
func TestEmptyPassList(t *testing.T) {
	t.Parallel()
	l := samplePasses()
	l.Passes = nil
	l = l.Sign(sampleKey, sampleUsername)
	if err := errors.Join(l.Validate(), l.Verify(sampleUsername, public(sampleKey))); err != nil {
		t.Error(err)
	}
}

// TestLargestPassList checks that a full list fits, and that no other kind of message may be as large.
func TestLargestPassList(t *testing.T) {
	t.Parallel()
	of := func(n int) PassList {
		l := samplePasses()
		l.Passes = many(n, func(i int) Pass { return samplePass(i, "front_1", "front_2", fmt.Sprintf("room_%d", i+1)) })
		return l.Sign(sampleKey, sampleUsername)
	}
	payload, err := Encode(of(MaxPasses))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode[PassList](payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Verify(sampleUsername, public(sampleKey)); err != nil {
		t.Error(err)
	}
	if _, err := Encode(of(MaxPasses + 1)); err == nil {
		t.Error("a longer list was encoded")
	}
	if _, err := Decode[Ask](payload); !errors.Is(err, ErrTooLarge) {
		t.Errorf("an ask of that size: %v, want ErrTooLarge", err)
	}
}
