package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/yeolda/yeolda/protocol"
)

// agentReleaseCmd is `yeolda agent release`. Its commands need no service and belong on a machine that builds releases, not on
// a server: a taken-over server must not be able to install programs on the Pis.
type agentReleaseCmd struct {
	Key  agentReleaseKeyCmd  `cmd:"" help:"Make the key that signs the packages of a fleet, and print the public key for YEOLDA_RELEASE_KEYS or the Pis."`
	Sign agentReleaseSignCmd `cmd:"" help:"Sign the packages of a version, for the folder at YEOLDA_AGENT_PACKAGES."`
}

// agentReleaseKeyCmd is `yeolda agent release key`.
type agentReleaseKeyCmd struct {
	File string `arg:"" type:"path" help:"New file for the private key."`
}

// Run writes a new private key.
func (c *agentReleaseKeyCmd) Run(p *program) error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	if err := writeNew(c.File, base64.StdEncoding.EncodeToString(private.Seed())+"\n"); err != nil {
		return err
	}
	fmt.Fprintln(p.out, base64.StdEncoding.EncodeToString(public))
	return nil
}

// agentReleaseSignCmd is `yeolda agent release sign`.
type agentReleaseSignCmd struct {
	Key      string   `required:"" placeholder:"FILE" type:"existingfile" help:"Private key that release key made."`
	Packages []string `arg:"" type:"existingfile" help:"Packages of one version, as make deb names them: yeolda-agent_VERSION_ARCHITECTURE.deb."`
}

// Run writes the manifest with the signatures beside the first package, and the signature of each package beside it.
func (c *agentReleaseSignCmd) Run(p *program) error {
	text, err := os.ReadFile(c.Key)
	if err != nil {
		return err
	}
	seed, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return fmt.Errorf("%s does not contain a key that yeolda agent release key made", c.Key)
	}
	var update protocol.Update
	for _, file := range c.Packages {
		version, architecture, err := packageName(file)
		if err != nil {
			return err
		}
		if update.Version != "" && version != update.Version {
			return fmt.Errorf("%s is not of version %s", file, update.Version)
		}
		update.Version = version
		if _, ok := update.For(architecture); ok {
			return fmt.Errorf("there are two packages for %s", architecture)
		}
		hash, err := packageHash(file)
		if err != nil {
			return err
		}
		signed := protocol.SignPackage(ed25519.NewKeyFromSeed(seed), version, protocol.Package{Architecture: architecture, URL: filepath.Base(file), SHA256: hash})
		update.Packages = append(update.Packages, signed)
		// For install.sh, which reads no JSON and does not know the version.
		if err := os.WriteFile(file+".sig", []byte(version+" "+signed.Signature+"\n"), 0o644); err != nil { //nolint:gosec // it is published
			return err
		}
	}
	manifest, err := json.MarshalIndent(update, "", "  ")
	if err != nil {
		return err
	}
	name := filepath.Join(filepath.Dir(c.Packages[0]), "yeolda-agent_"+update.Version+".json")
	if err := os.WriteFile(name, append(manifest, '\n'), 0o644); err != nil { //nolint:gosec // it is published
		return err
	}
	fmt.Fprintf(p.out, "%d packages of version %s signed: %s\n", len(update.Packages), update.Version, name)
	return nil
}

// packageName returns the version and the architecture of a package's file.
func packageName(file string) (version, architecture string, err error) {
	parts := strings.Split(strings.TrimSuffix(filepath.Base(file), ".deb"), "_")
	if len(parts) != 3 || parts[0] != "yeolda-agent" || !protocol.ValidVersion(parts[1]) || filepath.Ext(file) != ".deb" {
		return "", "", fmt.Errorf("%s is not named yeolda-agent_VERSION_ARCHITECTURE.deb", file)
	}
	return parts[1], parts[2], nil
}

// packageHash returns the hash of a package. A file that is not a package, such as the part that an interrupted copy has left, must not be
// signed: every agent of the first wave would fetch it.
func packageHash(name string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	if !wholePackage(content) {
		return "", fmt.Errorf("%s is not a complete Debian package", name)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// wholePackage reports whether content is an archive of the format ar, as every Debian package, that contains its members to the end.
func wholePackage(content []byte) bool {
	const header, sizeAt, sizeEnd = 60, 48, 58
	rest, ok := bytes.CutPrefix(content, []byte("!<arch>\n"))
	if !ok || len(rest) == 0 {
		return false
	}
	for len(rest) > 0 {
		if len(rest) < header {
			return false
		}
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[sizeAt:sizeEnd])))
		if err != nil || size < 0 || size > len(rest)-header {
			return false
		}
		rest = rest[header+size:]
		if size%2 == 1 { // members begin at even places
			rest = bytes.TrimPrefix(rest, []byte("\n"))
		}
	}
	return true
}
