package world

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// aheadVariable is how far the machine's clock of a program is ahead. Only programs that [buildSkewed] compiled read it.
const aheadVariable = "YEOLDA_PROOF_CLOCK_AHEAD"

// Clocks returns by how much the machines of a world's replicas are ahead of the database, at random but the same for a seed: one about
// 90 seconds ahead and one as far behind. For one seed in four, one of them is right, as is the third of an embedded pool.
func Clocks(seed uint64) []time.Duration {
	dice := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // no secret
	about := func() time.Duration { return 80*time.Second + time.Duration(dice.Int64N(int64(20*time.Second))) }
	clocks := []time.Duration{about(), -about()}
	dice.Shuffle(len(clocks), func(i, j int) { clocks[i], clocks[j] = clocks[j], clocks[i] })
	if dice.IntN(4) == 0 {
		clocks[0] = 0
	}
	return append(clocks, 0)
}

// machineClock is added to the standard library's package time.
const machineClock = `package time

import "syscall"

// machineAhead is by how much the machine's clock is ahead, in nanoseconds.
var machineAhead = func() int64 {
	text, _ := syscall.Getenv("` + aheadVariable + `")
	ahead, _ := ParseDuration(text)
	return int64(ahead)
}()

func skewedNow() (sec int64, nsec int32, mono int64) {
	sec, nsec, mono = runtimeNow()
	at := sec*1e9 + int64(nsec) + machineAhead
	return at / 1e9, int32(at % 1e9), mono
}
`

// buildSkewed is [Build] of programs whose wall clock [aheadVariable] moves. It replaces time.Now of the standard library by an overlay of the
// compiler, so it also moves code that does not use the service's clock, and libraries; the monotonic clock stays. No program of a
// release has it.
func buildSkewed(ctx context.Context, root, dir string) error {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	library := filepath.Join(strings.TrimSpace(string(out)), "src", "time")
	source, err := os.ReadFile(filepath.Join(library, "time.go"))
	if err != nil {
		return err
	}
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	if strings.Count(string(source), reads) != 1 {
		return errors.New("time.Now of this Go release reads the clock in another way: adapt buildSkewed")
	}
	skewed := strings.Replace(string(source), reads, strings.Replace(reads, "runtimeNow", "skewedNow", 1), 1)
	replaced, added, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "machine.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {
		filepath.Join(library, "time.go"): replaced, filepath.Join(library, "machine.go"): added,
	}})
	if err != nil {
		return err
	}
	for file, text := range map[string]string{replaced: skewed, added: machineClock, overlay: string(list)} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return Build(ctx, root, dir, "-overlay", overlay)
}

// checkClock returns an error unless the replica's machine shows the time that the world gave it, by the Date of an answer. Without
// this check, a soak with equal clocks would pass unnoticed.
func (r *Replica) checkClock(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.Metrics+"/readyz", nil)
	if err != nil {
		return err
	}
	asked := time.Now()
	response, err := control.Do(request)
	if err != nil {
		return fmt.Errorf("clock of %s: %w", r.Name, err)
	}
	response.Body.Close()
	shown, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return fmt.Errorf("clock of %s: %w", r.Name, err)
	}
	if shown.Before(asked.Add(r.Ahead).Truncate(time.Second)) || shown.After(time.Now().Add(r.Ahead)) {
		return fmt.Errorf("the machine of %s shows %s at %s, want %s more", r.Name, shown, asked.UTC(), r.Ahead)
	}
	return nil
}
