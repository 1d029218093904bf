package jobs

import (
	"context"
	"time"
)

const (
	alertLock = 0x79656f6c_0005
	// alertInterval is the interval at which conditions for alerts are looked up.
	alertInterval = 5 * time.Second
)

// sweepAlerts finds alerts and queues their messages, on one replica at a time.
func (s *Service) sweepAlerts(ctx context.Context) {
	s.Alerts.Observe(s.DB.Now())
	s.lead(ctx, alertLock, s.Alerts.Sweep)
}
