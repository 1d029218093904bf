package company

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/toss"
)

// Errors of legal entities.
var (
	ErrNoEntity    = errors.New("company: no such legal entity")
	ErrKeyRejected = errors.New("company: the payment provider rejects a secret key")
	ErrKeyInUse    = errors.New("company: a secret key belongs to another legal entity")
	ErrOtherKeys   = errors.New("company: the merchant of a secret key does not have the payments of the legal entity")
	ErrEntityUsed  = errors.New("company: a branch sells for the legal entity")
	ErrEntityOpen  = errors.New("company: a payment or refund of the legal entity is open")
	ErrRetired     = errors.New("company: the legal entity is retired")
)

// Entity is a legal entity that sells at some branches. The entity of the settings has no code.
type Entity struct {
	Code      string
	Facts     Facts
	ClientKey string    // of the payment widget
	UpdatedAt time.Time // zero for that of the settings
	Branches  []string  // codes
	RetiredAt time.Time // zero: in use
}

// EntityChange is what the headquarters enter about an entity. Empty secret keys keep those that are stored.
type EntityChange struct {
	Code            string
	Facts           Facts
	ClientKey       string
	WidgetSecretKey string
	APISecretKey    string
}

// Merchant holds the keys of the settings.
type Merchant struct {
	ClientKey       string
	WidgetSecretKey string
	APISecretKey    string
}

// Entities reads and changes the legal entities beside that of the settings.
type Entities struct {
	DB      *postgres.DB
	Keys    *seal.Keyring
	Company *Service
	First   Merchant // the keys of the settings
	// Rejected reports whether the payment provider rejects a secret key.
	Rejected func(ctx context.Context, secret string) bool
	// Lacks reports whether the merchant of a secret key has no payment with a payment key.
	Lacks func(ctx context.Context, secret, paymentKey string) bool
}

// Secret returns the secret key of a key set, for [toss.Config].
func (s *Entities) Secret(ctx context.Context, keys toss.KeySet) (string, error) {
	row, err := postgres.LegalEntityOf(ctx, s.DB.Pool, keys.Merchant())
	if err != nil {
		return "", fmt.Errorf("key set %s: %w", keys, err)
	}
	sealed := row.WidgetKey
	if keys.Kind() == toss.API {
		sealed = row.APIKey
	}
	secret, err := s.Keys.Open(postgres.EntityKeyPurpose, sealed)
	if err != nil {
		return "", fmt.Errorf("key set %s: %w", keys, err)
	}
	return string(secret), nil
}

// Entity returns an entity by its code; empty: that of the settings.
func (s *Entities) Entity(ctx context.Context, code string) (Entity, error) {
	if code == "" {
		return Entity{Facts: s.Company.Current(ctx).Company, ClientKey: s.First.ClientKey}, nil
	}
	row, err := postgres.LegalEntityOf(ctx, s.DB.Pool, code)
	if errors.Is(err, postgres.ErrNoEntity) {
		err = ErrNoEntity
	}
	if err != nil {
		return Entity{}, err
	}
	return toEntity(row)
}

