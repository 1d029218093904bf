//go:build unix

package pgserver

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/iotest"
)

// TestUnpackReadsToTheEnd checks that a change behind the last file of a base backup is noticed.
func TestUnpackReadsToTheEnd(t *testing.T) {
	t.Parallel()
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	if err := w.WriteHeader(&tar.Header{Name: "PG_VERSION", Typeflag: tar.TypeReg, Size: 3, Mode: 0o600}); err != nil {
		t.Fatal(err)
	}
	_, err := io.WriteString(w, "15\n")
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	h := home{as: account{uid: uint32(os.Getuid()), gid: uint32(os.Getgid())}} //nolint:gosec // ids are not negative here
	if err := h.unpack(bytes.NewReader(files.Bytes()), t.TempDir()); err != nil {
		t.Errorf("a whole base backup: %v", err)
	}
	changed := errors.New("changed")
	if err := h.unpack(io.MultiReader(&files, iotest.ErrReader(changed)), t.TempDir()); !errors.Is(err, changed) {
		t.Errorf("a base backup with a changed end: got %v, want the error of its reader", err)
	}
}
