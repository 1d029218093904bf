package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestLostMachine kills a service under load at a random moment, deletes its data, and restores them from the archive with
// one command. At most a minute may be lost, and the key of a guest still opens the door.
func TestLostMachine(t *testing.T) {
	if os.Getenv("YEOLDA_TEST_LOST_MACHINE") == "" {
		t.Skip("takes some minutes: set YEOLDA_TEST_LOST_MACHINE")
	}
	place := dataDir(t)
	key, err := prepare(t, place, "").Command(t.Context(), "archive", "key")
	if err != nil {
		t.Fatal(err)
	}
	s := startStack(t, map[string]string{"YEOLDA_ARCHIVE": place, "YEOLDA_ARCHIVE_KEY": strings.TrimSpace(key), "YEOLDA_RATE_LIMITS": "off"})
	guest := newBrowser(t, s)
	door := guest.buy(s, "gangnam", 2, 25000, "01011112222")

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	requests := 0
	load.Go(func() {
		for ; ctx.Err() == nil; requests++ {
			body, _ := json.Marshal(map[string]string{"branch": "gangnam", "doorlockType": "room", "key": door})
			postQuietly(ctx, s.API+"/door/v2/unlock", body)
		}
	})
	archived := func(pattern string) int {
		found, err := filepath.Glob(filepath.Join(place, "*", pattern))
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	until(t, "a base backup", func() bool { return archived("base/*.complete") == 1 })
	time.Sleep(time.Duration(35+rand.IntN(60)) * time.Second) // the random moment
	if err := s.Signal("yeolda", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	lost := time.Now()
	stop()
	load.Wait()
	if err := os.RemoveAll(filepath.Join(s.Dir(), "data")); err != nil {
		t.Fatal(err)
	}

	out, err := s.Command(t.Context(), "archive", "restore")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(out, "restored until ")
	stamp, _, _ := strings.Cut(rest, ",")
	restored, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	t.Logf("%d requests, %d segments; killed %s after the last restored write; restored and migrated within %s", requests, archived("wal/*"), lost.Sub(restored).Round(time.Second), time.Since(lost).Round(time.Second))
	if lost.Sub(restored) > time.Minute {
		t.Errorf("%s are lost, want at most a minute", lost.Sub(restored))
	}
	if err := s.Run(t.Context(), "yeolda", "serve"); err != nil {
		t.Fatal(err)
	}
	awaitAgents(t, s, "gangnam")
	if got, _ := guest.open("gangnam", "room", door); got.Status != "SUCCESS" {
		t.Errorf("the guest's key: %+v", got)
	}
}

// postQuietly sends a request whose failure is expected once the service is killed.
func postQuietly(ctx context.Context, address string, body []byte) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	if response, err := http.DefaultClient.Do(request); err == nil {
		_ = response.Body.Close() // nothing was read
	}
}
