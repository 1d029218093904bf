package world_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/proof/world"
)

func TestWorldComesAndGoes(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	w, err := world.Start(ctx, world.Options{Root: "../../../..", Branches: 2})
	if errors.Is(err, world.ErrMissing) && os.Getenv("E2E_REQUIRED") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Replicas[0].Kill(); err != nil {
		t.Error(err)
	}
	if err := w.Mosquitto.Kill(); err != nil {
		t.Error(err)
	}
	if err := w.Restore(ctx); err != nil {
		t.Error(err)
	}
	if err := w.AwaitAgents(ctx, time.Minute); err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(w.LogFile); !errors.Is(err, os.ErrNotExist) {
		t.Error("its directory is left")
	}
}
