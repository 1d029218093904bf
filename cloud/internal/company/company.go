// Package company holds how the operator of an installation appears to guests: the facts that the law requires on the pages, the
// name, colour and logo, the prefix of messages, and the terms with the privacy policy.
//
// Until the headquarters have saved a profile, the facts come from the environment and the rest is as shipped.
package company

import (
	"context"
	"encoding/json"
	"fmt"
	"net/mail"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/notify"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Facts identify the operator as the law on electronic commerce requires. Empty fields are not shown.
type Facts struct {
	Name            string `json:"name"`
	Representative  string `json:"representative"`
	Address         string `json:"address"`
	Phone           string `json:"phone"`
	Email           string `json:"email"`
	BusinessNumber  string `json:"businessNumber"`
	MailOrderNumber string `json:"mailOrderNumber"`
	HostingProvider string `json:"hostingProvider"`
}

// fields returns the JSON names and values in the order of the form.
func (f *Facts) fields() []field {
	return []field{
		{"name", &f.Name}, {"representative", &f.Representative}, {"address", &f.Address}, {"phone", &f.Phone},
		{"email", &f.Email}, {"businessNumber", &f.BusinessNumber}, {"mailOrderNumber", &f.MailOrderNumber}, {"hostingProvider", &f.HostingProvider},
	}
}

// Missing returns the JSON names of empty fields.
func (f Facts) Missing() []string {
	missing := []string{}
	for _, one := range f.fields() {
		if *one.value == "" {
			missing = append(missing, one.name)
		}
	}
	return missing
}

type field struct {
	name  string
	value *string
}

// Brand is the name and the colour of the pages and messages. Empty fields are as shipped.
type Brand struct {
	NameKo        string `json:"nameKo"`
	NameEn        string `json:"nameEn"`
	MessagePrefix string `json:"messagePrefix"` // in brackets before the subject of messages; empty: the name
	Color         string `json:"color"`         // such as #1b64da
}

// Profile is what the headquarters edit in the console.
type Profile struct {
	Company Facts `json:"company"`
	Brand   Brand `json:"brand"`
}

// Bounds of a profile.
const (
	maxFact   = 200 // characters
	maxName   = 20
	maxPrefix = 20
)

// normalize trims and checks a profile. It returns a [booking.InvalidError] for the first field that is out of bounds.
func (p *Profile) normalize() error {
	fields := p.Company.fields()
	for _, one := range append(fields, field{"nameKo", &p.Brand.NameKo}, field{"nameEn", &p.Brand.NameEn}, field{"messagePrefix", &p.Brand.MessagePrefix}) {
		limit := maxFact
		switch one.name {
		case "nameKo", "nameEn":
			limit = maxName
		case "messagePrefix":
			limit = maxPrefix
		}
		*one.value = strings.TrimSpace(*one.value)
		if utf8.RuneCountInString(*one.value) > limit {
			return &booking.InvalidError{Field: one.name, Problem: fmt.Sprintf("it has more than %d characters", limit)}
		}
		if strings.ContainsFunc(*one.value, func(r rune) bool { return !unicode.IsPrint(r) }) {
			return &booking.InvalidError{Field: one.name, Problem: "it has characters that cannot be shown"}
		}
	}
	if strings.ContainsAny(p.Brand.MessagePrefix, "[]") {
		return &booking.InvalidError{Field: "messagePrefix", Problem: "it has brackets, which messages add"}
	}
	if e := p.Company.Email; e != "" {
		if address, err := mail.ParseAddress(e); err != nil || address.Address != e {
			return &booking.InvalidError{Field: "email", Problem: "it is not an e-mail address"}
		}
	}
	return p.Brand.checkColor()
}

// Snapshot is the profile, the logo and the version of the texts at a moment.
type Snapshot struct {
	Profile
	Logo    *Logo  // nil: the shipped mark
	Version string // of the current texts
	read    time.Time
}

// Names returns the names of the brand that pages show.
func (s Snapshot) Names() (ko, en string) {
	ko, en = s.Brand.NameKo, s.Brand.NameEn
	if ko == "" {
		ko = notify.DefaultBrand.Ko
	}
	switch {
	case en != "":
	case s.Brand.NameKo != "":
		en = ko
	default:
		en = notify.DefaultBrand.En
	}
	return ko, en
}

// maxAge is how long a replica shows a profile that another one has changed.
const (
	maxAge      = time.Second
	readTimeout = 2 * time.Second
)

// Service reads and changes the profile. It is safe for concurrent use.
type Service struct {
	DB    *postgres.DB
	First Facts // shown until a profile is saved

	mu    sync.Mutex
	known atomic.Pointer[Snapshot]
}

// Current returns the profile, at most maxAge old. Without the database it returns the last one that it has read.
func (s *Service) Current(ctx context.Context) Snapshot {
	known := s.known.Load()
	if known != nil && (time.Since(known.read) < maxAge || !s.mu.TryLock()) {
		return *known
	}
	if known == nil {
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	if now := s.known.Load(); now != known && now != nil {
		return *now
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	next, err := s.Read(ctx)
	if err != nil {
		if known == nil {
			return Snapshot{Profile: Profile{Company: s.First}, Version: shippedVersions[0]}
		}
		next = *known // try again after maxAge
	}
	next.read = time.Now()
	s.known.Store(&next)
	return next
}

// Read returns the profile as stored.
func (s *Service) Read(ctx context.Context) (Snapshot, error) {
	next := Snapshot{Profile: Profile{Company: s.First}, Version: shippedVersions[0]}
	row, err := postgres.Company(ctx, s.DB.Pool)
	if err != nil {
		return Snapshot{}, err
	}
	if row.Profile != nil {
		if err := json.Unmarshal(row.Profile, &next.Profile); err != nil {
			return Snapshot{}, fmt.Errorf("company profile: %w", err)
		}
	}
	if row.Logo != nil {
		next.Logo = &Logo{Type: row.LogoType, Data: row.Logo}
	}
	if row.TextVersion != "" {
		next.Version = row.TextVersion
	}
	return next, nil
}

// MessageBrand returns the names and the phone number that messages show.
func (s *Service) MessageBrand(ctx context.Context) notify.Brand {
	now := s.Current(ctx)
	ko, en := now.Names()
	return notify.Brand{Ko: ko, En: en, Prefix: now.Brand.MessagePrefix, Phone: now.Company.Phone}
}

// Change replaces the profile.
func (s *Service) Change(ctx context.Context, p Profile, by string) error {
	if err := p.normalize(); err != nil {
		return err
	}
	encoded, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return s.change(ctx, audit.Entry{Actor: by, Action: "company.change", Detail: map[string]any{"profile": p}}, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.PutCompanyProfile(ctx, tx, encoded)
	})
}

// change runs a change with its audit entry in one transaction.
func (s *Service) change(ctx context.Context, entry audit.Entry, do func(ctx context.Context, tx pgx.Tx, now time.Time) error) error {
	err := s.DB.InTx(ctx, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		if err := do(ctx, tx, now); err != nil {
			return err
		}
		return postgres.AppendAudit(ctx, tx, entry)
	})
	if err == nil {
		s.mu.Lock() // a read in progress may have the previous profile
		defer s.mu.Unlock()
		s.known.Store(nil)
	}
	return err
}
