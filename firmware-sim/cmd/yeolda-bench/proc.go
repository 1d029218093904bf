package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// residentOf returns the resident memory of a process in bytes (proc_pid_status(5)).
func residentOf(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, found := strings.CutPrefix(line, "VmRSS:"); found {
			kib, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 64)
			return kib * 1024, err
		}
	}
	return 0, fmt.Errorf("process %d has no resident memory", pid)
}

// loadAverage returns the load average of the last minute (proc_loadavg(5)).
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	load, _, _ := strings.Cut(string(text), " ")
	return load
}

// tick is the unit of processor times in /proc on Linux.
const tick = time.Second / 100

// computedBy returns the processor time of a process.
func computedBy(pid int) (time.Duration, error) {
	_, took, err := stat(fmt.Sprintf("/proc/%d/stat", pid), 2)
	return took, err
}

// computedBelow returns the processor time of a process, of its children and of those that have ended.
func computedBelow(pid int) (time.Duration, error) {
	_, sum, err := stat(fmt.Sprintf("/proc/%d/stat", pid), 4)
	if err != nil {
		return 0, err
	}
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range all {
		if parent, took, err := stat(name, 2); err == nil && parent == pid { // others may have ended
			sum += took
		}
	}
	return sum, err
}

// stat returns the parent and the first times in the stat file of a process: user and kernel time, and with four, those of
// ended children.
func stat(name string, times int) (parent int, took time.Duration, err error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return 0, 0, err
	}
	// The name of the program is in parentheses and may contain anything (proc_pid_stat(5)).
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("%s has %d fields", name, len(fields))
	}
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, err
	}
	for _, field := range fields[11 : 11+times] {
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, 0, err
		}
		took += time.Duration(n) * tick
	}
	return parent, took, nil
}
