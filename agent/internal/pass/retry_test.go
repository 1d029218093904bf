package pass

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestDiskWorksAgain has the disk full at the start or at an attempt. Once there is room again, the self-test succeeds without another
// attempt, and what was not stored is stored: a restart without a connection loses neither the passes nor the codes.
func TestDiskWorksAgain(t *testing.T) {
	t.Parallel()
	for _, full := range []string{"at the start", "at an attempt"} {
		t.Run(full, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				disk := &fullDisk{memory: memory{}, full: full == "at the start"}
				d, _ := newUnlistedController(t, disk)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { d.Run(ctx); close(done) }()
				disk.full = true
				if v := d.Attempt("room_1", "482913", time.Now()); v.Accepted {
					t.Fatal("opened without a list")
				}
				time.Sleep(3 * resendInterval / 2)
				if d.SelfTest().OK {
					t.Error("the self-test succeeds while the disk is full")
				}
				disk.full = false
				time.Sleep(resendInterval)
				if test := d.SelfTest(); !test.OK {
					t.Errorf("with room again: %+v", test)
				}
				if _, err := disk.Read(journalFile); err != nil {
					t.Errorf("journal: %v", err)
				}
				again, err := loadSealKey(disk, "agent-gangnam")
				if err != nil || again.public != d.seal.public {
					t.Errorf("after a restart: another seal key, or %v, so the stored passes cannot be read", err)
				}
				cancel()
				<-done
			})
		})
	}
}
