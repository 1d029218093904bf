package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// TestDisaster simulates the loss of a machine: a backup of the running service is restored on another machine and the
// encryption key is rotated there. The guest's key must still open the door.
func TestDisaster(t *testing.T) {
	t.Parallel()
	first := startStack(t, nil)
	guest := newBrowser(t, first)
	key := guest.buy(first, "gangnam", 2, 25000, "01011112222")
	file := filepath.Join(t.TempDir(), "backup")
	run(t, first.Command, "backup", file)
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	data, err := os.MkdirTemp(bin, "restored-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(data, 0o755); err != nil {
		t.Fatal(err)
	}
	oldKey := sha256.Sum256([]byte("yeolda demo encryption key")) // without a setting the demo's key is used
	newKey := sha256.Sum256([]byte("another key"))
	both := base64.StdEncoding.EncodeToString(newKey[:]) + "," + base64.StdEncoding.EncodeToString(oldKey[:])

	elsewhere := prepare(t, data, both)
	began := time.Now()
	run(t, elsewhere.Command, "restore", file)
	t.Logf("restored within %s", time.Since(began).Round(time.Millisecond))
	run(t, elsewhere.Command, "reseal")

	second := startStack(t, map[string]string{"YEOLDA_DATA_DIR": data, "YEOLDA_ENCRYPTION_KEY": strings.Split(both, ",")[0]})
	guest = newBrowser(t, second)
	if got, _ := guest.open("gangnam", "room", key); got.Status != "SUCCESS" {
		t.Errorf("the guest's key: %+v", got)
	}
	awaitCodes(t, second, began) // not the list of the backup
	fault(t, second, "gangnam", "room_2", "stuck")
	if got, _ := guest.open("gangnam", "room", key); got.FailoverKey == nil || len(*got.FailoverKey) != 8 {
		t.Errorf("the one-time code, under the new key: %+v", got)
	}
	newBrowser(t, second).must("POST", "/admin/login", map[string]string{"id": "hq", "password": "hq-demo"}, nil)
}

// prepare returns a stack that is not running, for commands.
func prepare(t *testing.T, data, key string) *world.Stack {
	t.Helper()
	return world.PrepareStack(world.StackOptions{Root: root(), Bin: bin, Dir: data, Env: map[string]string{"YEOLDA_DATA_DIR": data, "YEOLDA_ENCRYPTION_KEY": key}, Log: t.Output()})
}

func run(t *testing.T, command func(context.Context, ...string) (string, error), args ...string) {
	t.Helper()
	out, err := command(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("yeolda %s: %s", args[0], strings.TrimSpace(out))
}
