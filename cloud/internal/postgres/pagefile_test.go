package postgres_test

import (
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

// TestPageFilesOfTheLastYear checks that files stay while a replica with them has started within a year.
func TestPageFilesOfTheLastYear(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	put := func(files ...string) {
		stored := map[string][]byte{}
		for _, file := range files {
			stored[file] = []byte("text of " + file)
		}
		if err := postgres.PutPageFiles(t.Context(), db.Pool, stored); err != nil {
			t.Fatal(err)
		}
	}
	put("a.js", "b.js", "c.js")
	if _, err := db.Pool.Exec(t.Context(), `update page_file set started_at = now() - case name when $1 then interval '366 days' else interval '364 days' end where name <> $2`, "a.js", "c.js"); err != nil {
		t.Fatal(err)
	}
	put("c.js", "d.js")
	for name, want := range map[string]string{"a.js": "", "b.js": "text of b.js", "c.js": "text of c.js", "d.js": "text of d.js", "e.js": ""} {
		if got, err := postgres.PageFile(t.Context(), db.Pool, name); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}
