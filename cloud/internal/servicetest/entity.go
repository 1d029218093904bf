package servicetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// entities returns the legal entities of the stack's database.
func (s *Stack) entities(keys *seal.Keyring) *company.Entities {
	return &company.Entities{
		DB: s.DB, Keys: keys, Company: &company.Service{DB: s.DB},
		First: company.Merchant{
			ClientKey: s.Settings.Toss.ClientKey, WidgetSecretKey: s.Settings.Toss.WidgetSecretKey.Reveal(), APISecretKey: s.Settings.Toss.APISecretKey.Reveal(),
		},
		Rejected: func(context.Context, string) bool { return false }, Lacks: func(context.Context, string, string) bool { return false },
	}
}

// Entities returns the legal entities of the stack's database, which open no keys.
func (s *Stack) Entities(t testing.TB) *company.Entities {
	t.Helper()
	return s.entities(nil)
}

// AddEntity adds a legal entity with the keys of a merchant of the sandbox, from 2 on, which sells at the branches from now on.
// It returns the client key of its widget.
func (s *Stack) AddEntity(t testing.TB, code string, merchant int, branches ...string) (clientKey string) {
	t.Helper()
	keys, err := s.Settings.Keyring()
	if err != nil {
		t.Fatal(err)
	}
	entities := s.entities(keys)
	key := func(first string) string { return fmt.Sprintf("%s_%d", first, merchant) }
	change := company.EntityChange{
		Code: code, Facts: company.Facts{Name: "주식회사 " + code, BusinessNumber: fmt.Sprintf("123-45-%05d", merchant)},
		ClientKey: key(entities.First.ClientKey), WidgetSecretKey: key(entities.First.WidgetSecretKey), APISecretKey: key(entities.First.APISecretKey),
	}
	if err := entities.Put(t.Context(), change, "admin:hq"); err != nil {
		t.Fatal(err)
	}
	s.Assign(t, code, branches...)
	return change.ClientKey
}

// Assign makes a legal entity sell at branches from now on; empty: that of the settings.
func (s *Stack) Assign(t testing.TB, code string, branches ...string) {
	t.Helper()
	for _, name := range branches {
		branch, err := s.DB.Branch(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.entities(nil).Assign(t.Context(), branch, code, "admin:hq"); err != nil {
			t.Fatal(err)
		}
	}
}
