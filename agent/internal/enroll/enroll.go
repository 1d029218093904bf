// Package enroll makes a machine the agent of a branch: it gives the service the one-time token of `yeolda agent enroll` and
// writes down who it is from then on.
package enroll

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/yeolda/yeolda/agent/internal/config"
)

const (
	exchangeTimeout = 20 * time.Second
	maxResponse     = 64 << 10
)

// ErrWrongServer is of an answer whose keys are not those the token was made with: somebody stands in between.
var ErrWrongServer = errors.New("the keys of this server are not those of the token: it is not the one that made it")

// Exchange gives the token to the server and returns what the machine is now. The token ends with the fingerprint of the
// keys that sign grants, which came by another way than the answer does.
func Exchange(ctx context.Context, server, token string) (config.Credentials, error) {
	address, err := url.Parse(server)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return config.Credentials{}, fmt.Errorf("%q is not the address of a server", server)
	}
	_, fingerprint, ok := strings.Cut(token, ".")
	if !ok {
		return config.Credentials{}, errors.New("this is not a token of `yeolda agent enroll`")
	}
	answer, err := post(ctx, address.JoinPath("api/v2/agent/enroll"), token)
	if err != nil {
		return config.Credentials{}, err
	}
	sum := sha256.Sum256([]byte(strings.Join(answer.GrantPublicKeys, ",")))
	if want := base64.RawURLEncoding.EncodeToString(sum[:])[:22]; subtle.ConstantTimeCompare([]byte(fingerprint), []byte(want)) != 1 {
		return config.Credentials{}, ErrWrongServer
	}
	c := config.Credentials{Branch: answer.Branch, Username: answer.Username, Password: answer.Password, Broker: broker(address)}
	for _, text := range answer.GrantPublicKeys {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(key) != ed25519.PublicKeySize {
			return config.Credentials{}, errors.New("the server's keys are not Ed25519 public keys")
		}
		c.GrantKeys = append(c.GrantKeys, key)
	}
	return c, nil
}

// broker is where the server's own broker is: MQTT over WebSocket, on the port that pages come from.
func broker(server *url.URL) string {
	u := server.JoinPath("mqtt")
	u.Scheme = "ws" + strings.TrimPrefix(server.Scheme, "http")
	return u.String()
}

type answer struct {
	Branch          string   `json:"branch"`
	Username        string   `json:"username"`
	Password        string   `json:"password"`
	GrantPublicKeys []string `json:"grantPublicKeys"`
}

func post(ctx context.Context, address *url.URL, token string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	body, err := json.Marshal(map[string]string{"token": token})
	if err != nil {
		return answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, fmt.Errorf("enroll: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return answer{}, fmt.Errorf("enroll: %w", err)
	}
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized:
		return answer{}, errors.New("the token was used already or is older than an hour; make another with `yeolda agent enroll`")
	default:
		return answer{}, fmt.Errorf("enroll: %s answers %s", address.Host, response.Status)
	}
	var envelope struct {
		Data answer `json:"data"`
	}
	if err := json.Unmarshal(text, &envelope); err != nil {
		return answer{}, fmt.Errorf("enroll: %s answers something else: %w", address.Host, err)
	}
	return envelope.Data, nil
}

// Write puts credentials into a file that only its owner may read. An earlier file is replaced in one step: a machine that
// loses its power now is the old agent or the new one.
func Write(name string, c config.Credentials) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // the settings beside it are for all to read
		return fmt.Errorf("credentials: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".credentials-") // of mode 0600
	if err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }() // fails when all went well: then it is not there any more
	_, err = f.WriteString(c.Encode())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	if err := os.Rename(f.Name(), name); err != nil {
		return fmt.Errorf("credentials: %w", err)
	}
	return nil
}
