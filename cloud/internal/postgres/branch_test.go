package postgres_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
)

// A list of all branches shows the changes of other replicas, branches that were added and branches that were deleted.
func TestBranches(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec := func(sql string) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	want := func(want string) {
		t.Helper()
		branches, err := db.Branches(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range branches {
			got = append(got, b.Code+" "+b.NameKo)
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("branches %q, want %q", got, want)
		}
	}
	want("")
	exec(`insert into branch (code, name_ko) values ('b', '나'), ('a', '가')`)
	want("b 나, a 가")
	exec(`update branch set name_ko = '다' where code = 'b'`)
	exec(`insert into branch (code, name_ko) values ('c', '라')`)
	want("b 다, a 가, c 라")
	exec(`delete from branch where code = 'b'`)
	want("a 가, c 라")
}

// A list is complete while another request reads a branch that has changed.
func TestBranchesDuringChanges(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	if _, err := db.Pool.Exec(t.Context(), `insert into branch (code) values ('a'), ('b')`); err != nil {
		t.Fatal(err)
	}
	var lists sync.WaitGroup
	for range 4 {
		lists.Go(func() {
			for range 100 {
				if _, err := db.Pool.Exec(t.Context(), `update branch set name_ko = name_ko || '.' where code = 'a'`); err != nil {
					t.Error(err)
				}
				if branches, err := db.Branches(t.Context()); err != nil || len(branches) != 2 {
					t.Errorf("%d branches, %v, want 2", len(branches), err)
				}
			}
		})
	}
	lists.Wait()
}

// BenchmarkBranches lists 10,000 branches with a room each that have not changed since the last list: at once, and one after the other.
func BenchmarkBranches(b *testing.B) {
	db := pgtest.New(b)
	for _, sql := range []string{
		`insert into branch (code) select 'b' || n from generate_series(1, 10000) n`,
		`insert into room (branch_id, no, machine, grade, min10, min30, min60) select id, 1, 'm', 'g', 1000, 3000, 5000 from branch`,
	} {
		if _, err := db.Pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := db.Branches(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("at-once", func(b *testing.B) {
		for b.Loop() {
			if _, err := db.Branches(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("each", func(b *testing.B) {
		for b.Loop() {
			codes, err := db.BranchCodes(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			var branches []booking.Branch
			for _, code := range codes {
				branch, err := db.Branch(b.Context(), code)
				if err != nil {
					b.Fatal(err)
				}
				branches = append(branches, branch)
			}
			if len(branches) != len(codes) {
				b.Fatalf("%d branches, want %d", len(branches), len(codes))
			}
		}
	})
}
