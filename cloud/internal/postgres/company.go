package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// Errors of legal texts.
var (
	ErrNoLegalText     = errors.New("postgres: no such version of the texts")
	ErrLegalTextExists = errors.New("postgres: the version of the texts exists")
)

// CompanyRow is the stored profile of the operator; its fields are zero until they are set.
type CompanyRow struct {
	Profile     []byte // JSON
	Logo        []byte
	LogoType    string
	TextVersion string // the newest one
}

// Company returns the stored profile.
func Company(ctx context.Context, q Querier) (row CompanyRow, err error) {
	err = q.QueryRow(ctx, `
		select c.profile, c.logo, coalesce(c.logo_type, ''), coalesce((select t.version from legal_text t order by t.id desc limit 1), '')
		from (select) one left join company c on c.single`).Scan(&row.Profile, &row.Logo, &row.LogoType, &row.TextVersion)
	return row, err
}

// PutCompanyProfile stores the profile.
func PutCompanyProfile(ctx context.Context, q Querier, profile []byte) error {
	_, err := q.Exec(ctx, `insert into company (profile) values ($1) on conflict (single) do update set profile = excluded.profile`, profile)
	return err
}

// PutCompanyLogo stores the logo, or removes it if data is nil.
func PutCompanyLogo(ctx context.Context, q Querier, mediaType string, data []byte) error {
	_, err := q.Exec(ctx, `
		insert into company (logo, logo_type) values ($1, $2)
		on conflict (single) do update set logo = excluded.logo, logo_type = excluded.logo_type`, data, null(mediaType))
	return err
}

// LegalText is one version of the terms and the privacy policy, in Markdown.
type LegalText struct {
	Version          string
	TermsKo, TermsEn string
	PrivacyKo        string
	PrivacyEn        string
	CreatedAt        time.Time
	CreatedBy        string
}

// korea is the zone of the date from which a text is in force.
var korea = time.FixedZone("KST", 9*60*60)

// EffectiveFrom returns the date from which the version is in force.
func (t LegalText) EffectiveFrom() string { return t.CreatedAt.In(korea).Format(time.DateOnly) }

const legalColumns = `version, terms_ko, terms_en, privacy_ko, privacy_en, created_at, created_by`

// LegalTexts returns all versions, the newest first.
func LegalTexts(ctx context.Context, q Querier) ([]LegalText, error) {
	rows, err := q.Query(ctx, `select `+legalColumns+` from legal_text order by id desc`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[LegalText])
}

// LegalVersions returns the names of all versions, the newest first.
func LegalVersions(ctx context.Context, q Querier) ([]string, error) {
	rows, err := q.Query(ctx, `select version from legal_text order by id desc`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// LegalTextOf returns a version, or ErrNoLegalText.
func LegalTextOf(ctx context.Context, q Querier, version string) (LegalText, error) {
	rows, err := q.Query(ctx, `select `+legalColumns+` from legal_text where version = $1`, version)
	if err != nil {
		return LegalText{}, err
	}
	text, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[LegalText])
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNoLegalText
	}
	return text, err
}

// LockNewestLegalText returns the newest version, or zero, and lets no other transaction add one.
func LockNewestLegalText(ctx context.Context, q Querier) (LegalText, error) {
	if _, err := q.Exec(ctx, `lock table legal_text in share row exclusive mode`); err != nil {
		return LegalText{}, err
	}
	texts, err := LegalTexts(ctx, q)
	if err != nil || len(texts) == 0 {
		return LegalText{}, err
	}
	return texts[0], nil
}

// InsertLegalText stores a version, or returns ErrLegalTextExists.
func InsertLegalText(ctx context.Context, q Querier, t LegalText) error {
	tag, err := q.Exec(ctx, `insert into legal_text (`+legalColumns+`) values ($1, $2, $3, $4, $5, $6, $7) on conflict (version) do nothing`,
		t.Version, t.TermsKo, t.TermsEn, t.PrivacyKo, t.PrivacyEn, t.CreatedAt, t.CreatedBy)
	if err == nil && tag.RowsAffected() == 0 {
		err = ErrLegalTextExists
	}
	return err
}
