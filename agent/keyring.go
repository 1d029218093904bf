package agent

import (
	"crypto/ed25519"
	"fmt"

	"github.com/yeolda/yeolda/protocol"
)

// keyring holds the public keys that verify grants: those of the credential, or of the last key list that was applied. The
// list is stored before it is used, so that a restart does not trust older keys again. It is used by writeAll only, after load.
type keyring struct {
	file     string // empty: in memory only
	username string // of the credential that the list belongs to: a new enrolment starts with the keys of its credential
	epoch    uint64
	keys     []ed25519.PublicKey
}

// load replaces the keys of the credential with the stored list, if it belongs to this credential.
func (k *keyring) load() error {
	list, err := readList[protocol.KeyList](k.file, k.username)
	if err != nil || list == nil {
		return err
	}
	keys, err := list.PublicKeys()
	if err == nil {
		k.epoch, k.keys = list.Epoch, keys
	}
	return err
}

// apply verifies a list with the current keys, stores it and uses it from then on. It reports whether the keys changed: a list
// that is not newer is ignored.
func (k *keyring) apply(list protocol.KeyList) (changed bool, err error) {
	if list.Epoch <= k.epoch {
		return false, nil
	}
	if err := list.Verify(k.keys...); err != nil {
		return false, fmt.Errorf("key list %d: %w", list.Epoch, err)
	}
	keys, err := list.PublicKeys()
	if err != nil {
		return false, err
	}
	if err := writeList(k.file, k.username, list); err != nil {
		return false, err
	}
	k.epoch, k.keys = list.Epoch, keys
	return true, nil
}
