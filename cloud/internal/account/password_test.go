package account

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/crypto/argon2"
)

func TestPasswordHash(t *testing.T) {
	t.Parallel()
	hash := HashPassword("비밀번호 열두자 이상")
	if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("hash %s", hash)
	}
	if hash == HashPassword("비밀번호 열두자 이상") {
		t.Error("two hashes have the same salt")
	}
	for password, want := range map[string]bool{"비밀번호 열두자 이상": true, "비밀번호 열두자 이상 ": false, "": false} {
		ok, outdated, err := verifyPassword(password, hash)
		if ok != want || outdated || err != nil {
			t.Errorf("%q: %v, %v, %v", password, ok, outdated, err)
		}
	}
}

func TestOlderParametersStillOpenAndAreReplaced(t *testing.T) {
	t.Parallel()
	salt := []byte("sixteen bytes!!!")
	older := fmt.Sprintf("$argon2id$v=19$m=8192,t=1,p=2$%s$%s", base64.RawStdEncoding.EncodeToString(salt),
		base64.RawStdEncoding.EncodeToString(argon2.IDKey([]byte("secret"), salt, 1, 8192, 2, 32)))
	ok, outdated, err := verifyPassword("secret", older)
	if !ok || !outdated || err != nil {
		t.Errorf("%v, %v, %v", ok, outdated, err)
	}
}

func TestForeignHashesAreRefused(t *testing.T) {
	t.Parallel()
	salt, hash := strings.Repeat("A", 22), strings.Repeat("A", 43)
	for _, phc := range []string{
		"", "secret", "$2a$10$N9qo8uLOickgx2ZMRZoMye", "$argon2i$v=19$m=19456,t=2,p=1$" + salt + "$" + hash,
		"$argon2id$v=16$m=19456,t=2,p=1$" + salt + "$" + hash,
		"$argon2id$v=19$m=4294967295,t=2,p=1$" + salt + "$" + hash, // 4 TiB
		"$argon2id$v=19$m=19456,t=0,p=1$" + salt + "$" + hash,      // argon2 would panic on zero
		"$argon2id$v=19$m=19456,t=2,p=0$" + salt + "$" + hash,
		"$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$", "$argon2id$v=19$m=19456,t=2,p=1$$" + hash,
	} {
		if _, _, err := verifyPassword("x", phc); !errors.Is(err, errPHC) {
			t.Errorf("%q: %v", phc, err)
		}
	}
}

// An unknown login id costs one full hash with the current parameters, like a known one. The test compares the work,
// not the time.
func TestUnknownLoginIDCostsOneHash(t *testing.T) {
	t.Parallel()
	ok, outdated, err := verifyPassword("a guess", decoyHash)
	if ok || outdated || err != nil {
		t.Errorf("%v, %v, %v", ok, outdated, err)
	}
}
