package part

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
)

// Machine describes the machine of a measurement: processor, memory, kernel, Go, PostgreSQL, Mosquitto. It contains no
// host names and no paths.
func Machine() string {
	words := []string{fmt.Sprintf("%s, %d cores", cpu(), runtime.NumCPU())}
	if m := memory(); m != "" {
		words = append(words, m)
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		words = append(words, "Linux "+strings.TrimSpace(string(release)))
	}
	words = append(words, strings.Replace(runtime.Version(), "go", "Go ", 1)+" "+runtime.GOARCH)
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres"); len(found) > 0 {
		words = append(words, version(found[len(found)-1], "--version", "PostgreSQL"))
	}
	for _, path := range []string{"mosquitto", "/usr/sbin/mosquitto"} {
		if v := version(path, "-h", "Mosquitto"); v != "" {
			words = append(words, v)
			break
		}
	}
	return strings.Join(words, "; ")
}

func cpu() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	if found := regexp.MustCompile(`(?m)^model name\s*:\s*(.+)$`).FindSubmatch(text); found != nil {
		return string(found[1])
	}
	return runtime.GOARCH
}

func memory() string {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return ""
	}
	found := regexp.MustCompile(`(?m)^MemTotal:\s+(\d+) kB$`).FindSubmatch(text)
	if found == nil {
		return ""
	}
	kib, err := strconv.Atoi(string(found[1]))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%.1f GiB of memory", float64(kib)/(1<<20))
}

// version returns the version number that a program prints. Some print it and fail.
func version(program, ask, name string) string {
	out, _ := exec.Command(program, ask).CombinedOutput() //nolint:noctx // it prints its version and ends
	if number := regexp.MustCompile(`\d+(\.\d+)+`).Find(out); number != nil {
		return name + " " + string(number)
	}
	return ""
}
