package protocol

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

func TestKeyListVerifiesWithATrustedKeyOnly(t *testing.T) {
	t.Parallel()
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	list := sampleKeys()
	if err := list.Verify(public(other), public(sampleKey)); err != nil {
		t.Errorf("signed by a trusted key: got %v, want nil", err)
	}
	if err := list.Verify(public(other)); !errors.Is(err, ErrSignature) {
		t.Errorf("signed by an untrusted key: got %v, want ErrSignature", err)
	}
	for name, change := range map[string]func(*KeyList){
		"epoch":        func(l *KeyList) { l.Epoch++ },
		"key":          func(l *KeyList) { l.Keys = []string{base64.StdEncoding.EncodeToString(public(other))} },
		"one key more": func(l *KeyList) { l.Keys = append(l.Keys[:1:1], base64.StdEncoding.EncodeToString(public(other))) },
	} {
		changed := sampleKeys()
		change(&changed)
		if err := changed.Verify(public(sampleKey)); !errors.Is(err, ErrSignature) {
			t.Errorf("%s changed: got %v, want ErrSignature", name, err)
		}
	}
	// A signature on a grant is never one on a key list.
	list.Signature = sampleGrant().Signature
	if err := list.Verify(public(sampleKey)); !errors.Is(err, ErrSignature) {
		t.Errorf("signature of a grant: got %v, want ErrSignature", err)
	}
}

func TestKeyListForm(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*KeyList){
		"epoch 0":       func(l *KeyList) { l.Epoch = 0 },
		"no keys":       func(l *KeyList) { l.Keys = nil },
		"too many keys": func(l *KeyList) { l.Keys = strings.Split(strings.Repeat(l.Keys[0]+" ", MaxKeys)+l.Keys[0], " ") },
		"short key":     func(l *KeyList) { l.Keys = []string{"AAAA"} },
		"not base64":    func(l *KeyList) { l.Keys = []string{strings.Repeat("-", 44)} },
		"no signature":  func(l *KeyList) { l.Signature = "" },
	} {
		list := sampleKeys()
		change(&list)
		if list.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
