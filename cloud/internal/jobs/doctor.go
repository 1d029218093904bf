package jobs

import (
	"context"
	"time"
)

const (
	doctorLock = 0x79656f6c_000d
	// doctorInterval is the interval at which it is checked whether the installation has to be examined.
	doctorInterval = time.Minute
)

// examine examines the installation every hour.
func (s *Service) examine(ctx context.Context) {
	s.leadIfDue(ctx, doctorLock, "an examination", s.Doctor.Due, s.Doctor.RunDue)
}
