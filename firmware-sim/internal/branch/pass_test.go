package branch_test

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/nacl/box"

	"github.com/yeolda/yeolda/firmware-sim/internal/cloudtest"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/protocol"
)

const (
	pin      = "482913"
	earlyPIN = "375914"
)

// TestPasses opens doors with a PIN and a one-time code, with the network cut, across restarts of the machine with and without
// a hardware clock, and with the system clock set by an hour.
func TestPasses(t *testing.T) {
	t.Parallel()
	s := run(t)
	codeKey := bytes.Repeat([]byte{7}, protocol.CodeKeySize)
	s.sendPasses(1, codeKey)

	s.types("room_2", pin+"#", "other-door")
	s.types("room_1", earlyPIN+"#", "too-early")
	s.types("room_1", "0"+pin+"*"+pin+"#", "opened")
	code := func(device string, i int) string {
		return protocol.Code(codeKey, name, protocol.CodeDevice(device), protocol.Step(time.Now()), i)
	}
	front := code("front_1", 3)
	s.types("front_2", front+"#", "opened")
	s.types("front_1", front+"#", "used")
	s.wantSources("room_1", "pin", "front_2", "code")

	s.fault(fault.Fault{Kind: fault.NetworkCut})
	s.fault(fault.Fault{Kind: fault.ClockStep, Seconds: 3600})
	s.types("room_1", earlyPIN+"#", "too-early")
	s.types("room_1", pin+"#", "opened")
	s.fault(fault.Fault{Kind: fault.Reboot, HardwareClock: true})
	s.types("room_1", pin+"#", "opened")
	s.fault(fault.Fault{Kind: fault.Reboot})
	s.types("room_1", pin+"#", "clock-untrusted")
	s.ClearFaults()
	s.until("online again", func() bool { return s.State().Online })
	s.types("room_1", pin+"#", "opened")

	s.sendPasses(2, nil) // the guest's pass is revoked
	s.types("room_1", pin+"#", "wrong")
	s.types("front_1", code("front_1", 4)+"#", "no-list")
}

// sendPasses sends a list until the agent has applied it. A list without a key of the codes has no pass either.
func (s *scene) sendPasses(version uint64, codeKey []byte) {
	s.t.Helper()
	now := time.Now().UTC().Truncate(time.Millisecond)
	kdf := protocol.KDF{Name: protocol.KDFArgon2id, Time: 1, MemoryKiB: 64, Threads: 1, Salt: base64.StdEncoding.EncodeToString(make([]byte, 16))}
	l := protocol.PassList{Branch: name, Epoch: 1, Version: version, IssuedAt: now, LeaseUntil: now.Add(12 * time.Hour), KDF: kdf}
	if codeKey != nil {
		status := s.cloud.Status(name, protocol.Online, time.Time{}, testTimeout)
		public, err := base64.StdEncoding.DecodeString(status.SealKey)
		if err != nil || len(public) != 32 || !slices.Contains(status.Inventory.Keypads, "room_1") {
			s.t.Fatalf("the status has seal key %q and keypads %v", status.SealKey, status.Inventory.Keypads)
		}
		sealed, err := box.SealAnonymous(nil, codeKey, (*[32]byte)(public), rand.Reader)
		if err != nil {
			s.t.Fatal(err)
		}
		l.CodeKey = base64.StdEncoding.EncodeToString(sealed)
		for i, digits := range []string{pin, earlyPIN} {
			begin := now.Add(time.Duration(i)*30*time.Minute - time.Minute)
			hash := argon2.IDKey([]byte(digits), make([]byte, 16), kdf.Time, kdf.MemoryKiB, uint8(kdf.Threads), protocol.VerifierSize)
			l.Passes = append(l.Passes, protocol.Pass{Pass: []string{"0d3b0f34-9c1e-4b7a-8f62-5d6a0c1b2e3f", "1d3b0f34-9c1e-4b7a-8f62-5d6a0c1b2e3f"}[i],
				Doors: []string{"front_1", "front_2", "room_1"}, NotBefore: begin, NotAfter: begin.Add(2 * time.Hour),
				Verifier: base64.StdEncoding.EncodeToString(hash)})
		}
	}
	s.cloud.SendPasses(l)
	s.cloud.Wait("the list is applied", testTimeout, func(m cloudtest.Message) bool {
		applied, err := protocol.Decode[protocol.PassApplied](m.Payload)
		return m.Kind == protocol.KindPassApplied && err == nil && applied.Version == version
	})
}

// types types at a keypad until the result is want. While the machine starts, or before its first beacon, it is another one.
func (s *scene) types(device, keys, want string) {
	s.t.Helper()
	got := ""
	for deadline := time.Now().Add(testTimeout); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		v, err := s.Hardware().Type(s.t.Context(), device, keys)
		if err != nil {
			s.t.Fatal(err)
		}
		if got = v.Reason; got == want {
			return
		}
		if got != "off" && got != protocol.ReasonNoClock {
			break
		}
	}
	s.t.Fatalf("%s at %s: %s, want %s", keys, device, got, want)
}

// wantSources checks device and source of the actuations so far.
func (s *scene) wantSources(want ...string) {
	s.t.Helper()
	var got []string
	for _, a := range s.Hardware().Actuations() {
		got = append(got, a.Device, string(a.Source))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("actuations %v, want %v", got, want)
	}
}
