package soak

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// The keys of the sandbox's second merchant, for the legal entity that sells at every other branch.
const (
	entity       = "second"
	clientKey    = "test_gck_yeolda_demo_2"
	widgetSecret = "test_gsk_yeolda_demo_2"
	apiSecret    = "test_sk_yeolda_demo_2"
)

// ofEntity reports whether the second legal entity sells at a branch.
func (s *Soak) ofEntity(branch string) bool {
	return slices.IndexFunc(s.world.Branches, func(b world.Branch) bool { return b.Code == branch })%2 == 1
}

// clientKey returns the client key of the payment widget of a branch; empty: that of the settings.
func (s *Soak) clientKey(branch string) string {
	if s.ofEntity(branch) {
		return clientKey
	}
	return ""
}

// addEntity makes a second legal entity sell at every other branch.
func (s *Soak) addEntity(ctx context.Context) error {
	admin := s.newClient()
	send := func(method, path string, body any) error {
		if r := admin.ask(ctx, 0, method, path, body); r.status != http.StatusOK {
			return fmt.Errorf("%s %s: %d %s", method, path, r.status, r.text)
		}
		return nil
	}
	if err := send(http.MethodPost, "/admin/login", map[string]string{"id": world.AdminID, "password": world.AdminPassword}); err != nil {
		return err
	}
	facts := map[string]any{
		"company": map[string]string{"name": "주식회사 둘째"}, "clientKey": clientKey, "widgetSecretKey": widgetSecret, "apiSecretKey": apiSecret,
	}
	if err := send(http.MethodPut, "/v2/admin/entities/"+entity, facts); err != nil {
		return err
	}
	for _, b := range s.world.Branches {
		if !s.ofEntity(b.Code) {
			continue
		}
		if err := send(http.MethodPut, "/v2/admin/branches/"+b.Code+"/entity", map[string]string{"entity": entity}); err != nil {
			return err
		}
	}
	return nil
}
