// Package archive keeps an encrypted copy of a private database on another disk or in a bucket: base backups, and the
// segments of the write-ahead log that follow them. A new machine restores any moment of the archived days from it.
//
//	SYSTEM/base/20261123T180512Z-000000010000000000000003.tar.gz.age                  begin, first segment that it needs
//	SYSTEM/base/20261123T180512Z-000000010000000000000003-20261123T180601Z.complete   the same with the end
//	SYSTEM/wal/000000010000000000000003.gz.age
//
// SYSTEM is PostgreSQL's identifier of the cluster, so the archives of two databases in one place do not mix. A restored machine has the
// same one and continues on the next timeline (wal/00000002.history.gz.age); the machine before it stores nothing from then on.
package archive

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"filippo.io/age"
	"golang.org/x/sync/errgroup"

	"github.com/yeolda/yeolda/cloud/internal/pgserver"
)

const (
	baseSuffix     = ".tar.gz.age"
	completeSuffix = ".complete"
	walSuffix      = ".gz.age"
	timeFormat     = "20060102T150405Z"

	// downloads is the number of segments that are fetched at the same time.
	downloads = 8
	// segmentsPerLog is the number of segments of 16 MiB after which the middle part of a segment's name counts up.
	segmentsPerLog = 256
)

// ErrNoBase is returned if the archive holds no base backup from which the wanted moment can be restored.
var ErrNoBase = errors.New("archive: no base backup of that time")

// ErrContinued is returned if a machine that was restored from the archive continues the database. If both stored their changes, the last
// moment of neither could be restored.
var ErrContinued = errors.New("archive: another machine, which was restored from this archive, continues the database: stop one of the two, or give it another place")

// Archive is a place with a key. Every file is encrypted for the key; reading verifies that it is unchanged.
type Archive struct {
	store store
	key   *age.X25519Identity
}

