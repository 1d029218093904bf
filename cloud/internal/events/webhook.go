package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// Errors of webhooks.
var (
	ErrNoWebhook = postgres.ErrNoWebhook
	ErrType      = errors.New("events: unknown type of event")
	ErrForeign   = errors.New("events: another principal added the webhook")
	ErrTooMany   = errors.New("events: too many webhooks")
)

// maxWebhooks bounds the receivers, because each change is delivered to all of them.
const maxWebhooks = 50

// secretPurpose seals the signing secrets.
const secretPurpose = "webhook-secret"

// typeForm matches a type of event, or a family with or without its asterisk.
var typeForm = regexp.MustCompile(`^(reservation|door-request|refund|alert|branch)(\.([a-z-]+|\*))?$`)

// Webhooks manages receivers and delivers events to them by the convention of Standard Webhooks.
type Webhooks struct {
	DB   *postgres.DB
	Keys *seal.Keyring
	Log  *slog.Logger
	// Ahead returns by how much the database's clock is ahead of the machine's; nil: they agree.
	Ahead func() time.Duration

	guard  guard
	client *http.Client

	mu      sync.Mutex
	busy    map[int64]bool // webhooks that this process serves
	serving sync.WaitGroup
}

// NewWebhooks returns webhooks that may also have receivers in the given networks.
func NewWebhooks(db *postgres.DB, keys *seal.Keyring, log *slog.Logger, allow []netip.Prefix) *Webhooks {
	g := guard(allow)
	return &Webhooks{DB: db, Keys: keys, Log: log, guard: g, client: g.client(), busy: map[int64]bool{}}
}

// NewWebhook holds the data of a webhook to add.
type NewWebhook struct {
	URL      string
	Types    []string // a type, or a family such as reservation.*; empty: all
	Branches []string // codes; empty: all
}

// Add adds a webhook and returns its id and its signing secret, which cannot be shown again. It returns ErrAddress, ErrType,
// ErrTooMany or [postgres.ErrNoBranch].
func (s *Webhooks) Add(ctx context.Context, n NewWebhook, by string) (id int64, secret string, err error) {
	if err := s.guard.check(ctx, n.URL); err != nil {
		return 0, "", err
	}
	types, err := familiesOf(n.Types)
	if err != nil {
		return 0, "", err
	}
	key := make([]byte, 32)
	rand.Read(key) // never fails: crypto/rand.Read aborts the program instead
	secret = "whsec_" + base64.StdEncoding.EncodeToString(key)
	branches := append([]string{}, n.Branches...)
	slices.Sort(branches)
	err = s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) (err error) {
		if n, err := postgres.CountWebhooks(ctx, tx); err != nil || n >= maxWebhooks {
			return cmp.Or(err, ErrTooMany)
		}
		id, err = postgres.InsertWebhook(ctx, tx, postgres.Webhook{
			URL: n.URL, Types: types, Branches: slices.Compact(branches), Secret: s.Keys.Seal(secretPurpose, []byte(secret)), CreatedBy: by, CreatedAt: now,
		})
		if err != nil {
			return err
		}
		return s.note(ctx, tx, id, "webhook.add", by, map[string]any{"host": host(n.URL), "types": types, "branches": n.Branches})
	})
	return id, secret, err
}

// familiesOf returns distinct types; a family without its asterisk receives it.
func familiesOf(types []string) ([]string, error) {
	list := []string{}
	for _, text := range types {
		parts := typeForm.FindStringSubmatch(text)
		if parts == nil {
			return nil, ErrType
		}
		if parts[2] == "" {
			text += ".*"
		}
		list = append(list, text)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// host is the part of an address that may be stored permanently: a path may contain a secret.
func host(text string) string {
	to, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return to.Host
}

// List returns all webhooks, the newest first.
func (s *Webhooks) List(ctx context.Context) ([]postgres.Webhook, error) {
	return postgres.Webhooks(ctx, s.DB.Pool)
}

// AddedBy returns ErrForeign unless a principal has added a webhook, or ErrNoWebhook.
func (s *Webhooks) AddedBy(ctx context.Context, id int64, by string) error {
	creator, err := postgres.WebhookCreator(ctx, s.DB.Pool, id)
	if err == nil && creator != by {
		return ErrForeign
	}
	return err
}

// Deliveries returns the deliveries of a webhook before a place (0: the newest), the newest first. It returns ErrNoWebhook.
func (s *Webhooks) Deliveries(ctx context.Context, id, before int64, limit int) ([]postgres.Delivery, error) {
	return postgres.Deliveries(ctx, s.DB.Pool, id, before, limit)
}

// Enable switches a webhook. A webhook that is enabled receives everything that waits. It returns ErrNoWebhook.
func (s *Webhooks) Enable(ctx context.Context, id int64, enabled bool, by string) error {
	return s.change(ctx, id, "webhook.switch", by, map[string]any{"enabled": enabled}, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		return postgres.EnableWebhook(ctx, tx, id, enabled, now)
	})
}

// Remove deletes a webhook. It returns ErrNoWebhook.
func (s *Webhooks) Remove(ctx context.Context, id int64, by string) error {
	return s.change(ctx, id, "webhook.remove", by, nil, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.DeleteWebhook(ctx, tx, id)
	})
}

// Replay delivers all events after a place once more. It returns ErrNoWebhook or ErrGone.
func (s *Webhooks) Replay(ctx context.Context, id, after int64, by string) error {
	return s.change(ctx, id, "webhook.replay", by, map[string]any{"after": after}, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.ReplayWebhook(ctx, tx, id, after)
	})
}

func (s *Webhooks) change(ctx context.Context, id int64, action, by string, detail any, do func(context.Context, pgx.Tx, time.Time) error) error {
	return s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := do(ctx, tx, now); err != nil {
			return err
		}
		return s.note(ctx, tx, id, action, by, detail)
	})
}

func (s *Webhooks) note(ctx context.Context, tx pgx.Tx, id int64, action, by string, detail any) error {
	return postgres.AppendAudit(ctx, tx, audit.Entry{Actor: by, Action: action, Target: strconv.FormatInt(id, 10), Detail: detail})
}
