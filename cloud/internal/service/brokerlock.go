package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// brokerLock is the key of the advisory lock of services with an embedded broker: shared by those of a pool, exclusive of
	// one that is alone.
	brokerLock int64 = 0x79656f6c_0010

	// brokerLockWait is the time a start waits for the lock: the session of a process that was killed ends shortly after.
	brokerLockWait     = 3 * time.Second
	brokerLockInterval = 5 * time.Second
)

// errSecondBroker is returned if another service with an embedded broker uses the database, unless both belong to a pool. Agents
// would be divided between the two brokers, and each service would consider the agents of the other one offline.
var errSecondBroker = errors.New("another service with an embedded broker uses this database: stop it, or set YEOLDA_BROKER_PEER_URL at both, so that their brokers form a pool, or set YEOLDA_BROKER_URL to brokers that all replicas share")

// lockBroker takes the lock of the embedded broker. It does nothing with external brokers only.
func (s *Service) lockBroker(ctx context.Context) error {
	if !s.settings.MQTT.Embedded() {
		return nil
	}
	try := `select pg_try_advisory_lock($1)`
	if s.settings.MQTT.BrokerPeerURL != "" {
		try = `select pg_try_advisory_lock_shared($1)`
	}
	conn, err := s.db.Pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("lock the embedded broker: %w", err)
	}
	session := conn.Hijack()
	for deadline := time.Now().Add(brokerLockWait); ; {
		locked, err := tryBrokerLock(ctx, session, try)
		switch {
		case err == nil && locked:
			s.brokerSession = session
			return nil
		case err == nil && time.Now().After(deadline):
			err = errSecondBroker
		}
		if err != nil {
			_ = session.Close(context.WithoutCancel(ctx)) // err is the reason
			return fmt.Errorf("lock the embedded broker: %w", err)
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func tryBrokerLock(ctx context.Context, session *pgx.Conn, try string) (locked bool, err error) {
	err = session.QueryRow(ctx, try, brokerLock).Scan(&locked)
	return locked, err
}

// keepBrokerLock takes the lock again whenever its session was lost, for instance by a failover of the database. It fails
// if another service has taken it.
func (s *Service) keepBrokerLock(ctx context.Context) error {
	for s.brokerSession != nil {
		if err := wait(ctx, brokerLockInterval); err != nil {
			return err
		}
		if s.brokerSession.Ping(ctx) == nil || ctx.Err() != nil {
			continue
		}
		_ = s.brokerSession.Close(ctx) // it is broken
		if err := s.lockBroker(ctx); errors.Is(err, errSecondBroker) {
			return err
		} else if err != nil {
			s.log.WarnContext(ctx, "the lock of the embedded broker is lost while the database is away", "error", err)
		}
	}
	<-ctx.Done()
	return ctx.Err()
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
