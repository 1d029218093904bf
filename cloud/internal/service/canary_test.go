package service

import (
	"errors"
	"testing"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

func TestFullDiskFailsTheCanary(t *testing.T) {
	t.Parallel()
	for free, want := range map[uint64]error{0: postgres.ErrDiskFull, diskNeeded - 1: postgres.ErrDiskFull, diskNeeded: nil} {
		if err := checkDisk(free, 1<<40, nil); !errors.Is(err, want) {
			t.Errorf("%d bytes are free: got %v, want %v", free, err, want)
		}
	}
	if err := checkDisk(0, 0, errors.ErrUnsupported); err != nil {
		t.Errorf("a system that does not report the space: got %v, want nil", err)
	}
}
