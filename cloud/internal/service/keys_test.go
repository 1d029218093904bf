package service_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
	"github.com/yeolda/yeolda/cloud/internal/service"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// TestKeysOfAnotherInstallationAreRejected starts a second service on the database of a first one, with one other key each.
func TestKeysOfAnotherInstallationAreRejected(t *testing.T) {
	t.Parallel()
	first := servicetest.Start(t) // with agents of the demo branches
	start := func(encryption, grant string) error {
		settings := first.Settings
		settings.HTTP.Addr, settings.HTTP.MetricsAddr, settings.MQTT.BrokerURL = "127.0.0.1:0", "127.0.0.1:0", "mqtt://127.0.0.1:9"
		if encryption != "" {
			settings.Secrets.EncryptionKey = config.NewSecret(encryption)
		}
		if grant != "" {
			settings.Secrets.GrantKey = config.NewSecret(grant)
		}
		s, err := service.New(t.Context(), settings, slog.New(slog.DiscardHandler), postgres.NewClock(time.Now))
		if err == nil {
			s.Close()
		}
		return err
	}
	for _, test := range []struct{ encryption, grant, want string }{
		{"", "", ""},
		{seal.NewKey(), "", "YEOLDA_ENCRYPTION_KEY"},
		{seal.NewKey() + "," + first.Settings.Secrets.EncryptionKey.Reveal(), "", ""},
		{"", seal.NewKey(), "YEOLDA_GRANT_KEY"},
		{"", first.Settings.Secrets.GrantKey.Reveal() + "," + seal.NewKey(), ""},
	} {
		got := ""
		err := start(test.encryption, test.grant)
		if problem := new(config.Problem); errors.As(err, &problem) {
			got = problem.Variable
		} else if err != nil {
			t.Fatal(err)
		}
		if got != test.want {
			t.Errorf("other keys %q, %q: got %v, want the problem of %q", test.encryption, test.grant, err, test.want)
		}
	}
}
