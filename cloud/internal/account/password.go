package account

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// MaxLoginID is the maximum length of a login id, in characters.
const MaxLoginID = 100

// Parameters of argon2id as recommended by OWASP's password storage cheat sheet: 19 MiB, two passes, one lane.
const (
	argonMemory = 19 << 10 // KiB
	argonTime   = 2
	argonLanes  = 1
	saltSize    = 16
	hashSize    = 32
)

// Limits on the length of a password, in characters. The upper limit exceeds what password generators produce.
const (
	MinPassword = 12
	MaxPassword = 256
)

// Errors of a password that may not be set.
var (
	ErrWeakPassword   = fmt.Errorf("account: a password has %d to %d characters", MinPassword, MaxPassword)
	ErrCommonPassword = errors.New("account: the password is too common or contains the login id")
)

// HashPassword returns the hash of a password as a PHC string: $argon2id$v=19$m=…,t=…,p=…$salt$hash.
func HashPassword(password string) string {
	salt := make([]byte, saltSize)
	rand.Read(salt) // never returns an error
	hash := argon2.IDKey([]byte(password), salt, argonTime, argonMemory, argonLanes, hashSize)
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemory, argonTime, argonLanes,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(hash))
}

// decoyHash is compared for an unknown login id, which thereby takes as long as a wrong password.
var decoyHash = HashPassword(rand.Text())

// VerifyPassword reports whether a password matches a stored hash.
func VerifyPassword(password, phc string) (bool, error) {
	ok, _, err := verifyPassword(password, phc)
	return ok, err
}

// verifyPassword reports whether a password matches a PHC string, and whether the hash was made with parameters other
// than the current ones.
func verifyPassword(password, phc string) (ok, outdated bool, err error) {
	h, err := parsePHC(phc)
	if err != nil {
		return false, false, err
	}
	given := argon2.IDKey([]byte(password), h.salt, h.time, h.memory, h.lanes, uint32(len(h.hash)))
	outdated = h.memory != argonMemory || h.time != argonTime || h.lanes != argonLanes || len(h.hash) != hashSize
	return subtle.ConstantTimeCompare(given, h.hash) == 1, outdated, nil
}

type phc struct {
	memory, time uint32
	lanes        uint8
	salt, hash   []byte
}

var errPHC = errors.New("account: stored password hash is not argon2id")

// parsePHC parses a stored hash. It bounds the parameters so that a corrupt row cannot exhaust memory.
func parsePHC(text string) (phc, error) {
	var (
		h       phc
		version int
	)
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" {
		return h, errPHC
	}
	if n, err := fmt.Sscanf(parts[2], "v=%d", &version); n != 1 || err != nil || version != argon2.Version {
		return h, errPHC
	}
	if n, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &h.memory, &h.time, &h.lanes); n != 3 || err != nil {
		return h, errPHC
	}
	if h.memory < 8 || h.memory > 1<<20 || h.time < 1 || h.time > 100 || h.lanes < 1 {
		return h, errPHC
	}
	var err error
	if h.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4]); err != nil || len(h.salt) < 8 {
		return h, errPHC
	}
	if h.hash, err = base64.RawStdEncoding.Strict().DecodeString(parts[5]); err != nil || len(h.hash) < 16 || len(h.hash) > 128 {
		return h, errPHC
	}
	return h, nil
}

// checkPassword returns ErrWeakPassword, or ErrCommonPassword, for a password that may not be set.
func checkPassword(password, loginID string) error {
	if n := len([]rune(password)); n < MinPassword || n > MaxPassword {
		return ErrWeakPassword
	}
	if commonPassword(password) || containsLoginID(password, loginID) {
		return ErrCommonPassword
	}
	return nil
}
