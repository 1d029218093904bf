package service_test

import (
	"regexp"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestPagesOfAnotherVersion asks a replica for the files that the document of another version names: those that the other one stored at its start.
func TestPagesOfAnotherVersion(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	const script = "console.debug('the version of before')"
	if err := postgres.PutPageFiles(t.Context(), s.DB.Pool, map[string][]byte{"customer-BEFORE23.js": []byte(script)}); err != nil {
		t.Fatal(err)
	}
	if status, body := read(t, s.Root+"/assets/customer-BEFORE23.js"); status != 200 || body != script {
		t.Errorf("a file of the version of before: %d %q, want 200 %q", status, body, script)
	}
	for _, path := range []string{"/", "/my", "/console"} {
		_, document := read(t, s.Root+path)
		files := regexp.MustCompile(`/assets/([^"]+)`).FindAllStringSubmatch(document, -1)
		if len(files) < 2 {
			t.Errorf("%s names the files %v", path, files)
		}
		for _, file := range files {
			if data, err := postgres.PageFile(t.Context(), s.DB.Pool, file[1]); err != nil || data == nil {
				t.Errorf("replicas of other versions have no %s of %s (%v)", file[1], path, err)
			}
		}
	}
}
