package protocol

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// brokersDomain separates lists of brokers from anything else signed with the same key.
const brokersDomain = "yeolda/v1 brokers"

// Bounds of a list of brokers.
const (
	MaxBrokers   = 16
	maxBrokerURL = 200 // bytes
)

// BrokerList names the brokers of the cloud's pool to an agent that was set up with the address of one of them. It is signed
// with a key that verifies grants. The agent applies a list only if its epoch is higher than that of the list it has, stores it
// before use, and reports the epoch in its status. It keeps the addresses that it was set up with as the last ones to try: a list
// with a mistake must not cost the connection.
//
// The cloud sends the last list until the agent has reported it.
type BrokerList struct {
	Epoch     uint64   `json:"epoch"`     // from 1
	Brokers   []string `json:"brokers"`   // mqtt, mqtts, ws or wss URLs; empty: only the addresses that the agent was set up with
	Signature string   `json:"signature"` // Ed25519, base64url; see Sign
}

// signed returns the bytes that the signature covers.
func (l BrokerList) signed() []byte {
	b := binary.BigEndian.AppendUint64(appendField(nil, brokersDomain), l.Epoch)
	b = binary.BigEndian.AppendUint32(b, uint32(len(l.Brokers)))
	for _, address := range l.Brokers {
		b = appendField(b, address)
	}
	return b
}

// Sign returns the list with its signature.
func (l BrokerList) Sign(key ed25519.PrivateKey) BrokerList {
	l.Signature = sign(key, l.signed())
	return l
}

// Verify returns ErrSignature unless one of the keys has signed the list.
func (l BrokerList) Verify(keys ...ed25519.PublicKey) error {
	return verify(l.signed(), l.Signature, keys)
}

// Kind implements Message.
func (BrokerList) Kind() Kind { return KindBrokers }

// CheckBrokers checks the bounds of the addresses of a list.
func CheckBrokers(addresses []string) error {
	var err error
	if len(addresses) > MaxBrokers {
		err = fmt.Errorf("brokers has %d entries, want at most %d", len(addresses), MaxBrokers)
	}
	for _, address := range addresses {
		err = errors.Join(err, checkText("address", address, maxBrokerURL, true))
	}
	return err
}

// Validate checks the form of a list. Verify checks the signature.
func (l BrokerList) Validate() error {
	var err error
	if l.Epoch == 0 {
		err = errors.New("epoch is 0")
	}
	err = errors.Join(err, CheckBrokers(l.Brokers))
	if len(l.Signature) != signatureLen {
		err = errors.Join(err, fmt.Errorf("signature is not %d characters long", signatureLen))
	}
	return err
}

// BrokerOrder returns the addresses of a pool's brokers in the order in which the agent of a branch tries them. It follows from the
// branch and from each address alone (rendezvous hashing): the branches are spread evenly, the agents of a broker that is away
// are spread over all others, and a broker that joins or leaves moves no agents between the others.
func BrokerOrder(branch string, addresses []string) []string {
	weight := func(address string) []byte {
		sum := sha256.Sum256([]byte(branch + " " + address))
		return sum[:]
	}
	return slices.SortedFunc(slices.Values(addresses), func(one, other string) int {
		return cmp.Or(bytes.Compare(weight(other), weight(one)), strings.Compare(one, other))
	})
}
