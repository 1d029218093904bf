package company

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/yuin/goldmark"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// shippedVersions are the versions of the texts in this directory, the newest first. Guests have agreed to each of them, so a
// change of a text is a new version, and the directory of the previous version keeps the texts that have changed since.
var shippedVersions = []string{"2026-11-24", "2026-11-23", "2026-11-22"}

// Errors of texts.
var (
	ErrNoText     = postgres.ErrNoLegalText
	ErrTextExists = postgres.ErrLegalTextExists
)

//go:embed texts
var shippedFiles embed.FS

// shipped holds the texts of shippedVersions.
var shipped = func() (texts []Text) {
	for _, version := range shippedVersions {
		texts = append(texts, readShipped(version))
	}
	return texts
}()

// readShipped returns a shipped version. It panics on an error, because the files are embedded in the program.
func readShipped(version string) Text {
	read := func(name string) string {
		b, err := shippedFiles.ReadFile("texts/" + version + "/" + name + ".markdown")
		if errors.Is(err, fs.ErrNotExist) {
			b, err = shippedFiles.ReadFile("texts/" + name + ".markdown")
		}
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	since, err := time.Parse(time.DateOnly, version)
	if err != nil {
		panic(err)
	}
	return Text{Version: version, CreatedAt: since, TermsKo: read("terms.ko"), TermsEn: read("terms.en"), PrivacyKo: read("privacy.ko"), PrivacyEn: read("privacy.en")}
}

// Text is one version of the terms and the privacy policy in Markdown, with the placeholders {company}, {phone} and {email}. A
// version never changes. An empty English text means that the Korean one is shown.
type Text = postgres.LegalText

// MaxText is the number of characters of one text.
const MaxText = 20_000

var versionPattern = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.-]{0,19}$`)

// Texts returns all versions, the newest first, the shipped ones last. A saved version comes before a shipped one of the same name,
// which an update may have added since: guests of this installation have agreed to the saved one.
func (s *Service) Texts(ctx context.Context) ([]Text, error) {
	texts, err := postgres.LegalTexts(ctx, s.DB.Pool)
	if err != nil {
		return nil, err
	}
	return withShipped(texts, shipped, func(t Text) string { return t.Version }), nil
}

// Versions returns the names of all versions, the newest first.
func (s *Service) Versions(ctx context.Context) ([]string, error) {
	saved, err := postgres.LegalVersions(ctx, s.DB.Pool)
	if err != nil {
		return nil, err
	}
	return withShipped(saved, shippedVersions, func(version string) string { return version }), nil
}

// withShipped returns the saved versions, and after them the shipped ones whose name is not among those.
func withShipped[T any](saved, shipped []T, name func(T) string) []T {
	all := slices.Clone(saved)
	for _, one := range shipped {
		if !slices.ContainsFunc(saved, func(t T) bool { return name(t) == name(one) }) {
			all = append(all, one)
		}
	}
	return all
}

// Text returns a version, or the current one if version is empty. It returns ErrNoText.
func (s *Service) Text(ctx context.Context, version string) (Text, error) {
	if version == "" {
		version = s.Current(ctx).Version
	}
	text, err := postgres.LegalTextOf(ctx, s.DB.Pool, version)
	if i := slices.Index(shippedVersions, version); errors.Is(err, ErrNoText) && i >= 0 {
		return shipped[i], nil
	}
	return text, err
}

// AddText makes a version the current one. Empty Korean texts are taken from the previous version, with their English ones.
func (s *Service) AddText(ctx context.Context, text Text, by string) error {
	if !versionPattern.MatchString(text.Version) {
		return &booking.InvalidError{Field: "version", Problem: "it is not a version such as 2026-12-01"}
	}
	if slices.Contains(shippedVersions, text.Version) {
		return ErrTextExists
	}
	for name, value := range map[string]string{"termsKo": text.TermsKo, "termsEn": text.TermsEn, "privacyKo": text.PrivacyKo, "privacyEn": text.PrivacyEn} {
		if utf8.RuneCountInString(value) > MaxText {
			return &booking.InvalidError{Field: name, Problem: fmt.Sprintf("it has more than %d characters", MaxText)}
		}
	}
	if text.TermsKo == "" && text.PrivacyKo == "" {
		return &booking.InvalidError{Field: "termsKo", Problem: "neither terms nor a privacy policy is given"}
	}
	entry := audit.Entry{Actor: by, Action: "company.text", Target: text.Version}
	return s.change(ctx, entry, func(ctx context.Context, tx pgx.Tx, now time.Time) error {
		before, err := postgres.LockNewestLegalText(ctx, tx)
		if err != nil {
			return err
		}
		if before.Version == "" {
			before = shipped[0]
		}
		if text.TermsKo == "" {
			text.TermsKo, text.TermsEn = before.TermsKo, before.TermsEn
		}
		if text.PrivacyKo == "" {
			text.PrivacyKo, text.PrivacyEn = before.PrivacyKo, before.PrivacyEn
		}
		text.CreatedAt, text.CreatedBy = now, by
		return postgres.InsertLegalText(ctx, tx, text)
	})
}

// trailing matches what a missing placeholder leaves at the end of a paragraph.
var trailing = regexp.MustCompile(`[,·\s]+(</p>)`)

// HTML renders a text. Raw HTML and addresses such as javascript: in the text are left out. The company's name is Korean, on an
// English page too.
func HTML(markdown string, facts Facts, brand string) (string, error) {
	var page bytes.Buffer
	if err := goldmark.Convert([]byte(markdown), &page); err != nil {
		return "", err
	}
	name := html.EscapeString(brand)
	if facts.Name != "" {
		name = `<span lang="ko">` + html.EscapeString(facts.Name) + `</span>`
	}
	filled := strings.NewReplacer("{company}", name, "{phone}", html.EscapeString(facts.Phone), "{email}", html.EscapeString(facts.Email)).Replace(page.String())
	return trailing.ReplaceAllString(filled, "$1"), nil
}
