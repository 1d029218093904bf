package doctor

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/yeolda/yeolda/cloud/internal/config"
	"github.com/yeolda/yeolda/cloud/internal/pgserver"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/cloud/internal/seal"
)

// clinic is an exam whose findings are read as text.
type clinic struct{ *exam }

func newClinic(t *testing.T, change func(*config.Settings)) clinic {
	t.Helper()
	var settings config.Settings
	settings.HTTP.PublicURL = "https://rooms.example" // in use
	if change != nil {
		change(&settings)
	}
	return clinic{&exam{settings: settings}}
}

// text returns the findings since the last call.
func (c clinic) text() string {
	var b strings.Builder
	for _, f := range c.findings {
		fmt.Fprintf(&b, "%s %s: %s", strings.Replace(string(f.Level), "fail", "FAIL", 1), f.Subject, f.Text)
		if f.Level != OK {
			b.WriteString("\n→ " + f.Remedy)
		}
		b.WriteString("\n")
	}
	c.findings = nil
	return b.String()
}

// demoOnly makes the settings those of a demonstration that only this machine reaches.
func demoOnly(s *config.Settings) {
	s.Secrets.Mode, s.HTTP.PublicURL = config.ModeDemo, "http://127.0.0.1:1"
}

// says checks the one finding, with its level, and that a remedy stands below what is wrong.
func (c clinic) says(t *testing.T, level, part, remedy string) {
	t.Helper()
	text := c.text()
	if !strings.HasPrefix(text, level) || !strings.Contains(text, part) || !strings.Contains(text, remedy) || (level != "ok") != strings.Contains(text, "→ ") {
		t.Errorf("got %q, want %s with %q and the remedy %q", text, level, part, remedy)
	}
}

func TestDoctorOnProxies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change  func(*config.Settings)
		proxy   func() string
		unknown bool
	}{
		"untrusted":            {nil, func() string { return "172.18.0.5" }, true},
		"trusted":              {nil, func() string { return "" }, false},
		"outside of a service": {nil, nil, false},
		"a demonstration":      {demoOnly, func() string { return "127.0.0.1" }, false},
	} {
		c := newClinic(t, test.change)
		c.untrustedProxy = test.proxy
		c.examineSite()
		if text := c.text(); strings.Contains(text, "FAIL proxy: requests come through 172.18.0.5") != test.unknown || strings.Contains(text, "FAIL") != test.unknown {
			t.Errorf("%s: got %q, want the proxy: %v", name, text, test.unknown)
		}
	}
}

// A missing address is reported with the settings, and is not in order here.
func TestDoctorOnAMissingAddress(t *testing.T) {
	t.Parallel()
	c := newClinic(t, func(s *config.Settings) { s.HTTP.PublicURL = "" })
	c.examineSite()
	if text := c.text(); text != "" {
		t.Errorf("got %q, want nothing", text)
	}
}

func TestDoctorOnDisks(t *testing.T) {
	t.Parallel()
	c := newClinic(t, nil)
	disk := func(free, total uint64) func(string) (uint64, uint64, error) {
		return func(string) (uint64, uint64, error) { return free << 20, total << 20, nil }
	}
	c.examineDisk("/data", disk(20_000, 100_000))
	c.says(t, "ok", "20000 of 100000 MiB are free at /data", "")
	c.examineDisk("/data", disk(5_000, 100_000))
	c.says(t, "warn", "5000 of 100000 MiB", "make room before")
	c.examineDisk("/data", disk(100, 400))
	c.says(t, "FAIL", "100 of 400 MiB", "make room: without it the database stops")
	c.examineDisk("/data/not/yet", func(dir string) (uint64, uint64, error) {
		if dir != "/data" {
			return 0, 0, os.ErrNotExist
		}
		return 1 << 40, 1 << 40, nil
	})
	c.says(t, "ok", "at /data", "")
	c.examineDisk("/data", func(string) (uint64, uint64, error) { return 0, 0, errors.ErrUnsupported })
	if text := c.text(); text != "" {
		t.Errorf("of an unsupported system: %s", text)
	}
	c.examineDisk(t.TempDir(), pgserver.FreeSpace)
	if text := c.text(); !strings.Contains(text, "MiB are free") {
		t.Errorf("of this machine: %s", text)
	}
}

