package account_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/account"
)

// Two accounts of the headquarters end each other at once, each in one of three ways: one of them stays.
func TestLastHeadquartersStays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.add(account.NewAdministrator{LoginID: "hq", Role: account.HQ})
	d.add(account.NewAdministrator{LoginID: "second", Role: account.HQ})
	if _, err := d.DB.Pool.Exec(t.Context(), `insert into branch (code) values ('gangnam')`); err != nil {
		t.Fatal(err)
	}
	ends := []func(login string) error{
		func(login string) error { return d.DisableAdministrator(t.Context(), login, "cli:test") },
		func(login string) error { return d.RemoveAdministrator(t.Context(), login, "cli:test") },
		func(login string) error {
			return d.ChangeRights(t.Context(), login, account.Manager, []string{"gangnam"}, "cli:test")
		},
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	rejected := map[string]bool{}
	for _, login := range []string{"hq", "second"} {
		for _, end := range ends {
			wg.Go(func() {
				err := end(login)
				mu.Lock()
				defer mu.Unlock()
				if errors.Is(err, account.ErrLastHeadquarters) {
					rejected[login] = true
				}
			})
		}
	}
	wg.Wait()
	var left int
	if err := d.DB.Pool.QueryRow(t.Context(), `select count(*) from administrator where role = 'hq' and disabled_at is null`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if left != 1 || len(rejected) != 1 {
		t.Errorf("%d accounts of the headquarters are left, want 1; rejected: %v", left, rejected)
	}
}
