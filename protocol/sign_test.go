package protocol

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var sampleKey = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

func public(key ed25519.PrivateKey) ed25519.PublicKey { return key.Public().(ed25519.PublicKey) }

func TestGrantVerifies(t *testing.T) {
	t.Parallel()
	next := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	g := sampleGrant()
	if err := g.Verify(public(next), public(sampleKey)); err != nil {
		t.Errorf("while keys change: %v", err)
	}
	for name, keys := range map[string][]ed25519.PublicKey{"another key": {public(next)}, "no key": nil, "a key cut short": {public(sampleKey)[:31]}} {
		if err := g.Verify(keys...); !errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v, want ErrSignature", name, err)
		}
	}
}

func TestGrantCoversEveryField(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Grant){
		"branch":        func(g *Grant) { g.Branch = "hongdae" },
		"requestId":     func(g *Grant) { g.RequestID = strings.Replace(g.RequestID, "0", "1", 1) },
		"nonce":         func(g *Grant) { g.Nonce = NewNonce() },
		"one door less": func(g *Grant) { g.Doors = g.Doors[:1] },
		"another door":  func(g *Grant) { g.Doors = []string{"front_1", "room_1"} },
		"pulse":         func(g *Grant) { g.PulseMs++ },
		"signature":     func(g *Grant) { g.Signature = "A" + g.Signature[1:] },
		"spare bits":    func(g *Grant) { g.Signature = g.Signature[:85] + "_" },
		"not base64":    func(g *Grant) { g.Signature = strings.Repeat("=", 86) },
	} {
		g := sampleGrant()
		change(&g)
		if err := g.Verify(public(sampleKey)); !errors.Is(err, ErrSignature) {
			t.Errorf("%s changed: %v, want ErrSignature", name, err)
		}
	}
}

// TestSignedBytesAreUnique: moving a byte from one field to the next must change what is signed.
func TestSignedBytesAreUnique(t *testing.T) {
	t.Parallel()
	field := rapid.StringMatching(`[ab]{0,3}`)
	grants := rapid.Custom(func(t *rapid.T) Grant {
		return Grant{Branch: field.Draw(t, "branch"), RequestID: field.Draw(t, "request"), Nonce: field.Draw(t, "nonce"),
			Doors: rapid.SliceOfN(field, 0, 3).Draw(t, "doors"), PulseMs: rapid.Uint32Range(0, 2).Draw(t, "pulse")}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := grants.Draw(t, "a"), grants.Draw(t, "b")
		same := a.Branch == b.Branch && a.RequestID == b.RequestID && a.Nonce == b.Nonce && a.PulseMs == b.PulseMs &&
			strings.Join(a.Doors, ",") == strings.Join(b.Doors, ",") && len(a.Doors) == len(b.Doors)
		if same != bytes.Equal(a.signed(), b.signed()) {
			t.Fatalf("%+v and %+v: same %v", a, b, same)
		}
	})
}

// TestSignedGolden keeps the signed bytes: an agent of another version must verify them.
func TestSignedGolden(t *testing.T) {
	t.Parallel()
	const file = "testdata/grant.signed.hex"
	got := hex.EncodeToString(sampleGrant().signed()) + "\n"
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
		t.Errorf("signed bytes are now\n%swere\n%s", got, want)
	}
}