func TestDoctorOnBackups(t *testing.T) {
	t.Parallel()
	c, dir := newClinic(t, nil), t.TempDir()
	c.backups = dir
	c.examineBackups()
	c.says(t, "FAIL", "there is none in", "yeolda-backup.timer")
	file := filepath.Join(dir, "yeolda-20261120T183000Z.dump")
	if err := os.WriteFile(file, []byte("PGDMP"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.examineBackups()
	c.says(t, "ok", "the last one is of", "")
	if err := os.Chtimes(file, time.Time{}, time.Now().Add(-26*time.Hour)); err != nil {
		t.Fatal(err)
	}
	c.examineBackups()
	c.says(t, "warn", "is of", "journalctl -u yeolda-backup")
	c.backups = config.Off
	c.examineBackups()
	demo := newClinic(t, demoOnly)
	demo.backups = t.TempDir()
	demo.examineBackups()
	if text := c.text() + demo.text(); text != "" {
		t.Errorf("backups made elsewhere, or a demonstration: got %s, want no finding", text)
	}
}

func TestDoctorOnTheCalendar(t *testing.T) {
	t.Parallel()
	c := newClinic(t, nil)
	c.examineCalendar(time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC))
	c.says(t, "ok", "2027 are known", "")
	c.examineCalendar(time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC))
	c.says(t, "warn", "2029 are not known", "update this program")
}

func TestDoctorOnTheProviderAndItsClock(t *testing.T) {
	t.Parallel()
	var ahead time.Duration
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		w.WriteHeader(http.StatusNotFound)
	}))
	defer provider.Close()
	c := newClinic(t, func(s *config.Settings) {
		s.Toss.URL, s.Messages.SolapiURL, s.Messages.SMTPURL, s.Partner.URL = provider.URL, config.Off, config.Off, config.Off
	})
	c.examinePayments(t.Context())
	c.says(t, "ok", "agrees with the payment provider's", "")
	ahead = -time.Minute
	c.examinePayments(t.Context())
	if text := c.text(); !strings.Contains(text, "FAIL clock: this machine and the payment provider differ by 1m") || !strings.Contains(text, "→ run NTP here") {
		t.Errorf("a provider in another minute: %s", text)
	}
	provider.Close()
	c.examinePayments(t.Context())
	c.says(t, "FAIL", "payments", "check YEOLDA_TOSS_URL")
}

func TestDoctorOnThePublicAddress(t *testing.T) {
	t.Parallel()
	body := `{"status":"success","data":[]}`
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v2/branches" {
			_, _ = w.Write([]byte(body))
		}
	}))
	defer site.Close()
	// A name that is not loopback, at an address that is.
	c := newClinic(t, func(s *config.Settings) { s.HTTP.PublicURL = strings.Replace(site.URL, "127.0.0.1", hostname(t), 1) })
	c.examinePublic(t.Context())
	c.says(t, "ok", "leads here", "")
	body = "<h1>It works!</h1>"
	c.examinePublic(t.Context())
	c.says(t, "FAIL", "not an answer of this service", "/api/virtualaccount/webhook")
	site.Close()
	c.examinePublic(t.Context())
	c.says(t, "FAIL", "refused", "callbacks need them too")
	c = newClinic(t, demoOnly)
	c.examinePublic(t.Context())
	if text := c.text(); text != "" {
		t.Errorf("of a demonstration: got %s, want no finding", text)
	}
}

// hostname is a name of this machine that resolves to a loopback address without being one.
func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	found, err := net.DefaultResolver.LookupHost(context.WithoutCancel(t.Context()), name)
	for _, address := range found {
		if net.ParseIP(address).IsLoopback() {
			return name
		}
	}
	t.Skipf("the name of this machine leads to %v, %v", found, err)
	return ""
}

