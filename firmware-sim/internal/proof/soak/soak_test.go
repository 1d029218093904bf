package soak_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/internal/proof/soak"
	"github.com/yeolda/yeolda/firmware-sim/internal/proof/world"
)

func TestTry(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	w, err := world.Start(ctx, world.Options{Root: "../../../..", Branches: 20, Bin: os.Getenv("TRYBIN")})
	if errors.Is(err, world.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	d, _ := time.ParseDuration(os.Getenv("TRY"))
	rec, lat, err := soak.Run(ctx, w, soak.Options{Seed: 1, For: d, Customers: 24, Admins: 4, Say: t.Logf})
	log, _ := os.ReadFile(w.LogFile)
	_ = os.WriteFile("/tmp/p/world.log", log, 0o644)
	text, _ := json.Marshal(rec)
	_ = os.WriteFile("/tmp/p/record.json", text, 0o644)
	text, _ = json.Marshal(lat)
	_ = os.WriteFile("/tmp/p/lat.json", text, 0o644)
	if err != nil {
		t.Error(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
