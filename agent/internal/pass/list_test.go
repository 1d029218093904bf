package pass

import (
	"crypto/ed25519"
	"encoding/base64"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/crypto/nacl/box"

	"github.com/yeolda/yeolda/protocol"
)

// sealedFor returns a key of codes that is sealed to a key.
func sealedFor(t *testing.T, to sealKey) string {
	t.Helper()
	sealed, err := box.SealAnonymous(nil, make([]byte, protocol.CodeKeySize), &to.public, nil)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(sealed)
}

// TestLostSealKey restores passes whose key was damaged by a power cut: PINs do not need it.
func TestLostSealKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour) // the passes begin in this century
		disk := memory{}
		d, _ := newUnlistedController(t, disk)
		list := testList("482913")
		list.CodeKey = sealedFor(t, d.seal)
		if _, err := d.replace(list.Sign(ed25519.NewKeyFromSeed(make([]byte, 32)), "agent-gangnam")); err != nil {
			t.Fatal(err)
		}
		disk[sealFile] = disk[sealFile][:10]
		d, opened := newUnlistedController(t, disk)
		if v := d.Attempt("room_1", "482913", time.Now()); !v.Accepted || *opened != 1 {
			t.Errorf("got %+v for the PIN, want opened", v)
		}
		if v := d.Attempt("room_1", "12345678", time.Now()); v.Reason != protocol.ReasonNoList {
			t.Errorf("got %+v for a code, want %s", v, protocol.ReasonNoList)
		}
		d.Wait()
	})
}
