//go:build hw

package hwtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const tracing = "/sys/kernel/tracing/"

// change is one change of a line by the kernel: of its level or its direction.
type change struct {
	at   time.Duration // since boot
	line int
	what string // "set 0", "set 1", "in", "out"
}

// record restarts the kernel's record of all lines.
func record(t *testing.T) {
	t.Helper()
	write(t, tracing+"events/gpio/enable", "1")
	write(t, tracing+"trace", "")
}

var traced = regexp.MustCompile(`\s(\d+\.\d+): gpio_(value|direction): (\d+)\s+(set \d|out|in)\b`)

// changes returns the changes of a line since record, without reads.
func changes(t *testing.T, line int) []change {
	t.Helper()
	text, err := os.ReadFile(tracing + "trace")
	if err != nil {
		t.Fatal(err)
	}
	var list []change
	for _, m := range traced.FindAllStringSubmatch(string(text), -1) {
		at, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if number, _ := strconv.Atoi(m[3]); number == firstGPIO(t)+line {
			list = append(list, change{time.Duration(at * float64(time.Second)), line, m[4]})
		}
	}
	return list
}

// pulseChanges returns the changes of a relay line from the first change to energised on. Before it, the agent's check of
// a line at rest may have released the line once more.
func pulseChanges(t *testing.T, line int, energised string) []change {
	t.Helper()
	list := changes(t, line)
	first := slices.IndexFunc(list, func(c change) bool { return c.what == energised })
	if first < 0 {
		return nil
	}
	return list[first:]
}

// firstGPIO returns the kernel's number of line 0.
func firstGPIO(t *testing.T) int {
	t.Helper()
	labels, err := filepath.Glob("/sys/class/gpio/gpiochip*/label")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range labels {
		label, _ := os.ReadFile(name)
		if strings.TrimSpace(string(label)) == "pinctrl-sim" {
			base, _ := os.ReadFile(filepath.Join(filepath.Dir(name), "base"))
			n, err := strconv.Atoi(strings.TrimSpace(string(base)))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("the kernel has no number for the chip")
	return 0
}

func words(list []change) string {
	var all []string
	for _, c := range list {
		all = append(all, c.what)
	}
	return fmt.Sprint(all)
}
