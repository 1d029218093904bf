package idempotency_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/idempotency"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// A copy of the database does not show which request had a key: the hash of a body could be compared with those of all passwords or
// phone numbers. The request is recognised under every key of the ring.
func TestStoredHashIsKeyed(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	ring := func(keys ...string) *seal.Keyring {
		t.Helper()
		var raw [][]byte
		for _, key := range keys {
			raw = append(raw, bytes.Repeat([]byte(key), seal.KeySize))
		}
		r, err := seal.New(raw...)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	sum := sha256.Sum256([]byte("POST\n/api/account/code\n" + `{"type":"mobile","id":"01012345678"}`))
	request := idempotency.Request{Principal: "guest", Key: "one", Hash: sum[:]}
	before := &idempotency.Service{DB: db, Keys: ring("a")}
	if answer, err := before.Begin(t.Context(), request); err != nil || answer != nil {
		t.Fatalf("the first request: %v, %v", answer, err)
	}
	if err := before.Finish(t.Context(), request, idempotency.Answer{Status: 200, Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	var plain int
	if err := db.Pool.QueryRow(t.Context(), `select count(*) from idempotent_request where request_hash = $1`, sum[:]).Scan(&plain); err != nil || plain != 0 {
		t.Errorf("%d requests are stored by a hash without a key, want none (%v)", plain, err)
	}
	after := &idempotency.Service{DB: db, Keys: ring("b", "a")}
	for name, s := range map[string]*idempotency.Service{"the same key": before, "a rotated key": after} {
		if answer, err := s.Begin(t.Context(), request); err != nil || answer == nil || answer.Status != 200 {
			t.Errorf("%s: a repetition has %v, %v, want the first answer", name, answer, err)
		}
		other := request
		other.Hash = bytes.Repeat([]byte{1}, sha256.Size)
		if _, err := s.Begin(t.Context(), other); !errors.Is(err, idempotency.ErrReused) {
			t.Errorf("%s: another request has %v, want ErrReused", name, err)
		}
	}
}
