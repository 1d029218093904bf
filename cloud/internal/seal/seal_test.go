package seal_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/seal"
	"pgregory.net/rapid"
)

func ring(t *testing.T, setting string) *seal.Keyring {
	t.Helper()
	r, err := seal.ParseKeys(setting)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestSealedValueOpensOnlyForItsPurpose(t *testing.T) {
	r := ring(t, seal.NewKey())
	sealed := r.Seal("door-pin", []byte("482913"))
	if bytes.Contains(sealed, []byte("482913")) {
		t.Fatal("the sealed value contains the plain text")
	}
	if plain, err := r.Open("door-pin", sealed); err != nil || string(plain) != "482913" {
		t.Fatalf("Open = %q, %v", plain, err)
	}
	if _, err := r.Open("refund-account", sealed); !errors.Is(err, seal.ErrSealed) {
		t.Fatalf("another purpose: %v", err)
	}
	if bytes.Equal(sealed, r.Seal("door-pin", []byte("482913"))) {
		t.Fatal("two seals of one value are equal")
	}
}

func TestDamagedValueDoesNotOpen(t *testing.T) {
	r := ring(t, seal.NewKey())
	rapid.Check(t, func(t *rapid.T) {
		sealed := r.Seal("p", rapid.SliceOf(rapid.Byte()).Draw(t, "plain"))
		i := rapid.IntRange(0, len(sealed)-1).Draw(t, "at")
		sealed[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		if _, err := r.Open("p", sealed); !errors.Is(err, seal.ErrSealed) {
			t.Fatalf("bit flipped at %d: %v", i, err)
		}
	})
	if _, err := r.Open("p", nil); !errors.Is(err, seal.ErrSealed) {
		t.Fatalf("empty: %v", err)
	}
}

func TestRotation(t *testing.T) {
	older, newer := seal.NewKey(), seal.NewKey()
	sealed := ring(t, older).Seal("p", []byte("x"))
	both := ring(t, newer+", "+older)
	if _, err := both.Open("p", sealed); err != nil {
		t.Fatalf("opening with the older key: %v", err)
	}
	if both.Current(sealed) || !both.Current(both.Seal("p", nil)) {
		t.Fatal("Current does not recognise the sealing key")
	}
	if _, err := ring(t, newer).Open("p", sealed); !errors.Is(err, seal.ErrSealed) {
		t.Fatalf("a keyring without the key opened the value: %v", err)
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	for _, setting := range []string{"", "short", "c2hvcnQ=", seal.NewKey() + ","} {
		if _, err := seal.ParseKeys(setting); err == nil {
			t.Errorf("ParseKeys(%q) accepted", setting)
		}
	}
}

func TestMACDependsOnKeyAndPurpose(t *testing.T) {
	t.Parallel()
	a, b := ring(t, seal.NewKey()), ring(t, seal.NewKey())
	first := string(a.MAC("person", "01012345678"))
	if first != string(a.MAC("person", "01012345678")) {
		t.Error("two MACs of one text differ")
	}
	for name, other := range map[string]string{
		"text": string(a.MAC("person", "01012345679")), "purpose": string(a.MAC("limit", "01012345678")), "key": string(b.MAC("person", "01012345678")),
	} {
		if first == other {
			t.Errorf("the MAC does not depend on the %s", name)
		}
	}
}

func TestMACsHaveEachKey(t *testing.T) {
	t.Parallel()
	older, newer := seal.NewKey(), seal.NewKey()
	got := ring(t, newer+","+older).MACs("person", "01012345678")
	want := [][]byte{ring(t, newer).MAC("person", "01012345678"), ring(t, older).MAC("person", "01012345678")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}
