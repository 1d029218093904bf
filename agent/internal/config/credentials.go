package config

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Credentials identify the agent and the keys it trusts.
type Credentials struct {
	Branch    string
	Username  string
	Password  string
	Key       ed25519.PrivateKey // made on this machine; nil: the agent connects with the password
	GrantKeys []ed25519.PublicKey
	Broker    string // from enrolment; a broker in the settings takes precedence
	CA        string // file of the private certificate authority; empty: the system's
}

// Encode returns the credentials in the format of ReadCredentials.
func (c Credentials) Encode() string {
	keys := make([]string, len(c.GrantKeys))
	for i, key := range c.GrantKeys {
		keys[i] = base64.StdEncoding.EncodeToString(key)
	}
	text := fmt.Sprintf("%s=%s\n%s=%s\n%s=%s\n%s=%s\n", envBranch, c.Branch, envUsername, c.Username, envPassword, c.Password,
		envGrantKeys, strings.Join(keys, ","))
	if c.Key != nil {
		text += envKey + "=" + base64.StdEncoding.EncodeToString(c.Key.Seed()) + "\n"
	}
	for _, optional := range [][2]string{{envBroker, c.Broker}, {envCA, c.CA}} {
		if optional[1] != "" {
			text += optional[0] + "=" + optional[1] + "\n"
		}
	}
	return text
}

// The names in the credentials file.
const (
	envBranch    = "YEOLDA_BRANCH"
	envUsername  = "YEOLDA_AGENT_USERNAME"
	envPassword  = "YEOLDA_AGENT_PASSWORD" //nolint:gosec // the name of a variable is no secret
	envGrantKeys = "YEOLDA_GRANT_PUBLIC_KEYS"
	envKey       = "YEOLDA_AGENT_KEY"
	envBroker    = "YEOLDA_BROKER_URL"
	envCA        = "YEOLDA_CA"
)

// ReadCredentials reads a credentials file, which only its owner may be able to read. If name is empty, it reads the same
// variables from the environment.
func ReadCredentials(name string) (Credentials, error) {
	if name == "" {
		return credentials(os.Getenv)
	}
	info, err := os.Stat(name)
	if err != nil {
		return Credentials{}, fmt.Errorf("credentials: %w", err)
	}
	if others := info.Mode().Perm() & 0o077; others != 0 {
		return Credentials{}, fmt.Errorf("credentials: other users may read %s (mode %o); run chmod 600", name, info.Mode().Perm())
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return Credentials{}, fmt.Errorf("credentials: %w", err)
	}
	c, err := parseCredentials(data)
	if err != nil {
		return Credentials{}, fmt.Errorf("credentials %s: %w", name, err)
	}
	return c, nil
}

// parseCredentials parses lines of the form NAME=value and skips empty lines and comments (#). Its errors never contain a
// value.
func parseCredentials(data []byte) (Credentials, error) {
	values := make(map[string]string)
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return Credentials{}, fmt.Errorf("line %d is not NAME=value", n)
		}
		if _, duplicate := values[name]; duplicate {
			return Credentials{}, fmt.Errorf("line %d: duplicate %s", n, name)
		}
		values[name] = value
	}
	return credentials(func(name string) string { return values[name] })
}

func credentials(get func(string) string) (Credentials, error) {
	c := Credentials{Branch: get(envBranch), Username: get(envUsername), Password: get(envPassword), Broker: get(envBroker), CA: get(envCA)}
	for _, name := range []string{envBranch, envUsername, envPassword, envGrantKeys} {
		if get(name) == "" {
			return Credentials{}, fmt.Errorf("%s is missing", name)
		}
	}
	if text := get(envKey); text != "" {
		seed, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(seed) != ed25519.SeedSize {
			return Credentials{}, errors.New(envKey + " is not an Ed25519 seed in base64")
		}
		c.Key = ed25519.NewKeyFromSeed(seed)
	}
	for text := range strings.SplitSeq(get(envGrantKeys), ",") {
		key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
		if err != nil || len(key) != ed25519.PublicKeySize {
			return Credentials{}, errors.New(envGrantKeys + " is not a list of Ed25519 public keys in base64")
		}
		c.GrantKeys = append(c.GrantKeys, key)
	}
	return c, nil
}
