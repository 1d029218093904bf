package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	// diskNotice is the share of a disk that should be free; with less than diskNeeded PostgreSQL may stop.
	diskNotice = 0.1
	diskNeeded = 512 << 20
	// backupAge is the highest age of the last backup: a night, and an hour for the backup itself.
	backupAge = 25 * time.Hour
)

func (d *exam) examineDataDisk() { d.examineDisk(d.settings.Database.DataDir, pgserver.FreeSpace) }

// examineDisk checks the disk of a directory, or of the nearest existing one above it.
func (d *exam) examineDisk(dir string, space func(dir string) (free, total uint64, err error)) {
	free, total, err := space(dir)
	for os.IsNotExist(err) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		free, total, err = space(dir)
	}
	if err != nil || total == 0 {
		return // not supported on this system
	}
	text := fmt.Sprintf("%d of %d MiB are free at %s", free>>20, total>>20, dir)
	switch {
	case free < diskNeeded:
		d.fail("disk", text, "make room: without it the database stops")
	case float64(free) < diskNotice*float64(total):
		d.warn("disk", text, "make room before the database stops")
	default:
		d.ok("disk", text)
	}
}

// Remedies of backups that are missing or old.
const (
	backupRemedy = "systemctl enable --now yeolda-backup.timer, and look at journalctl -u yeolda-backup"
	elsewhere    = "; --backups says where they are, --backups off that another program makes them"
)

// backupsHere reports whether the directory of the backups is on this machine. In a container, it is that of another one.
func (d *exam) backupsHere() bool {
	_, err := os.Stat(d.backups)
	return d.backups != "" && !os.IsNotExist(err)
}

// examineBackups checks the newest file of the nightly backup. A demonstration needs none.
func (d *exam) examineBackups() {
	dir := d.backups
	if dir == config.Off || !d.backupsHere() {
		return
	}
	files, _ := filepath.Glob(filepath.Join(dir, "*.dump"))
	var newest time.Time
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.Size() > 0 && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	switch {
	case newest.IsZero() && d.production():
		d.fail("backup", "there is none in "+dir, backupRemedy+elsewhere)
	case newest.IsZero():
	case time.Since(newest) > backupAge:
		d.warn("backup", "the last one in "+dir+" is of "+when(newest), backupRemedy+elsewhere)
	default:
		d.ok("backup", "the last one is of "+when(newest))
	}
}

// examineRecordedBackup checks the time of the last backup that the database holds, unless the files are here: the service may not read
// them. With an archive, or a server of the operator's own, another program may make the backups.
func (d *exam) examineRecordedBackup(ctx context.Context, db *postgres.DB) error {
	if d.backups == config.Off || d.backupsHere() {
		return nil
	}
	last, err := postgres.LastSuccesses(ctx, db.Pool)
	if err != nil {
		return err
	}
	const text = "the last one that the database records is of "
	switch at, known := last[postgres.WorkBackup]; {
	case known && db.Now().Sub(at) > backupAge:
		d.warn("backup", text+when(at), backupRemedy)
	case known:
		d.ok("backup", text+when(at))
	case !d.production():
	case d.settings.Database.URL == "" && d.settings.Archive.Place == "":
		d.fail("backup", "there is none", backupRemedy)
	case d.backups != "":
		d.warn("backup", d.backups+" is not on this machine, and the database records none", backupRemedy+elsewhere)
	}
	return nil
}

// examineCalendar checks that next year's public holidays are known, on which opening hours and prices depend.
func (d *exam) examineCalendar(now time.Time) {
	next := now.Year() + 1
	if _, known := booking.KoreanHoliday(booking.Date{Year: next, Month: time.January, Day: 1}); !known {
		d.warn("calendar", fmt.Sprintf("the public holidays of %d are not known", next), "update this program, or name them in the branch file: holidays, extra")
		return
	}
	d.ok("calendar", fmt.Sprintf("the public holidays of %d are known", next))
}
