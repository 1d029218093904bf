package pass

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/yeolda/yeolda/agent/internal/durable"
)

// Disk is the directory in which passes survive a power failure. Every write is on stable storage when it returns.
type Disk interface {
	// Read returns an error that matches fs.ErrNotExist if there is no such file.
	Read(name string) ([]byte, error)
	// Replace writes a file completely or not at all.
	Replace(name string, data []byte) error
	// Append adds data to the end of a file. A power failure, or an error, may leave any part of data behind.
	Append(name string, data []byte) error
}

// Dir is a Disk in a directory that only its owner can read.
type Dir string

// Read implements Disk.
func (d Dir) Read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(string(d), name)) }

// Replace implements Disk.
func (d Dir) Replace(name string, data []byte) error {
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return fmt.Errorf("passes: %w", err)
	}
	if err := durable.Replace(filepath.Join(string(d), name), data); err != nil {
		return fmt.Errorf("passes: %w", err)
	}
	return nil
}

// Append implements Disk.
func (d Dir) Append(name string, data []byte) error {
	f, err := os.OpenFile(filepath.Join(string(d), name), os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("passes: %w", err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("passes: %w", err)
	}
	return nil
}
