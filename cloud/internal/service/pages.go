package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/httpapi"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/web"
	"github.com/yeolda/yeolda/protocol"
)

// site returns the settings that pages use.
func site(set config.Settings) httpapi.Site {
	return httpapi.Site{PublicURL: set.HTTP.PublicURL, TossClientKey: set.Toss.ClientKey, TossScript: widget(set).ScriptURL}
}

// Facts returns the company of the environment.
func Facts(legal config.Legal) company.Facts {
	return company.Facts{
		Name: legal.Company, Representative: legal.Representative, Address: legal.Address, Phone: legal.Phone,
		Email: legal.Email, BusinessNumber: legal.BusinessNumber, MailOrderNumber: legal.MailOrderNumber,
		HostingProvider: legal.HostingProvider,
	}
}

// widget returns the sandbox's payment widget with demo keys, else the payment provider's.
func widget(set config.Settings) web.Widget {
	if set.Toss.WidgetSecretKey.Demo() {
		return web.SandboxWidget(set.Toss.URL)
	}
	return web.TossWidget()
}

// pages returns the handler of everything outside /api.
func (s *Service) pages(api *httpapi.API, below http.Handler) (http.Handler, error) {
	return web.New(web.Options{
		Data:        dataOf(below),
		PublicURL:   s.settings.HTTP.PublicURL,
		StageOrigin: s.settings.Sandbox.StageOrigin,
		Company:     s.company.Current,
		Widget:      widget(s.settings),
		Keys:        web.Keys{Find: s.findKey, Unlock: s.access.Request, Why: s.whyKey, Await: s.awaitDoor(api)},
		File:        func(ctx context.Context, name string) ([]byte, error) { return postgres.PageFile(ctx, s.db.Pool, name) },
		Photo:       api.Gallery.File,
		Log:         s.log,
		Now:         s.now,
	})
}

// storePageFiles stores the files of the pages for replicas of other versions.
func (s *Service) storePageFiles(ctx context.Context) error {
	files, err := web.Files()
	if err != nil {
		return err
	}
	if err := postgres.PutPageFiles(ctx, s.db.Pool, files); err != nil {
		return fmt.Errorf("store the files of the pages: %w", err)
	}
	return nil
}

// whyKey returns the sentence for a key that opens nothing, or "" if it cannot be found out.
func (s *Service) whyKey(ctx context.Context, key, language string) string {
	why, err := s.access.Why(ctx, key, "", access.Front)
	if err != nil {
		return ""
	}
	return why.Message(language)
}

func (s *Service) findKey(ctx context.Context, key string) (web.Key, error) {
	found, err := s.access.Lookup(ctx, key)
	if errors.Is(err, access.ErrInvalidKey) {
		return web.Key{}, web.ErrUnknownKey
	}
	if err != nil {
		return web.Key{}, err
	}
	branch, held := found.Branch, found.Reservation
	from, to := held.UnlockWindow()
	given, err := s.reserve.CompensationOf(ctx, held.ID)
	if err != nil {
		return web.Key{}, err
	}
	var stayPIN *web.StayPIN
	switch pin, err := s.access.PIN(ctx, found); {
	case err != nil:
		return web.Key{}, err
	case pin != nil:
		stayPIN = &web.StayPIN{Digits: pin.Digits, Ready: pin.Ready}
	}
	return web.Key{
		Branch: branch.Code, NameKo: branch.NameKo, NameEn: branch.NameEn, Address: branch.Address, Phone: branch.Phone,
		Room: held.RoomNo, Zone: branch.Zone, Start: held.Start, End: held.Stay().End, From: from, To: to, Pulse: protocol.DefaultPulse, Online: found.Online,
		Owner:           found.Key.Kind == booking.OwnerKey,
		ExtendedMinutes: given.Minutes, RefundedWon: given.Amount,
		StayPIN: stayPIN,
	}, nil
}

func (s *Service) awaitDoor(api *httpapi.API) func(r *http.Request, requestID, key string) (web.Result, error) {
	return func(r *http.Request, requestID, key string) (web.Result, error) {
		outcome, err := s.access.Await(r.Context(), api.ClientAddress(r), requestID, key)
		return web.Result{Opened: outcome.Status == access.Success, PIN: outcome.PIN, Code: outcome.Kind == access.OneTimeCode}, err
	}
}