// Open returns the archive in a place: a folder, or a bucket with a folder (https://HOST/BUCKET/FOLDER), for which access
// and secret are the credentials.
func Open(place, key, access, secret string) (*Archive, error) {
	identity, err := age.ParseX25519Identity(key)
	if err != nil {
		return nil, errors.New("archive: the key is not one of yeolda archive key") // not quoted
	}
	a := &Archive{key: identity, store: folder(place)}
	if strings.Contains(place, "://") {
		if a.store, err = openBucket(place, access, secret); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// NewKey returns a new key.
func NewKey() (string, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return "", err
	}
	return identity.String(), nil
}

// Base is a complete base backup.
type Base struct {
	System  string
	Begin   time.Time
	End     time.Time // moments from here on can be restored
	Segment string    // the first one that its restoration needs
}

func (b Base) stem() string {
	return b.System + "/base/" + b.Begin.UTC().Format(timeFormat) + "-" + b.Segment
}

// Bases lists the complete base backups of all systems, the oldest first and those of a later timeline last. The place in the log orders
// them, because the clock may have been wrong; a backup ends no later than the next one of its system.
func (a *Archive) Bases(ctx context.Context) ([]Base, error) {
	names, err := a.store.list(ctx, "")
	if err != nil {
		return nil, err
	}
	var bases []Base
	for _, name := range names {
		system, rest, _ := strings.Cut(name, "/base/")
		parts := strings.Split(strings.TrimSuffix(rest, completeSuffix), "-")
		if len(parts) != 3 || !strings.HasSuffix(rest, completeSuffix) {
			continue
		}
		begin, beginErr := time.Parse(timeFormat, parts[0])
		end, endErr := time.Parse(timeFormat, parts[2])
		if beginErr == nil && endErr == nil && isSegment(parts[1]) {
			bases = append(bases, Base{System: system, Begin: begin, End: end, Segment: parts[1]})
		}
	}
	slices.SortFunc(bases, func(a, b Base) int {
		return cmp.Or(strings.Compare(a.Segment, b.Segment), a.Begin.Compare(b.Begin))
	})
	next := map[string]time.Time{}
	for i, b := range slices.Backward(bases) {
		if end, found := next[b.System]; found && b.End.After(end) {
			bases[i].End = end
		}
		next[b.System] = bases[i].End
	}
	return bases, nil
}

// continued returns ErrContinued if the archive has a later timeline than a machine's own.
func (a *Archive) continued(ctx context.Context, system, timeline string) error {
	own, err := strconv.ParseUint(timeline, 16, 32)
	if err != nil {
		return fmt.Errorf("archive: timeline: %w", err)
	}
	found, err := a.store.list(ctx, fmt.Sprintf("%s/wal/%08X.history%s", system, own+1, walSuffix))
	if err == nil && len(found) > 0 {
		err = ErrContinued
	}
	return err
}

// PutBase stores what write produces as a base backup.
//
// Errors: ErrContinued.
func (a *Archive) PutBase(ctx context.Context, system, firstSegment string, now func() time.Time, write func(io.Writer) error) error {
	base := Base{System: system, Begin: now(), Segment: firstSegment}
	if err := a.continued(ctx, system, timelineOf(firstSegment)); err != nil {
		return err
	}
	if err := a.put(ctx, base.stem()+baseSuffix, write); err != nil {
		return fmt.Errorf("archive a base backup: %w", err)
	}
	// A second more, as the name has no fractions of one.
	end := now().Add(time.Second).UTC().Format(timeFormat)
	return a.store.put(ctx, base.stem()+"-"+end+completeSuffix, strings.NewReader(""))
}

// put encrypts and stores what write produces. The file appears complete or not at all.
func (a *Archive) put(ctx context.Context, name string, write func(io.Writer) error) error {
	reader, writer := io.Pipe()
	go func() {
		err := func() error {
			sealed, err := age.Encrypt(writer, a.key.Recipient())
			if err != nil {
				return err
			}
			packed, err := gzip.NewWriterLevel(sealed, gzip.BestSpeed)
			if err != nil {
				return err
			}
			if err := write(packed); err != nil {
				return err
			}
			return errors.Join(packed.Close(), sealed.Close())
		}()
		if err != nil {
			err = opaque{err}
		}
		writer.CloseWithError(err)
	}()
	err := a.store.put(ctx, name, reader)
	reader.CloseWithError(err) // ends write if the store has stopped reading
	return err
}

// opaque hides which error ended a file: minio takes io.ErrUnexpectedEOF for the end of the file.
type opaque struct{ error }

// get returns the content of a file. Reading fails if the file was changed or shortened.
func (a *Archive) get(ctx context.Context, name string) (io.ReadCloser, error) {
	file, err := a.store.get(ctx, name)
	if err != nil {
		return nil, err
	}
	sealed, err := age.Decrypt(file, a.key)
	if err == nil {
		var packed *gzip.Reader
		if packed, err = gzip.NewReader(sealed); err == nil {
			return struct {
				io.Reader
				io.Closer
			}{packed, file}, nil
		}
	}
	return nil, errors.Join(fmt.Errorf("archive: read %s: %w", name, err), file.Close())
}

// Ship stores the segments of the outbox of a machine on a timeline, the oldest first, and removes each one that is stored.
//
// Errors: ErrContinued.
func (a *Archive) Ship(ctx context.Context, system, timeline, outbox string) (shipped int, err error) {
	entries, err := os.ReadDir(outbox)
	entries = slices.DeleteFunc(entries, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), ".") }) // incomplete
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	if err := a.continued(ctx, system, timeline); err != nil {
		return 0, err
	}
	for _, entry := range entries {
		path := filepath.Join(outbox, entry.Name())
		content, err := os.ReadFile(path)
		if err != nil {
			return shipped, err
		}
		err = a.put(ctx, system+"/wal/"+entry.Name()+walSuffix, func(w io.Writer) error {
			_, err := io.Copy(w, bytes.NewReader(content))
			return err
		})
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil {
			return shipped, fmt.Errorf("archive segment %s: %w", entry.Name(), err)
		}
		shipped++
	}
	return shipped, nil
}

// Choose returns the newest base backup from which a moment (zero: the last one) can be restored. system may be empty if
// the archive has one system only.
func (a *Archive) Choose(ctx context.Context, system string, until time.Time) (chosen Base, err error) {
	bases, err := a.Bases(ctx)
	if err != nil {
		return Base{}, err
	}
	for _, b := range bases {
		if system == "" && chosen.System != "" && b.System != chosen.System {
			return Base{}, fmt.Errorf("archive: it holds the systems %s and %s: name one", chosen.System, b.System)
		}
		if (system == "" || b.System == system) && (until.IsZero() || !b.End.After(until)) {
			chosen = b
		}
	}
	if chosen.System == "" {
		return Base{}, ErrNoBase
	}
	return chosen, nil
}

