package protocol

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
)

func samplePackage() Package {
	return SignPackage(sampleKey, "1.2.0", Package{Architecture: "arm64", URL: "https://packages.example/agent.deb", SHA256: strings.Repeat("0a", 32)})
}

func TestPackageVerifiesWithTheReleaseKeyOnly(t *testing.T) {
	t.Parallel()
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	p := samplePackage()
	if err := p.Verify("1.2.0", public(other), public(sampleKey)); err != nil {
		t.Errorf("signed by the release key: got %v, want nil", err)
	}
	moved := p
	moved.URL = "http://mirror.example/agent.deb"
	if err := moved.Verify("1.2.0", public(sampleKey)); err != nil {
		t.Errorf("from a mirror: got %v, want nil", err)
	}
	if err := p.Verify("1.2.0", public(other)); !errors.Is(err, ErrSignature) {
		t.Errorf("another key: got %v, want ErrSignature", err)
	}
	if err := p.Verify("1.2.1", public(sampleKey)); !errors.Is(err, ErrSignature) {
		t.Errorf("another version: got %v, want ErrSignature", err)
	}
	for name, change := range map[string]func(*Package){
		"architecture": func(p *Package) { p.Architecture = "armhf" },
		"sha256":       func(p *Package) { p.SHA256 = strings.Repeat("0b", 32) },
		"signature":    func(p *Package) { p.Signature = sampleGrant().Signature },
	} {
		changed := p
		change(&changed)
		if err := changed.Verify("1.2.0", public(sampleKey)); !errors.Is(err, ErrSignature) {
			t.Errorf("%s changed: got %v, want ErrSignature", name, err)
		}
	}
}

func TestUpdateForArchitecture(t *testing.T) {
	t.Parallel()
	arm64, armhf := samplePackage(), Package{Architecture: "armhf"}
	u := Update{Version: "1.2.0", Packages: []Package{arm64, armhf}}
	for _, want := range u.Packages {
		if p, ok := u.For(want.Architecture); !ok || p != want {
			t.Errorf("%s: got %+v, want %+v", want.Architecture, p, want)
		}
	}
	if p, ok := u.For("amd64"); ok {
		t.Errorf("amd64: got %+v, want none", p)
	}
}

func TestUpdateForm(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Update){
		"no version":         func(u *Update) { u.Version = "" },
		"option as version":  func(u *Update) { u.Version = "--force-all" },
		"path as version":    func(u *Update) { u.Version = "1/../2" },
		"long version":       func(u *Update) { u.Version = strings.Repeat("1", 65) },
		"no packages":        func(u *Update) { u.Packages = nil },
		"too many packages":  func(u *Update) { u.Packages = many(9, func(int) Package { return samplePackage() }) },
		"architecture":       func(u *Update) { u.Packages[0].Architecture = "../arm64" },
		"file address":       func(u *Update) { u.Packages[0].URL = "file:///etc/passwd" },
		"address, no host":   func(u *Update) { u.Packages[0].URL = "https:///agent.deb" },
		"short hash":         func(u *Update) { u.Packages[0].SHA256 = "0a" },
		"hash in upper case": func(u *Update) { u.Packages[0].SHA256 = strings.Repeat("0A", 32) },
		"no signature":       func(u *Update) { u.Packages[0].Signature = "" },
	} {
		u := Update{Version: "1.2.0", Packages: []Package{samplePackage()}}
		if err := u.Validate(); err != nil {
			t.Fatal(err)
		}
		change(&u)
		if u.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	for name, u := range map[string]UpdateStatus{
		"state":   {Version: "1.2.0", State: "done"},
		"version": {State: UpdateFailed},
		"detail":  {Version: "1.2.0", State: UpdateFailed, Detail: letters(maxDetail + 1)},
	} {
		status := online(Inventory{})
		status.Update = &u
		if status.Validate() == nil {
			t.Errorf("status of the update with an invalid %s is accepted", name)
		}
	}
}

func TestRekeyedForm(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Rekeyed){
		"rotation":      func(m *Rekeyed) { m.Rotation = "1" },
		"key":           func(m *Rekeyed) { m.PublicKey = "AAAA" },
		"password hash": func(m *Rekeyed) { m.PasswordHash = base64.StdEncoding.EncodeToString(make([]byte, 31)) },
	} {
		m := samples()["credential-new"].(Rekeyed)
		change(&m)
		if m.Validate() == nil {
			t.Errorf("an invalid %s is accepted", name)
		}
	}
	if (Rekey{Rotation: "x"}).Validate() == nil {
		t.Error("an invalid rotation is accepted")
	}
}

// The bytes of a challenge name the user and the nonce separately: no two pairs have the same bytes.
func TestChallengesDiffer(t *testing.T) {
	t.Parallel()
	if bytes.Equal(Challenge("agent-a", "bn"), Challenge("agent-ab", "n")) {
		t.Error("two challenges have the same bytes")
	}
}
