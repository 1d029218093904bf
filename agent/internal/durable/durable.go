// Package durable writes files that survive a power failure.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// Replace writes a file that only its owner can read, completely or not at all. Content and name are on stable storage when it
// returns: the new content is on the disk before it gets the name of the old one.
func Replace(name string, data []byte) error {
	f, err := os.OpenFile(name+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(name+".new", name)
	}
	if err != nil {
		_ = os.Remove(name + ".new") // on a full disk, a torn file would keep others from being written
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
