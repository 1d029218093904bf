package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/yeolda/yeolda/agent/internal/durable"
)

// stateFile is the name of the file with the state.
const stateFile = "cloud-settings.json"

// Disk is the directory in which the state survives a power failure.
type Disk interface {
	// Read returns an error that matches fs.ErrNotExist if there is no such file.
	Read(name string) ([]byte, error)
	// Replace writes a file completely or not at all. It is on stable storage when Replace returns.
	Replace(name string, data []byte) error
}

// Dir is a Disk in a directory that only its owner can read.
type Dir string

// Read implements Disk.
func (d Dir) Read(name string) ([]byte, error) { return os.ReadFile(filepath.Join(string(d), name)) }

// Replace implements Disk.
func (d Dir) Replace(name string, data []byte) error {
	return durable.Replace(filepath.Join(string(d), name), data)
}

// FromCloud reports whether the settings in use, or those to return to, are from the cloud.
func FromCloud(disk Disk) bool {
	var s state
	return read(disk, &s) == nil && s.Current != nil
}

func read(disk Disk, into *state) error {
	text, err := disk.Read(stateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		*into = state{}
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

func write(disk Disk, s state) error {
	text, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	if err := disk.Replace(stateFile, text); err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	return nil
}

// same reports whether two states are equal.
func same(a, b state) bool { return reflect.DeepEqual(a, b) }