func TestDoctorOnCertificates(t *testing.T) {
	t.Parallel()
	c := newClinic(t, func(s *config.Settings) {
		s.MQTT.TLSAddr, s.MQTT.TLSCert, s.MQTT.TLSKey = ":8883", "none.crt", "none.key"
	})
	c.examineCertificate()
	c.says(t, "FAIL", "none.crt", "check YEOLDA_TLS_CERT")
	for _, test := range []struct {
		left          time.Duration
		level, remedy string
	}{{90 * 24 * time.Hour, "ok", ""}, {10 * 24 * time.Hour, "warn", "renew it, and find out"}, {-time.Hour, "FAIL", "no agent can connect"}} {
		c.settings.MQTT.TLSCert, c.settings.MQTT.TLSKey = certificate(t, time.Now().Add(test.left))
		c.examineCertificate()
		c.says(t, test.level, "of the MQTT listener", test.remedy)
	}
}

func certificate(t *testing.T, end time.Time) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: end.Add(-100 * 24 * time.Hour), NotAfter: end}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "crt"), filepath.Join(dir, "key")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: signed}, key: {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestDoctorOnTheDatabaseServer(t *testing.T) {
	t.Parallel()
	well := postgres.ServerDiagnosis{Version: "15.18", VersionNumber: 15_00_18, Clock: time.Now().Add(time.Hour), MaxConnections: 100}
	for _, test := range []struct {
		change       func(*postgres.ServerDiagnosis)
		part, remedy string
	}{
		{func(d *postgres.ServerDiagnosis) { d.VersionNumber, d.Version = 14_00_10, "14.10" }, "PostgreSQL 14.10", "use PostgreSQL 15 or newer"},
		{func(d *postgres.ServerDiagnosis) { d.Standby = true }, "is a standby", "target_session_attrs=read-write"},
		{func(d *postgres.ServerDiagnosis) { d.ReadOnly = true }, "takes no writes", "reset default_transaction_read_only"},
		{func(d *postgres.ServerDiagnosis) { d.Standby, d.ReadOnly = true, true }, "is a standby", "target_session_attrs=read-write"},
		{func(d *postgres.ServerDiagnosis) { d.Risky = []string{"synchronous_commit"} }, "synchronous_commit is off", "set synchronous_commit = on"},
		{func(d *postgres.ServerDiagnosis) { d.MaxConnections = 30 }, "max_connections is 30", "pool_max_conns"},
		{func(d *postgres.ServerDiagnosis) { d.Clock = time.Now().Add(-5 * time.Second) }, "this machine and the database differ by 5", "run NTP on both"},
	} {
		c := newClinic(t, nil)
		server := well
		server.Clock = time.Now()
		test.change(&server)
		c.judgeServer(server)
		if text := c.text(); !strings.Contains(text, test.part) || !strings.Contains(text, test.remedy) || strings.Count(text, "→ ") != 1 {
			t.Errorf("got %q, want %q and the remedy %q", text, test.part, test.remedy)
		}
	}
}

func TestDoctorOnAReadOnlyDatabase(t *testing.T) {
	t.Parallel()
	tx, err := pgtest.New(t).Pool.BeginTx(t.Context(), pgx.TxOptions{AccessMode: pgx.ReadOnly})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if server, err := postgres.DiagnoseServer(t.Context(), tx); err != nil || !server.ReadOnly {
		t.Errorf("got %+v, %v, want one that is read-only", server, err)
	}
}

// TestDoctorOnARestoration: a restoration that has not ended, and a rebuild, which stops all sales.
func TestDoctorOnARestoration(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := newClinic(t, nil)
	examine := func(check func(*exam, context.Context, *postgres.DB) error, want ...string) {
		t.Helper()
		if err := check(c.exam, t.Context(), db); err != nil {
			t.Fatal(err)
		}
		text := c.text()
		for _, part := range want {
			if !strings.Contains(text, part) {
				t.Errorf("got %q, want %q", text, part)
			}
		}
	}
	begin := func(ctx context.Context, tx pgx.Tx, _ time.Time) error {
		return errors.Join(postgres.BeginRestoration(ctx, tx, postgres.Restoration{File: "night.dump"}), postgres.BeginRebuild(ctx, tx))
	}
	if err := db.InTx(t.Context(), begin); err != nil {
		t.Fatal(err)
	}
	examine((*exam).examineSchema, "FAIL schema", "night.dump", "repeat it")
	examine((*exam).examineWork, "warn work", "no new reservations", "yeolda rebuild --end")
	if _, err := db.Pool.Exec(t.Context(), `update rebuild set begun_at = begun_at - interval '20 minutes'`); err != nil {
		t.Fatal(err)
	}
	examine((*exam).examineWork, "FAIL work")
	if err := errors.Join(postgres.DropRestoration(t.Context(), db.Pool), postgres.EndRebuild(t.Context(), db.Pool, db.Now())); err != nil {
		t.Fatal(err)
	}
	examine((*exam).examineSchema, "ok schema")
	examine((*exam).examineWork, "ok work")
}

func TestDoctorOnAlerts(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	for name, c := range map[string]struct {
		change func(*config.Settings)
		want   string
	}{
		"as shipped":     {func(s *config.Settings) { s.Messages.SMTPURL = config.Off }, "the headquarters receive none"},
		"mail is off":    {func(s *config.Settings) { s.Messages.SMTPURL, s.Messages.HQEmail = config.Off, "hq@rooms.example" }, "the headquarters receive none"},
		"mail":           {func(s *config.Settings) { s.Messages.HQEmail = "hq@rooms.example" }, ""},
		"a chat channel": {func(s *config.Settings) { s.Discord.WebhookURL = config.NewSecret("https://chat.example/hook") }, ""},
	} {
		d := newClinic(t, c.change)
		if err := d.examineAlerts(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if text := d.text(); !strings.Contains(text, c.want) || (text == "") != (c.want == "") {
			t.Errorf("%s: got %q", name, text)
		}
	}
	if err := postgres.PutAlertContacts(t.Context(), db.Pool, "", []byte("sealed")); err != nil {
		t.Fatal(err)
	}
	d := newClinic(t, nil)
	if err := d.examineAlerts(t.Context(), db); err != nil || d.text() != "" {
		t.Errorf("with contacts in the console: %v, %+v", err, d.findings)
	}
}

func TestDoctorOnCallbacksAndZones(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	c := newClinic(t, nil)
	examine := func() {
		t.Helper()
		if err := c.examineDeposits(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	examine()
	if text := c.text(); text != "" {
		t.Errorf("without deposits: %s", text)
	}
	exec(`insert into branch (code, time_zone) values ('gangnam', $1)`, "Asia/Soul")
	exec(`insert into room (branch_id, no) select id, 1 from branch`)
	exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied, order_id)
		select b.id, r.id, 'DONE', 'CUSTOMER', s, s + interval '1 hour', tstzrange(s, s + interval '70 minutes'), 'order-' || n
		from branch b, room r, generate_series(1, 2) n, lateral (select timestamptz '2026-11-21 00:00+09' + n * interval '5 hours' s) t`)
	exec(`insert into payment (reservation_id, key_set, confirm_key, deposited_at) select id, 'widget', order_id, clock_timestamp() from reservation`)
	examine()
	c.says(t, "FAIL", "reported none of 2 deposits", "register https://rooms.example/api/virtualaccount/webhook")
	exec(`insert into webhook_event (transmission_id, order_id, status) values ('a', $1, 'DONE')`, "order-1")
	examine()
	c.says(t, "warn", "not reported 1 of 2 deposits", "registered for both keys")
	exec(`insert into webhook_event (transmission_id, order_id, status) values ('b', $1, 'DONE')`, "order-2")
	examine()
	c.says(t, "ok", "reported all of 2 deposits", "")

	if err := c.examineBranches(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	c.says(t, "FAIL", `the unknown time zone "Asia/Soul"`, "update branch set time_zone")
}

// TestDoctorOnMisplacedReservations: a stay to come does not belong to the branch of its room. Those that are over are not named.
func TestDoctorOnMisplacedReservations(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into branch (code) select unnest($1::text[])`, []string{"gangnam", "hongdae"})
	exec(`insert into room (branch_id, no) select id, 1 from branch where code = $1`, "gangnam")
	exec(`insert into reservation (branch_id, room_id, state, source, start_at, end_at, occupied)
		select b.id, r.id, 'DONE', 'ADMIN', s, s + interval '1 hour', tstzrange(s, s + interval '1 hour')
		from branch b, room r, generate_series(1, 2) n,
		     lateral (select date_trunc('hour', clock_timestamp()) + (n - 1.5) * interval '10 hours' s) t where b.code = $1`, "hongdae")
	c := newClinic(t, nil)
	if err := c.examineBranches(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	c.says(t, "warn", "do not belong to the branch of their room, among them [1002]:", "move each to a room of its branch")
}

// TestDoctorOnGrantKeys restores a backup from before a rotation: the agent has keys that the database lacks.
func TestDoctorOnGrantKeys(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into branch (code, time_zone) values ('gangnam', $1)`, "Asia/Seoul")
	exec(`insert into agent_credential (username, branch_id, secret_hash, active, report) select 'agent-gangnam', id, '', true, $1 from branch`, `{"keyEpoch": 2}`)
	c := newClinic(t, nil)
	found := func() string {
		t.Helper()
		if err := c.examineBranches(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		return c.text()
	}
	if text := found(); !strings.Contains(text, "FAIL branch: gangnam opens no door") || !strings.Contains(text, "yeolda agent enroll gangnam --replace") {
		t.Errorf("got %q, want that the agent has later keys", text)
	}
	exec(`insert into grant_key_list (epoch, keys, signature) values (1, '{k}', ''), (2, '{k}', $1)`, "")
	if text := found(); strings.Contains(text, "opens no door") {
		t.Errorf("got %q, want nothing about keys that the database has", text)
	}
}

func TestDoctorOnAStepOfTheClock(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	began := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	step := "no time between " + when(began.AddDate(0, 0, 1)) + " and " + when(began.AddDate(10, 0, 0))
	until := "nothing that has expired is deleted before " + when(began.AddDate(10, 0, 3))
	for _, c := range []struct {
		at   time.Time
		step bool
	}{{began, false}, {began.AddDate(0, 0, 1), false}, {began.AddDate(10, 0, 0), true}, {began.AddDate(10, 0, 1), true}, {began.AddDate(10, 0, 2), true}, {began.AddDate(10, 0, 3), false}} {
		db.Now = func() time.Time { return c.at }
		if err := postgres.WatchClock(t.Context(), db.Pool, c.at); err != nil {
			t.Fatal(err)
		}
		clinic := newClinic(t, nil)
		if err := clinic.examineClockStep(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if text := clinic.text(); strings.Contains(text, step) != c.step || strings.Contains(text, until) != c.step {
			t.Errorf("at %v: got %q, want the step: %v", c.at, text, c.step)
		}
	}
}

func TestDoctorOnPartitions(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	c := newClinic(t, nil)
	examine := func() {
		t.Helper()
		if err := c.examinePartitions(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	examine()
	c.says(t, "ok", "exist for the next weeks", "")
	now := time.Now()
	db.Now = func() time.Time { return now.Add(60 * 24 * time.Hour) }
	examine()
	if text := c.text(); strings.Count(text, "FAIL partitions") != 2 || !strings.Contains(text, "sensor_reading has no partition from") {
		t.Errorf("after sixty days without a running service: %s", text)
	}
	if _, _, err := db.KeepPartitions(t.Context(), db.Now()); err != nil {
		t.Fatal(err)
	}
	examine()
	c.says(t, "ok", "exist for the next weeks", "")
	db.Now = func() time.Time { return now.Add(2 * 366 * 24 * time.Hour) }
	examine()
	if text := c.text(); !strings.Contains(text, "partitions whose rows have all expired") {
		t.Errorf("after two years: %s", text)
	}
}

func TestDoctorOnUnsafeSettings(t *testing.T) {
	t.Parallel()
	examine := func(rateLimits string, lastByte byte) string {
		c := newClinic(t, func(s *config.Settings) {
			s.HTTP.RateLimits = rateLimits
			key := append(bytes.Repeat([]byte{7}, seal.KeySize-1), lastByte)
			if err := s.Secrets.GrantKey.UnmarshalText([]byte(base64.StdEncoding.EncodeToString(key))); err != nil {
				t.Fatal(err)
			}
		})
		c.examineSettings()
		return c.text()
	}
	for _, finding := range []string{"FAIL settings: YEOLDA_RATE_LIMITS=off", "FAIL secrets: YEOLDA_GRANT_KEY is one byte repeated"} {
		if got := examine("off", 7); !strings.Contains(got, finding) {
			t.Errorf("unsafe settings: got %s, want %q", got, finding)
		}
		if got := examine("on", 8); strings.Contains(got, finding) {
			t.Errorf("safe settings: got %s, want no %q", got, finding)
		}
	}
}
