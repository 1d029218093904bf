// Package enroll makes a machine the agent of a branch: it exchanges the one-time token of `yeolda agent enroll` for
// credentials and stores them.
package enroll

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/agent/internal/config"
)

const (
	exchangeTimeout = 30 * time.Second
	maxResponse     = 64 << 10
)

// ErrWrongServer is returned when the keys in the response differ from those the token was made with: another server
// answered.
var ErrWrongServer = errors.New("the keys of this server differ from those of the token: it is not the server that issued the token")

// Key returns the key pair that a machine uses with a token, and keeps it beside the credentials until Done: if the answer to the
// exchange is lost, the machine can repeat it with the same key pair only.
func Key(credentials, token string, owner Owner) (ed25519.PrivateKey, error) {
	sum := sha256.Sum256([]byte(token))
	of := base64.StdEncoding.EncodeToString(sum[:]) + "\n"
	if kept, err := os.ReadFile(pending(credentials)); err == nil {
		text, mine := strings.CutPrefix(string(kept), of)
		if seed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); mine && err == nil && len(seed) == ed25519.SeedSize {
			return ed25519.NewKeyFromSeed(seed), nil
		}
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return key, replace(pending(credentials), of+base64.StdEncoding.EncodeToString(key.Seed())+"\n", 0o600, owner)
}

// Done removes the copy of the key pair that Key has kept: the credentials have it.
func Done(credentials string) error { return os.Remove(pending(credentials)) }

func pending(credentials string) string { return credentials + ".enrolling" }

// Exchange sends the public key of a key pair and the token to the server, and returns the machine's credentials, without their CA. The token ends with
// the fingerprint of the keys that sign grants, which authenticates the response independently of TLS.
func Exchange(ctx context.Context, server, token string, trust *tls.Config, private ed25519.PrivateKey) (config.Credentials, error) {
	address, err := url.Parse(server)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return config.Credentials{}, fmt.Errorf("%q is not the address of a server", server)
	}
	_, fingerprint, ok := strings.Cut(token, ".")
	if !ok {
		return config.Credentials{}, errors.New("this is not a token of `yeolda agent enroll`")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: trust, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	public, _ := private.Public().(ed25519.PublicKey)
	answer, err := post(ctx, client, address.JoinPath("api/v2/agent/enroll"),
		map[string]string{"token": token, "publicKey": base64.StdEncoding.EncodeToString(public)})
	if err != nil {
		return config.Credentials{}, err
	}
	sum := sha256.Sum256([]byte(strings.Join(answer.GrantPublicKeys, ",")))
	if want := base64.RawURLEncoding.EncodeToString(sum[:])[:22]; subtle.ConstantTimeCompare([]byte(fingerprint), []byte(want)) != 1 {
		return config.Credentials{}, ErrWrongServer
	}
	c := config.Credentials{Branch: answer.Branch, Username: answer.Username, Password: answer.Password, Key: private, Broker: Broker(address).String()}
	for _, text := range answer.GrantPublicKeys {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return config.Credentials{}, errors.New("the server's keys are not Ed25519 public keys")
		}
		c.GrantKeys = append(c.GrantKeys, key)
	}
	return c, nil
}

// Broker returns the address of the server's embedded broker: MQTT over WebSocket, on the port of the web pages.
func Broker(server *url.URL) *url.URL {
	u := server.JoinPath("mqtt")
	u.Scheme = "ws" + strings.TrimPrefix(server.Scheme, "http")
	return u
}

type answer struct {
	Branch          string   `json:"branch"`
	Username        string   `json:"username"`
	Password        string   `json:"password"`
	GrantPublicKeys []string `json:"grantPublicKeys"`
}

func post(ctx context.Context, client *http.Client, address *url.URL, request map[string]string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	body, err := json.Marshal(request)
	if err != nil {
		return answer{}, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := client.Do(post)
	if err != nil {
		return answer{}, fmt.Errorf("enroll: %w; repeat the command", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return answer{}, fmt.Errorf("enroll: %w; repeat the command", err)
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return answer{}, errors.New("the token was already used or is older than an hour; create another one with `yeolda agent enroll`")
	default:
		return answer{}, fmt.Errorf("enroll: %s returned %s", address.Host, response.Status)
	}
	var envelope struct {
		Data answer `json:"data"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return answer{}, fmt.Errorf("enroll: unexpected response of %s: %w", address.Host, err)
	}
	return envelope.Data, nil
}

// Owner is the user that must be able to read the credentials.
type Owner struct{ UID, GID int }

// ServiceOwner returns the user of the service if this process is root and that user exists, else the user of this process.
func ServiceOwner() Owner {
	own := Owner{os.Geteuid(), os.Getegid()}
	if own.UID != 0 {
		return own
	}
	u, err := user.Lookup("yeolda-agent")
	if err != nil {
		return own
	}
	uid, uidErr := strconv.Atoi(u.Uid)
	gid, gidErr := strconv.Atoi(u.Gid)
	if uidErr != nil || gidErr != nil {
		return own
	}
	return Owner{uid, gid}
}

// Write stores credentials in a file that only owner may read. It replaces an earlier file atomically, so that the
// credentials are complete even after a power failure.
func Write(name string, c config.Credentials, owner Owner) error {
	return replace(name, c.Encode(), 0o600, owner)
}

// KeepCA copies the file of a private certificate authority beside the credentials and returns the name of the copy.
func KeepCA(credentials, ca string) (string, error) {
	pem, err := os.ReadFile(ca)
	if err != nil {
		return "", fmt.Errorf("ca: %w", err)
	}
	name, err := filepath.Abs(filepath.Join(filepath.Dir(credentials), "ca.pem"))
	if err != nil {
		return "", fmt.Errorf("ca: %w", err)
	}
	return name, replace(name, string(pem), 0o644, Owner{os.Geteuid(), os.Getegid()})
}

// Reserve checks that Write would succeed for a file, with the same steps and as much text. It comes before Exchange, which spends the
// token: credentials that cannot be stored are lost.
func Reserve(name string, owner Owner) error {
	const size = 4096 // more than credentials ever have
	f, err := create(name, strings.Repeat("\n", size), 0o600, owner)
	if err != nil {
		return err
	}
	return os.Remove(f)
}

func replace(name, text string, mode os.FileMode, owner Owner) error {
	f, err := create(name, text, mode, owner)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f) }() // fails after success, because the file was renamed
	if err := os.Rename(f, name); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil { // the token is spent: a power failure must not undo the name
		return fmt.Errorf("credentials: %w", err)
	}
	return nil
}

// create writes a new file in the directory of name and returns its name.
func create(name, text string, mode os.FileMode, owner Owner) (string, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return "", fmt.Errorf("credentials: %s is not a file", name)
	}
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the settings beside it are public
		return "", fmt.Errorf("credentials: %w", err)
	}
	f, err := os.CreateTemp(dir, ".new-") // with mode 0600
	if err != nil {
		return "", fmt.Errorf("credentials: %w", err)
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(mode), f.Chown(owner.UID, owner.GID), f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("credentials: %w", err)
	}
	return f.Name(), nil
}
