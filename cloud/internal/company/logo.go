package company

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"image"
	_ "image/jpeg" // formats of a logo
	_ "image/png"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/audit"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// Bounds of a logo. It is on every page, also on a poor network.
const (
	MaxLogo     = 32 << 10 // bytes
	maxLogoSide = 1024     // pixels
	minLogoSide = 16
)

// ErrLogo is returned for a picture that is not a PNG or JPEG within the bounds.
var ErrLogo = errors.New("company: not a logo")

// Logo is a picture that replaces the shipped mark.
type Logo struct {
	Type string // image/png or image/jpeg
	Data []byte
}

// Version names the content of the logo.
func (l Logo) Version() string {
	sum := sha256.Sum256(l.Data)
	return hex.EncodeToString(sum[:8])
}

// LogoPath is the path of the logo on the pages.
const LogoPath = "/logo"

// LogoAddress returns the path of the logo with its version, or nil without one.
func (s Snapshot) LogoAddress() *string {
	if s.Logo == nil {
		return nil
	}
	return new(LogoPath + "?v=" + s.Logo.Version())
}

// PutLogo replaces the logo. The picture is a PNG or JPEG; its type is read from its content.
func (s *Service) PutLogo(ctx context.Context, data []byte, by string) error {
	if len(data) > MaxLogo {
		return ErrLogo
	}
	size, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil || min(size.Width, size.Height) < minLogoSide || max(size.Width, size.Height) > maxLogoSide {
		return ErrLogo
	}
	if _, _, err := image.Decode(bytes.NewReader(data)); err != nil { // damaged
		return ErrLogo
	}
	logo := Logo{"image/" + format, data}
	entry := audit.Entry{Actor: by, Action: "company.logo", Detail: map[string]any{"type": logo.Type, "bytes": len(data), "version": logo.Version()}}
	return s.change(ctx, entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.PutCompanyLogo(ctx, tx, logo.Type, data)
	})
}

// RemoveLogo returns to the shipped mark.
func (s *Service) RemoveLogo(ctx context.Context, by string) error {
	entry := audit.Entry{Actor: by, Action: "company.logo", Detail: map[string]any{"removed": true}}
	return s.change(ctx, entry, func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return postgres.PutCompanyLogo(ctx, tx, "", nil)
	})
}
