//go:build unix

package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// checksumsByDefault is the first version whose initdb switches checksums of pages on.
const checksumsByDefault = 18

// Upgrade moves a private database to the newest PostgreSQL on the machine with pg_upgrade, and returns both major versions.
// No process may use the database. The old cluster remains beside the new one, under the name cluster-VERSION.
func Upgrade(ctx context.Context, opts Options) (from, to string, err error) {
	if opts.DataDir, err = filepath.Abs(opts.DataDir); err != nil {
		return "", "", err
	}
	h, err := findHome(opts.DataDir)
	if err != nil {
		return "", "", err
	}
	from = h.majorVersion()
	if from == "" {
		return "", "", errors.New("there is no database to upgrade")
	}
	newBin, err := findPrograms(ctx, opts.BinDir, "")
	if err != nil {
		return "", "", err
	}
	if to, err = programVersion(ctx, newBin); err != nil || to == from {
		return from, to, err
	}
	oldBin, err := choosePrograms(ctx, usualPlaces(ctx), from)
	if err != nil {
		return from, to, err
	}
	return from, to, upgrade(ctx, opts, h, oldBin, newBin)
}

// upgrade runs pg_upgrade from the programs of the cluster to other ones.
func upgrade(ctx context.Context, opts Options, h home, oldBin, newBin string) error {
	lock, err := tryLock(filepath.Join(opts.DataDir, "postgres.lock"))
	if err != nil {
		return err
	}
	if lock == nil {
		return ErrInUse
	}
	// pg_upgrade demands a cluster that was shut down, which that of a killed service is not.
	err = lock.Close()
	opts.BinDir = oldBin
	server, startErr := Start(ctx, opts)
	if err = errors.Join(err, startErr); err != nil {
		return err
	}
	server.Stop()
	if lock, err = tryLock(filepath.Join(opts.DataDir, "postgres.lock")); err != nil || lock == nil {
		return errors.Join(err, ErrInUse)
	}
	defer lock.Close()

	kept := h.cluster() + "-" + h.majorVersion()
	if _, err := os.Stat(kept); err == nil {
		return fmt.Errorf("%s of an earlier upgrade is still here: remove it", kept)
	}
	fresh, err := h.createCluster(ctx, newBin, opts.Volatile)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(newBin, "pg_upgrade"), "--old-bindir", oldBin, "--new-bindir", newBin,
		"--old-datadir", h.cluster(), "--new-datadir", fresh, "--username", superuser, "--socketdir", h.socketDir())
	if out, err := h.run(cmd); err != nil {
		_ = os.RemoveAll(fresh) // the old cluster is unchanged
		return fmt.Errorf("pg_upgrade: %w\n%s", err, out)
	}
	if h.archiving() { // segments of the old cluster do not fit the new one
		err = errors.Join(h.setArchiving(ArchivingOff), h.setArchiving(ArchivingOn))
	}
	return errors.Join(err, os.Rename(h.cluster(), kept), os.Rename(fresh, h.cluster()))
}

// checksumFlags keep the checksums of pages off in every version: pg_upgrade demands the same setting in both clusters.
func checksumFlags(ctx context.Context, bin string) []string {
	version, err := programVersion(ctx, bin)
	if n, convErr := strconv.Atoi(version); err != nil || convErr != nil || n < checksumsByDefault {
		return nil
	}
	return []string{"--no-data-checksums"}
}