// Restore creates the database of an empty data directory from a base backup and the segments after it, up to a moment (zero:
// the last one), and starts its server. After an error, the data directory is as it was.
func (a *Archive) Restore(ctx context.Context, opts pgserver.Options, base Base, until time.Time) (_ *pgserver.Server, err error) {
	file, err := a.get(ctx, base.stem()+baseSuffix)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	err = pgserver.Restore(ctx, opts, file, until, func(dir string) error { return a.fetch(ctx, base, dir) })
	if errors.Is(err, pgserver.ErrNotEmpty) || errors.Is(err, pgserver.ErrInUse) {
		return nil, err
	}
	var server *pgserver.Server
	if err == nil {
		opts.Restoring = true
		server, err = pgserver.Start(ctx, opts)
	}
	if err != nil {
		return nil, errors.Join(err, pgserver.Discard(opts.DataDir))
	}
	return server, nil
}

// fetch writes the segments that follow a base backup into a directory. It fails if one between them is missing, because
// PostgreSQL would end the replay there without an error.
func (a *Archive) fetch(ctx context.Context, base Base, dir string) error {
	folder := base.System + "/wal/"
	names, err := a.store.list(ctx, folder)
	if err != nil {
		return err
	}
	var needed []string
	for _, name := range names {
		segment := strings.TrimSuffix(strings.TrimPrefix(name, folder), walSuffix)
		if strings.HasSuffix(segment, ".history") || isSegment(segment) && segment[8:] >= base.Segment[8:] {
			needed = append(needed, segment)
		}
	}
	if missing := firstGap(base.Segment, needed); missing != "" {
		return fmt.Errorf("archive: segment %s is missing", missing)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(downloads)
	for _, segment := range needed {
		group.Go(func() error { return a.fetchFile(ctx, folder+segment+walSuffix, filepath.Join(dir, segment)) })
	}
	return group.Wait()
}

func (a *Archive) fetchFile(ctx context.Context, name, path string) error {
	content, err := a.get(ctx, name)
	if err != nil {
		return err
	}
	defer content.Close()
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("archive: read %s: %w", name, err)
	}
	return nil
}

// Prune removes base backups that ended before a moment, except the newest of them, from which that moment can be restored,
// and the segments that no remaining base backup needs.
func (a *Archive) Prune(ctx context.Context, system string, before time.Time) error {
	all, err := a.Bases(ctx)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(all, func(b Base) bool { return b.System != system })
	for len(own) > 1 && own[1].End.Before(before) {
		own = own[1:]
	}
	if len(own) == 0 {
		return nil
	}
	names, err := a.store.list(ctx, system+"/")
	for _, name := range names {
		if place := placeOf(name); place != "" && place < own[0].Segment[8:] {
			err = errors.Join(err, a.store.remove(ctx, name))
		}
	}
	return err
}

// placeOf returns the place in the log of a segment, or of the first one that the restoration of a base backup needs, from the name of a
// file, or "". The time in the name is that of a clock that may have been wrong.
func placeOf(name string) string {
	file := name[strings.LastIndexByte(name, '/')+1:]
	if _, segment, isBase := strings.Cut(file, "-"); isBase {
		file = segment
	}
	if len(file) < 24 || !isSegment(file[:24]) {
		return ""
	}
	return file[8:24]
}

// isSegment reports whether a name is that of a segment: 24 hexadecimal digits, of which the first 8 are the timeline.
func isSegment(name string) bool {
	return len(name) == 24 && strings.Trim(name, "0123456789ABCDEF") == ""
}

// timelineOf returns the timeline of a segment, 8 hexadecimal digits.
func timelineOf(segment string) string { return segment[:8] }

// number is the position of a segment of 16 MiB on its timeline.
func number(segment string) uint64 {
	log, _ := strconv.ParseUint(segment[8:16], 16, 64) // hexadecimal, see isSegment
	low, _ := strconv.ParseUint(segment[16:], 16, 64)
	return log*segmentsPerLog + low
}

// firstGap returns the first missing segment: that of the base backup, or one between two of a timeline.
func firstGap(first string, segments []string) string {
	next := map[string]uint64{first[:8]: number(first)}
	found := false
	slices.Sort(segments)
	for _, s := range segments {
		if !isSegment(s) {
			continue
		}
		found = found || s == first
		timeline := s[:8]
		if want, known := next[timeline]; known && number(s) != want {
			return fmt.Sprintf("%s%08X%08X", timeline, want/segmentsPerLog, want%segmentsPerLog)
		}
		next[timeline] = number(s) + 1
	}
	if !found {
		return first
	}
	return ""
}
