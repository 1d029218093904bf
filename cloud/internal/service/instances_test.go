package service_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/service"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestSecondEmbeddedBrokerIsRejected starts a second service on the same database: only with an external broker may both
// serve agents.
func TestSecondEmbeddedBrokerIsRejected(t *testing.T) {
	t.Parallel()
	first := servicetest.Start(t)
	settings := first.Settings
	settings.HTTP.Addr, settings.HTTP.MetricsAddr, settings.MQTT.Addr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	_, err := service.New(t.Context(), settings, slog.New(slog.DiscardHandler), postgres.NewClock(time.Now))
	if err == nil || !strings.Contains(err.Error(), "YEOLDA_BROKER_URL") {
		t.Errorf("second service with an embedded broker: got %v, want an error that names YEOLDA_BROKER_URL", err)
	}
	settings.MQTT.BrokerURL = "mqtt://127.0.0.1:9"
	second, err := service.New(t.Context(), settings, slog.New(slog.DiscardHandler), postgres.NewClock(time.Now))
	if err != nil {
		t.Fatalf("second service with an external broker: %v", err)
	}
	second.Close()
}

// TestEmbeddedBrokersFormAPool starts replicas with embedded brokers that join a pool. A service that is alone does not start
// beside them.
func TestEmbeddedBrokersFormAPool(t *testing.T) {
	t.Parallel()
	join := func(s *config.Settings) { s.MQTT.BrokerPeerURL = "mqtt://" + s.MQTT.Addr }
	first := servicetest.Start(t, join)
	second := servicetest.Start(t, join, func(s *config.Settings) { s.Database.URL = first.Settings.Database.URL })
	for _, s := range []*servicetest.Stack{first, second} {
		other := first.MQTT
		if s == first {
			other = second.MQTT
		}
		want := fmt.Sprintf("yeolda_mqtt_broker_connected{broker=%q} 1", other)
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			if _, metrics := read(t, s.Operations+"/metrics"); strings.Contains(metrics, want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no %s", want)
			}
		}
	}
	settings := first.Settings
	settings.HTTP.Addr, settings.HTTP.MetricsAddr, settings.MQTT.Addr, settings.MQTT.BrokerPeerURL = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", ""
	_, err := service.New(t.Context(), settings, slog.New(slog.DiscardHandler), postgres.NewClock(time.Now))
	if err == nil || !strings.Contains(err.Error(), "YEOLDA_BROKER_PEER_URL") {
		t.Errorf("a service that is alone beside a pool: got %v, want an error that names YEOLDA_BROKER_PEER_URL", err)
	}
}

// TestNotReadyWhileTheDatabaseTakesNoWrites blocks the canary's table, while queries succeed.
func TestNotReadyWhileTheDatabaseTakesNoWrites(t *testing.T) {
	t.Parallel()
	s := servicetest.Start(t)
	tx, err := s.DB.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `lock table work_success in access exclusive mode`); err != nil {
		t.Fatal(err)
	}
	await := func(status int, part string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			got, body := read(t, s.Operations+"/readyz")
			if got == status && strings.Contains(body, part) == (status == 503) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("readyz: got %d %s, want %d", got, body, status)
			}
		}
	}
	await(503, "takes no writes")
	if _, metrics := read(t, s.Operations+"/metrics"); !strings.Contains(metrics, "yeolda_database_writable 0") {
		t.Error("yeolda_database_writable is not 0")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	await(200, "takes no writes")
}
