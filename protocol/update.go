package protocol

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
)

// packageDomain separates packages from anything else signed with the same key.
const packageDomain = "yeolda/v1 agent package"

const (
	maxPackages = 8
	maxURL      = 2000
	maxVersion  = 64
	hashLen     = 64 // SHA-256 in hexadecimal
)

// Update asks an agent to install a version. The agent fetches the package for its architecture and installs it only if the
// release key of the agent's own package has signed it. The cloud repeats the message until the status names the version, or
// reports that the update was rolled back or failed.
type Update struct {
	Version  string    `json:"version"` // of the Debian package
	Packages []Package `json:"packages"`
	// Rollout is its number; 0: unknown. A package that failed is tried again if another rollout asks for it.
	Rollout uint64 `json:"rollout,omitempty"`
}

// Package is the Debian package of the agent for one architecture.
type Package struct {
	Architecture string `json:"architecture"` // Debian's name: arm64, armhf, amd64
	URL          string `json:"url"`          // http or https; the signature does not cover it
	SHA256       string `json:"sha256"`       // of the file, hexadecimal
	Signature    string `json:"signature"`    // Ed25519, base64url; see SignPackage
}

// UpdateState is the state of an update that did not end with the new version running.
type UpdateState string

// The states of an update.
const (
	UpdateFetching   UpdateState = "fetching"    // the package is being fetched
	UpdateInstalling UpdateState = "installing"  // the package was passed to the installer, or is on trial
	UpdateFailed     UpdateState = "failed"      // nothing was installed
	UpdateRolledBack UpdateState = "rolled-back" // the new version was installed and did worse, so the old one was restored
)

// UpdateStatus is the progress of the last update that the agent was asked for.
type UpdateStatus struct {
	Version string      `json:"version"`
	State   UpdateState `json:"state"`
	Detail  string      `json:"detail,omitempty"`
}

// signedPackage returns the bytes that the signature of a package covers.
func signedPackage(version string, p Package) []byte {
	b := appendField(nil, packageDomain)
	for _, s := range []string{version, p.Architecture, p.SHA256} {
		b = appendField(b, s)
	}
	return b
}

// SignPackage returns a package of a version with its signature.
func SignPackage(key ed25519.PrivateKey, version string, p Package) Package {
	p.Signature = sign(key, signedPackage(version, p))
	return p
}

// Verify returns ErrSignature unless one of the release keys has signed the package of this version.
func (p Package) Verify(version string, keys ...ed25519.PublicKey) error {
	return verify(signedPackage(version, p), p.Signature, keys)
}

// For returns the package of an architecture.
func (m Update) For(architecture string) (Package, bool) {
	for _, p := range m.Packages {
		if p.Architecture == architecture {
			return p, true
		}
	}
	return Package{}, false
}

// Kind implements Message.
func (Update) Kind() Kind { return KindUpdate }

// Validate checks the form of an update. Verify checks a signature.
func (m Update) Validate() error {
	if !ValidVersion(m.Version) {
		return errors.New("version is not the version of a Debian package")
	}
	if len(m.Packages) == 0 || len(m.Packages) > maxPackages {
		return fmt.Errorf("packages has %d entries, want 1 to %d", len(m.Packages), maxPackages)
	}
	var err error
	for _, p := range m.Packages {
		err = errors.Join(err, p.validate())
	}
	return err
}

func (p Package) validate() error {
	var err error
	if !validName(p.Architecture, 20) {
		err = errors.New("architecture is not a Debian architecture")
	}
	if u, urlErr := url.Parse(p.URL); urlErr != nil || len(p.URL) > maxURL || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		err = errors.Join(err, errors.New("url is not an address"))
	}
	if raw, hexErr := hex.DecodeString(p.SHA256); hexErr != nil || len(p.SHA256) != hashLen || hex.EncodeToString(raw) != p.SHA256 {
		err = errors.Join(err, errors.New("sha256 is not a hash in lower-case hexadecimal"))
	}
	if len(p.Signature) != signatureLen {
		err = errors.Join(err, fmt.Errorf("signature is not %d characters long", signatureLen))
	}
	return err
}

// ValidVersion reports whether a text can be the version of a Debian package: a digit, then letters, digits and .+~- up to
// 64 characters.
func ValidVersion(version string) bool {
	if version == "" || len(version) > maxVersion || version[0] < '0' || version[0] > '9' {
		return false
	}
	for _, c := range []byte(version) {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '+', c == '~', c == '-':
		default:
			return false
		}
	}
	return true
}

func (u UpdateStatus) validate() error {
	var err error
	switch u.State {
	case UpdateFetching, UpdateInstalling, UpdateFailed, UpdateRolledBack:
	default:
		err = fmt.Errorf("state of the update %q is unknown", u.State)
	}
	if !ValidVersion(u.Version) {
		err = errors.Join(err, errors.New("version of the update is not the version of a Debian package"))
	}
	return errors.Join(err, checkText("detail of the update", u.Detail, maxDetail, false))
}
