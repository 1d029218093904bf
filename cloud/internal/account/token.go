package account

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Scope is what a token may be used for.
type Scope string

// The scopes of tokens.
const (
	ScopeRead    Scope = "read"    // every read
	ScopeBook    Scope = "book"    // reservations, messages, settings
	ScopeMoney   Scope = "money"   // payments and refunds
	ScopeDoors   Scope = "doors"   // doors and agents
	ScopeClimate Scope = "climate" // air conditioners and sensors
)

var allScopes = []Scope{ScopeRead, ScopeBook, ScopeMoney, ScopeDoors, ScopeClimate}

// TokenPrefix begins every token, so that scanners for leaked secrets find it.
const TokenPrefix = "yl_"

// useInterval is the interval at which the last use of a token is recorded.
const useInterval = time.Minute

// Errors of tokens.
var (
	ErrNoToken     = postgres.ErrNoToken
	ErrScope       = errors.New("account: a token needs at least one of the scopes read, book, money, doors, climate")
	ErrTokenExpiry = errors.New("account: the expiry of a token lies in the past")
)

// NewToken holds the data of a token to create.
type NewToken struct {
	Name      string
	Scopes    []Scope
	Branches  []string   // codes; empty: all branches, including future ones
	ExpiresAt *time.Time // nil: never
}

func (n NewToken) check(now time.Time) error {
	unknown := func(s Scope) bool { return !slices.Contains(allScopes, s) }
	if len(n.Scopes) == 0 || slices.ContainsFunc(n.Scopes, unknown) {
		return ErrScope
	}
	if n.ExpiresAt != nil && !n.ExpiresAt.After(now) {
		return ErrTokenExpiry
	}
	return nil
}

// AddToken creates a token and returns its id and secret, which is not kept and cannot be shown again. It returns ErrScope,
// ErrTokenExpiry or [postgres.ErrNoBranch].
func (s *Service) AddToken(ctx context.Context, n NewToken, by string) (id int64, secret string, err error) {
	secret = TokenPrefix + rand.Text()
	token := postgres.APIToken{Name: n.Name, Scopes: texts(n.Scopes), Branches: distinct(n.Branches), CreatedBy: by, ExpiresAt: n.ExpiresAt}
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
		if err := n.check(now); err != nil {
			return err
		}
		token.CreatedAt = now
		if id, err = postgres.InsertToken(ctx, tx, token, hashToken(secret)); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{
			Actor: by, Action: "token.add", Target: tokenActor(id, n.Name),
			Detail: map[string]any{"scopes": token.Scopes, "branches": token.Branches, "expiresAt": token.ExpiresAt},
		})
	})
	return id, secret, err
}

// Tokens returns all tokens, the newest first.
func (s *Service) Tokens(ctx context.Context) ([]postgres.APIToken, error) {
	return postgres.Tokens(ctx, s.DB.Pool)
}

// RemoveToken revokes a token, from the next request on every replica on, and what it has offered to agents. It returns ErrNoToken.
func (s *Service) RemoveToken(ctx context.Context, id int64, by string) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		name, err := postgres.DeleteToken(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := postgres.EndEnrollments(ctx, tx, tokenActor(id, name), now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Action: "token.remove", Target: tokenActor(id, name)})
	})
}

// Token returns the rights of the bearer of a token, or ErrNoToken. They are read at every request, so that a revoked
// token has none.
func (s *Service) Token(ctx context.Context, secret string) (Principal, error) {
	now := s.DB.Now()
	t, reach, err := postgres.TokenByHash(ctx, s.DB.Pool, hashToken(secret), now)
	if err != nil {
		return Principal{}, err
	}
	if t.LastUsedAt == nil || now.Sub(*t.LastUsedAt) >= useInterval {
		if err := postgres.NoteTokenUse(ctx, s.DB.Pool, t.ID, now); err != nil {
			return Principal{}, err
		}
	}
	p := Principal{LoginType: LoginAdmin, AdminLoginID: tokenActor(t.ID, t.Name), Role: Manager, Branches: reach, Scopes: []Scope{}}
	if len(t.Branches) == 0 {
		p.Role = HQ
	}
	for _, scope := range t.Scopes {
		p.Scopes = append(p.Scopes, Scope(scope))
	}
	return p, nil
}

// tokenPrefix begins the name of a token in the audit log. No login id contains a colon.
const tokenPrefix = "token:"

// tokenActor names a token in the audit log: names may repeat, the id does not.
func tokenActor(id int64, name string) string {
	return tokenPrefix + strconv.FormatInt(id, 10) + " " + strings.TrimSpace(name)
}

func hashToken(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

func texts(scopes []Scope) []string {
	list := make([]string, len(scopes))
	for i, scope := range scopes {
		list[i] = string(scope)
	}
	return distinct(list)
}

// distinct returns a sorted copy without duplicates; never nil.
func distinct(list []string) []string {
	list = append([]string{}, list...)
	slices.Sort(list)
	return slices.Compact(list)
}
