package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/part"
	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// fleets are the numbers of idle agents with which the memory of the service is measured. The first is the base.
// Resident memory varies by some MiB, which must be small compared with the last.
var fleets = []int{1, 501, 2001}

// memory measures the cost of an idle agent over TCP: the resident memory of the service after garbage collection, with
// more and more agents. Each measurement uses a new service that knows all branches.
func memory(ctx context.Context, root, dir string, log io.Writer, p *part.Part) error {
	most := fleets[len(fleets)-1]
	file := filepath.Join(dir, "memory.yaml")
	write := exec.CommandContext(ctx, filepath.Join(dir, world.Simulator), "fleet", "--agents", strconv.Itoa(most), "--write-branches", file)
	if out, err := write.CombinedOutput(); err != nil {
		return fmt.Errorf("branch file: %w\n%s", err, out)
	}
	series := part.Series{Name: "service", Plot: "Memory as agents grow", XName: "idle agents", YName: "resident memory, MiB"}
	for _, agents := range fleets {
		bytes, err := residentWith(ctx, root, dir, file, agents, log)
		if err != nil {
			return err
		}
		series.X, series.Y = append(series.X, float64(agents)), append(series.Y, bytes/(1<<20))
	}
	last := len(fleets) - 1
	each := (series.Y[last] - series.Y[0]) * 1024 / float64(fleets[last]-fleets[0])
	p.Series = append(p.Series, series)
	figure := atMost("memory of the service per idle agent, TCP", each, 32)
	figure.Unit = "KiB"
	p.Figures = append(p.Figures, figure)
	return nil
}

// residentWith starts a service with n agents and returns its resident memory in bytes when all are connected.
func residentWith(ctx context.Context, root, dir, branches string, agents int, log io.Writer) (bytes float64, err error) {
	own, err := os.MkdirTemp(dir, "memory-")
	if err != nil {
		return 0, err
	}
	if err := os.Chmod(own, 0o755); err != nil { // PostgreSQL runs as another user
		return 0, err
	}
	s, err := world.StartStack(ctx, world.StackOptions{Root: root, Bin: dir, Dir: own, Log: log, Branches: []string{branches},
		SimArgs: []string{"fleet", "--agents", strconv.Itoa(agents)}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		online, err := gauge(ctx, s, "yeolda_mqtt_agents ")
		if err != nil {
			return 0, err
		}
		if int(online) == agents {
			break
		}
		if time.Now().After(deadline) {
			return 0, fmt.Errorf("%g of %d agents are connected", online, agents)
		}
	}
	// Idle: two heartbeats after connecting, and after garbage collection.
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(12 * time.Second):
	}
	for range 2 {
		if err := fetch(ctx, s.MetricsAt+"/debug/pprof/heap?gc=1"); err != nil {
			return 0, err
		}
	}
	return resident(ctx, s)
}

// gauge reads one value of the service's metrics by the start of its line.
func gauge(ctx context.Context, s *world.Stack, line string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.MetricsAt+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if text, found := strings.CutPrefix(lines.Text(), line); found {
			return strconv.ParseFloat(text, 64)
		}
	}
	return 0, errors.Join(fmt.Errorf("the service has no metric %s", line), lines.Err())
}

func fetch(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return err
}
