//go:build hw

package hwtest

import (
	"encoding/base64"
	"testing"
	"time"

	"golang.org/x/crypto/argon2"

	"github.com/yeolda/yeolda/agent/internal/brokertest"
	"github.com/yeolda/yeolda/protocol"
)

// The lines of the Wiegand keypad of front_1.
const (
	gpioD0 = 5
	gpioD1 = 6
)

const keypadSettings = `
[[door]]
device = "front_3"
relay = { line = "GPIO18" }
[[door.keypad]]
d0 = { line = "GPIO5" }
d1 = { line = "GPIO6" }
`

// TestWiegandKeypad types a PIN as bursts of edges, which the kernel timestamps, and measures the time from the last bit to the
// pulse with the parameters that the cloud uses.
func TestWiegandKeypad(t *testing.T) {
	t.Setenv("STATE_DIRECTORY", t.TempDir())
	pull(t, gpioD0, 1)
	pull(t, gpioD1, 1)
	b := brokertest.Start(t, "127.0.0.1:0")
	p := startWith(t, b, keypadSettings)
	if got := p.status.Inventory.Keypads; len(got) != 1 || got[0] != "front_3" || p.status.SealKey == "" {
		t.Fatalf("keypads %v, seal key %q", got, p.status.SealKey)
	}
	me := protocol.Agent{Branch: branch, Username: "agent-" + branch}
	beat := brokertest.Await[protocol.Heartbeat](b)
	now := time.Now().UTC().Truncate(time.Millisecond)
	b.SendTo(me, protocol.Beacon{Branch: branch, BootID: beat.BootID, Nonce: beat.Nonce, Time: now}.Sign(brokertest.Key, me.Username))
	salt := make([]byte, 16)
	kdf := protocol.KDF{Name: protocol.KDFArgon2id, Time: 2, MemoryKiB: 32 << 10, Threads: 4, Salt: base64.StdEncoding.EncodeToString(salt)}
	b.SendTo(me, protocol.PassList{Branch: branch, Epoch: 1, Version: 1, IssuedAt: now, LeaseUntil: now.Add(time.Hour), KDF: kdf, Passes: []protocol.Pass{{
		Pass: request(1), Doors: []string{"front_3"}, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
		Verifier: base64.StdEncoding.EncodeToString(argon2.IDKey([]byte("482913"), salt, kdf.Time, kdf.MemoryKiB, uint8(kdf.Threads), protocol.VerifierSize)),
	}}}.Sign(brokertest.Key, me.Username))
	brokertest.Await[protocol.PassApplied](b)

	press(t, 0, 0, 0, 0, 0, 0, 11)
	if e := brokertest.Await[protocol.PassEntry](b); e.Outcome != protocol.EntryRefused || e.Reason != protocol.ReasonWrong {
		t.Errorf("a wrong PIN: %+v", e)
	}
	press(t, 4, 8, 2, 9, 1, 3, 11)
	typed := time.Now()
	await(t, "the relay", 5*time.Second, func() bool { return level(t, 18) == 1 })
	t.Logf("from # to the pulse: %v", time.Since(typed))
	for {
		if e := brokertest.Await[protocol.PassEntry](b); e.Entry == 2 {
			if e.Outcome != protocol.EntryOpened || e.Pass != request(1) {
				t.Errorf("the right PIN: %+v", e)
			}
			break
		}
	}
}

// press sends keys as bursts of four bits: a bit is a short pulse to Low on D0 or D1.
func press(t *testing.T, keys ...uint8) {
	t.Helper()
	for _, key := range keys {
		for bit := 3; bit >= 0; bit-- {
			line := gpioD0
			if key>>bit&1 == 1 {
				line = gpioD1
			}
			pull(t, line, 0)
			time.Sleep(100 * time.Microsecond)
			pull(t, line, 1)
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(60 * time.Millisecond)
	}
}
