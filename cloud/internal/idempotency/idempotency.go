// Package idempotency remembers the answers of requests with an Idempotency-Key, so that a repeated request is executed at
// most once (docs/specification.md, Tokens 6).
package idempotency

import (
	"context"
	"encoding/hex"
	"encoding/json"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Errors of a repeated key.
var (
	ErrReused  = postgres.ErrKeyReused  // the key belongs to another request
	ErrPending = postgres.ErrKeyPending // the first request is in progress, or its outcome was lost with its process
)

// purpose seals answers, which may hold keys and cookies.
const purpose = "idempotent-answer"

// requestPurpose is the purpose of the MACs of requests.
const requestPurpose = "idempotent-request"

// Answer is the answer of a request.
type Answer struct {
	Status int                 `json:"status"`
	Header map[string][]string `json:"header"`
	Body   []byte              `json:"body"`
}

// A Request is identified by its key, which each principal chooses freely, and by a hash of method, address and body. The hash is
// stored as a MAC: a body may hold a password or a phone number, which could be found by trying all candidates.
type Request struct {
	Principal string
	Key       string
	Hash      []byte
}

// Service keeps the answers for [postgres.IdempotencyTTL].
type Service struct {
	DB   *postgres.DB
	Keys *seal.Keyring
}

// Begin claims the key of a request. It returns nil for the first request and the first one's answer for a repetition, or
// ErrReused or ErrPending.
func (s *Service) Begin(ctx context.Context, r Request) (*Answer, error) {
	sealed, err := postgres.BeginIdempotent(ctx, s.DB.Pool, r.Principal, r.Key, s.hashes(r), s.DB.Now())
	if err != nil || sealed == nil {
		return nil, err
	}
	plain, err := s.Keys.Open(purpose, sealed)
	if err != nil {
		return nil, err
	}
	answer := new(Answer)
	return answer, json.Unmarshal(plain, answer)
}

// hashes returns what may be stored for a request, that under the sealing key first. The last one is of the previous release.
func (s *Service) hashes(r Request) [][]byte {
	return append(s.Keys.MACs(requestPurpose, string(r.Hash)), r.Hash)
}

// Finish stores the answer of the first request. If the process dies before, the key stays without an answer and the
// request is never repeated.
func (s *Service) Finish(ctx context.Context, r Request, answer Answer) error {
	plain, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return postgres.FinishIdempotent(ctx, s.DB.Pool, r.Principal, r.Key, s.Keys.Seal(purpose, plain))
}

// Release frees the key of a request that changed nothing.
func (s *Service) Release(ctx context.Context, r Request) error {
	return postgres.FinishIdempotent(ctx, s.DB.Pool, r.Principal, r.Key, nil)
}

// Pseudonym names a guest among principals.
func (s *Service) Pseudonym(guest string) string {
	return hex.EncodeToString(s.Keys.MAC("idempotency", guest))
}
