package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// certificateClock is the time for checking certificates. A Pi has no clock battery: after a long time without power its
// clock may be older than the server's certificate. The present is never before the program was built, before any file of
// the agent was written, or before a trusted authority issued a certificate that the agent has seen. A file from the future, written while the
// clock was wrong, must not invalidate every certificate: every other minute the clock is used as it is.
type certificateClock struct {
	start time.Time

	mu    sync.Mutex
	floor time.Time
}

func newCertificateClock(f files) *certificateClock {
	names := []string{f.Settings, f.Credentials}
	if f.State != "" {
		entries, _ := filepath.Glob(filepath.Join(f.State, "*")) // the pattern is valid
		names = append(names, entries...)
	}
	floor, _ := time.Parse(time.RFC3339, buildSetting("vcs.time"))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && info.ModTime().After(floor) {
			floor = info.ModTime()
		}
	}
	return &certificateClock{start: time.Now(), floor: floor}
}

func (c *certificateClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if odd := int(now.Sub(c.start)/time.Minute)%2 == 1; odd || now.After(c.floor) {
		return now
	}
	return c.floor
}

// learn takes the error of a TLS handshake. If the certificate was rejected because it begins later than the clock shows, and was
// issued by a trusted authority, then the clock is behind: no authority issues certificates in advance. It reports whether another handshake may
// succeed now. roots is nil for those of the system.
func (c *certificateClock) learn(err error, roots *x509.CertPool) bool {
	var rejected *tls.CertificateVerificationError
	if !errors.As(err, &rejected) || len(rejected.UnverifiedCertificates) == 0 {
		return false
	}
	issued, intermediates := time.Time{}, x509.NewCertPool()
	for _, certificate := range rejected.UnverifiedCertificates {
		if certificate.NotBefore.After(issued) {
			issued = certificate.NotBefore
		}
		intermediates.AddCert(certificate)
	}
	if !issued.After(c.now()) {
		return false
	}
	options := x509.VerifyOptions{Roots: roots, Intermediates: intermediates, CurrentTime: issued}
	if _, err := rejected.UnverifiedCertificates[0].Verify(options); err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.floor = issued
	return true
}

// lockMemory keeps the program in memory, so that a dying SD card cannot delay the end of a pulse. The text of the program is
// loaded at once; all other pages are locked when they are first used, because Go reserves far more memory than it uses.
func lockMemory(log *slog.Logger) {
	if err := unix.Mlockall(unix.MCL_CURRENT | unix.MCL_FUTURE | unix.MCL_ONFAULT); err != nil {
		log.Debug("memory not locked", "error", err) // as outside the service, which sets LimitMEMLOCK
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	program, linkErr := os.Readlink("/proc/self/exe")
	if err != nil || linkErr != nil {
		return
	}
	for _, a := range mappings(string(maps), program) {
		if _, _, errno := unix.Syscall(unix.SYS_MLOCK, a[0], a[1]-a[0], 0); errno != 0 {
			log.Debug("the program is not locked in memory", "error", errno)
		}
	}
}

// mappings returns the readable address ranges of a file in /proc/self/maps.
func mappings(maps, file string) [][2]uintptr {
	var ranges [][2]uintptr
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line) // address range, permissions, offset, device, inode, file
		if len(fields) < 6 || fields[5] != file || fields[1][0] != 'r' {
			continue
		}
		first, last, _ := strings.Cut(fields[0], "-")
		begin, err1 := strconv.ParseUint(first, 16, strconv.IntSize)
		end, err2 := strconv.ParseUint(last, 16, strconv.IntSize)
		if err1 == nil && err2 == nil {
			ranges = append(ranges, [2]uintptr{uintptr(begin), uintptr(end)})
		}
	}
	return ranges
}
