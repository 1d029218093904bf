package enroll_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/enroll"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
)

var signing = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))

var keys = grantkey.Set{Public: []string{base64.StdEncoding.EncodeToString(signing.Public().(ed25519.PublicKey))}}

func ring(db *postgres.DB) *grantkey.Ring {
	return &grantkey.Ring{DB: db, First: []ed25519.PrivateKey{signing}, Log: slog.New(slog.DiscardHandler)}
}

func database(t *testing.T) *postgres.DB {
	t.Helper()
	db := pgtest.New(t)
	if _, err := db.Pool.Exec(t.Context(), `insert into branch (code) values ('gangnam')`); err != nil {
		t.Fatal(err)
	}
	return db
}

// TestOnce checks that if several machines have the token, exactly one becomes the agent.
func TestOnce(t *testing.T) {
	t.Parallel()
	db := database(t)
	token, err := enroll.Offer(t.Context(), db.Pool, "gangnam", "cli:root", keys, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	var won atomic.Int32
	var machines sync.WaitGroup
	for range 8 {
		machines.Go(func() {
			c, err := enroll.Exchange(context.WithoutCancel(t.Context()), db, token, ring(db), nil, "")
			if errors.Is(err, enroll.ErrToken) {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			won.Add(1)
			want := sha256.Sum256([]byte(c.Password))
			known := false
			err = postgres.FindAgents(context.WithoutCancel(t.Context()), db.Pool, []string{c.Username}, func(_, branch string, hash, _ []byte) {
				known = branch == "gangnam" && string(hash) == string(want[:])
			})
			if err != nil || !known {
				t.Errorf("the credential is not known: %v", err)
			}
		})
	}
	machines.Wait()
	if n := won.Load(); n != 1 {
		t.Errorf("%d machines became the agent", n)
	}
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	db := database(t)
	for age, want := range map[time.Duration]error{enroll.TokenLife - time.Minute: nil, enroll.TokenLife + time.Minute: enroll.ErrToken} {
		token, err := enroll.Offer(t.Context(), db.Pool, "gangnam", "cli:root", keys, time.Now().Add(-age))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := enroll.Exchange(t.Context(), db, token, ring(db), nil, ""); !errors.Is(err, want) {
			t.Errorf("after %v: %v, want %v", age, err, want)
		}
	}
	if _, err := enroll.Exchange(t.Context(), db, "none", ring(db), nil, ""); !errors.Is(err, enroll.ErrToken) {
		t.Errorf("a made-up token: %v", err)
	}
	if _, err := enroll.Offer(t.Context(), db.Pool, "busan", "cli:root", keys, time.Now()); !errors.Is(err, postgres.ErrNoBranch) {
		t.Errorf("no such branch: %v", err)
	}
}

// TestScript runs the script with replacements of the system's commands that log their calls.
func TestScript(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := "#!/bin/sh\necho \"$(basename \"$0\") $*\" >>" + dir + "/done\n"
	for name, text := range map[string]string{
		"yeolda-agent": log, "dpkg": log + "[ \"$1\" != --print-architecture ] || echo arm64\n", "curl": log, "chown": log, "systemctl": log,
		"id": "#!/bin/sh\necho 0\n", "script": enroll.Script("https://yeolda.example"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		c := exec.Command("sh", append([]string{filepath.Join(dir, "script")}, args...)...)
		c.Env = []string{"PATH=" + dir + ":/usr/bin:/bin", "YEOLDA_AGENT_PACKAGE=https://packages.example/agent.deb"}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run(); err == nil {
		t.Errorf("without a token: %s", out)
	}
	if out, err := run("TOKEN"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	done, err := os.ReadFile(filepath.Join(dir, "done"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"https://packages.example/agent.deb", "dpkg --install", "yeolda-agent enroll --server https://yeolda.example TOKEN\n",
		"chown yeolda-agent: /etc/yeolda-agent/credentials", "systemctl enable --quiet yeolda-agent.service", "yeolda-agent doctor",
	} {
		if !strings.Contains(string(done), want) {
			t.Errorf("not done: %s\n%s", want, done)
		}
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	if got, want := enroll.Command("https://yeolda.example", "T"), "curl --proto =https --tlsv1.2 -fsS https://yeolda.example/install.sh | sudo sh -s -- T"; got != want {
		t.Errorf("%s", got)
	}
}
