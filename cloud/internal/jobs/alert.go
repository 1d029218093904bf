package jobs

import (
	"context"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

const (
	alertLock = 0x79656f6c_0005
	// alertInterval is the interval at which conditions for alerts are looked up.
	alertInterval = 5 * time.Second

	doorDayLock = 0x79656f6c_0006
	// doorDayInterval is the interval at which the days of doors that are over are stored; branches have their own midnight.
	doorDayInterval = 30 * time.Minute
)

// putDoorDays stores the service of doors on days that are over.
func (s *Service) putDoorDays(ctx context.Context) {
	s.lead(ctx, doorDayLock, func(ctx context.Context) error { return postgres.PutDoorDays(ctx, s.DB.Pool, s.DB.Now()) })
}

// sweepAlerts finds alerts and queues their messages, on one replica at a time.
func (s *Service) sweepAlerts(ctx context.Context) {
	s.Alerts.Observe(s.DB.Now())
	s.lead(ctx, alertLock, s.Alerts.Sweep)
}