// List returns the entities by code, without that of the settings.
func (s *Entities) List(ctx context.Context) ([]Entity, error) {
	rows, err := postgres.LegalEntities(ctx, s.DB.Pool)
	if err != nil {
		return nil, err
	}
	list := make([]Entity, 0, len(rows))
	for _, row := range rows {
		e, err := toEntity(row)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func toEntity(row postgres.LegalEntity) (Entity, error) {
	e := Entity{Code: row.Code, ClientKey: row.ClientKey, UpdatedAt: row.UpdatedAt, Branches: row.Branches}
	if row.RetiredAt != nil {
		e.RetiredAt = *row.RetiredAt
	}
	if err := json.Unmarshal(row.Facts, &e.Facts); err != nil {
		return e, fmt.Errorf("legal entity %s: %w", row.Code, err)
	}
	return e, nil
}

var (
	entityCode = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,29}$`)
	clientKey  = regexp.MustCompile(`^(test|live)_g?ck_\w+$`)
	widgetKey  = regexp.MustCompile(`^(test|live)_gsk_\w+$`)
	apiKey     = regexp.MustCompile(`^(test|live)_sk_\w+$`)
)

// MaxKey bounds the keys of a legal entity, in characters.
const MaxKey = 200

// check returns a [booking.InvalidError] for the first field that is not valid.
func (c *EntityChange) check() error {
	if !entityCode.MatchString(c.Code) {
		return &booking.InvalidError{Field: "entity", Problem: "it is not 1 to 30 of a-z, 0-9 and -, beginning with a letter or digit"}
	}
	for _, key := range []struct {
		field, value string
		pattern      *regexp.Regexp
		optional     bool
	}{
		{"clientKey", c.ClientKey, clientKey, false},
		{"widgetSecretKey", c.WidgetSecretKey, widgetKey, true},
		{"apiSecretKey", c.APISecretKey, apiKey, true},
	} {
		if key.value == "" && key.optional {
			continue
		}
		if len(key.value) > MaxKey || !key.pattern.MatchString(key.value) {
			return &booking.InvalidError{Field: key.field, Problem: "it is not a key of that kind"}
		}
	}
	p := Profile{Company: c.Facts}
	if err := p.normalize(); err != nil {
		return err
	}
	c.Facts = p.Company
	return nil
}

// Put adds an entity, or changes the one with its code. A new entity needs both secret keys.
//
// Errors: *booking.InvalidError, ErrKeyInUse, ErrKeyRejected, ErrOtherKeys.
func (s *Entities) Put(ctx context.Context, c EntityChange, by string) error {
	if err := c.check(); err != nil {
		return err
	}
	for keys, secret := range map[toss.KeySet]string{toss.Widget.Of(c.Code): c.WidgetSecretKey, toss.API.Of(c.Code): c.APISecretKey} {
		if secret == "" {
			continue
		}
		if s.Rejected(ctx, secret) {
			return ErrKeyRejected
		}
		paid, err := postgres.LatestPayment(ctx, s.DB.Pool, string(keys))
		if err != nil {
			return err
		}
		if paid != "" && s.Lacks(ctx, secret, paid) {
			return ErrOtherKeys
		}
	}
	facts, err := json.Marshal(c.Facts)
	if err != nil {
		return err
	}
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := postgres.LockLegalEntities(ctx, tx); err != nil {
			return err
		}
		row, err := s.stored(ctx, tx, c)
		if err != nil {
			return err
		}
		row.Code, row.Facts, row.ClientKey, row.UpdatedAt = c.Code, facts, c.ClientKey, now
		if err := postgres.PutLegalEntity(ctx, tx, row); err != nil {
			return err
		}
		detail := map[string]any{"company": c.Facts, "clientKey": c.ClientKey, "newKeys": c.WidgetSecretKey != "" || c.APISecretKey != ""}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Action: "entity.change", Target: c.Code, Detail: detail})
	})
}

// stored returns the row of an entity with the keys of a change. Two entities never share a key: their books would be the same.
func (s *Entities) stored(ctx context.Context, q postgres.Querier, c EntityChange) (row postgres.LegalEntity, err error) {
	rows, err := postgres.LegalEntities(ctx, q)
	if err != nil {
		return row, err
	}
	used := map[string]bool{s.First.WidgetSecretKey: true, s.First.APISecretKey: true, s.First.ClientKey: true}
	for _, other := range rows {
		if other.Code == c.Code {
			row = other
			continue
		}
		used[other.ClientKey] = true
		for _, sealed := range [][]byte{other.WidgetKey, other.APIKey} {
			if secret, err := s.Keys.Open(postgres.EntityKeyPurpose, sealed); err == nil { // otherwise its encryption key is lost (yeolda adopt)
				used[string(secret)] = true
			}
		}
	}
	if used[c.ClientKey] {
		return row, ErrKeyInUse
	}
	for _, key := range []struct {
		field, secret string
		into          *[]byte
	}{{"widgetSecretKey", c.WidgetSecretKey, &row.WidgetKey}, {"apiSecretKey", c.APISecretKey, &row.APIKey}} {
		switch {
		case used[key.secret]:
			return row, ErrKeyInUse
		case key.secret != "":
			*key.into = s.Keys.Seal(postgres.EntityKeyPurpose, []byte(key.secret))
		case *key.into == nil:
			return row, &booking.InvalidError{Field: key.field, Problem: "a new legal entity needs it"}
		}
	}
	return row, nil
}

// Retire retires an entity whose contract with the provider has ended, or takes it back into use. Its payments keep its name and keys, but
// its books are not compared any more. Nothing changes if it is so already.
//
// Errors: ErrNoEntity, ErrEntityUsed, ErrEntityOpen.
func (s *Entities) Retire(ctx context.Context, code string, retired bool, by string) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		at, action := (*time.Time)(nil), "entity.restore"
		if retired {
			at, action = &now, "entity.retire"
		}
		changed, err := postgres.RetireLegalEntity(ctx, tx, code, at)
		if errors.Is(err, postgres.ErrNoEntity) {
			return ErrNoEntity
		}
		if err != nil || !changed {
			return err
		}
		if retired {
			if err := s.checkUnused(ctx, tx, code, now); err != nil {
				return err
			}
			if err := postgres.SettleProviderKeys(ctx, tx, code, "the legal entity is retired", by, now); err != nil {
				return err
			}
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Action: action, Target: code})
	})
}

// checkUnused returns ErrEntityUsed or ErrEntityOpen for an entity that may not be retired.
func (s *Entities) checkUnused(ctx context.Context, tx pgx.Tx, code string, now time.Time) error {
	row, err := postgres.LegalEntityOf(ctx, tx, code)
	if err != nil {
		return err
	}
	if len(row.Branches) > 0 {
		return ErrEntityUsed
	}
	open, err := postgres.LegalEntityOpen(ctx, tx, code, now)
	if err == nil && open {
		err = ErrEntityOpen
	}
	return err
}

// Assign sets the entity that sells at a branch from now on; empty: that of the settings. Orders that exist keep theirs.
func (s *Entities) Assign(ctx context.Context, branch booking.Branch, code, by string) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		switch err := postgres.SetBranchEntity(ctx, tx, branch.ID, code); {
		case errors.Is(err, postgres.ErrNoEntity):
			return ErrNoEntity
		case errors.Is(err, postgres.ErrEntityRetired):
			return ErrRetired
		case err != nil:
			return err
		}
		return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, BranchID: &branch.ID, Action: "entity.assign", Target: code, Detail: map[string]any{"from": branch.LegalEntity, "to": code}})
	})
}
