package enroll_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/enroll"
	"github.com/yeolda/yeolda/cloud/internal/grantkey"
	"github.com/yeolda/yeolda/cloud/internal/pgtest"
	"github.com/yeolda/yeolda/cloud/internal/postgres"
	"github.com/yeolda/yeolda/protocol"
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
	token, err := enroll.Offer(t.Context(), db.Pool, "gangnam", "", "cli:root", keys, time.Now())
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

// A machine that did not receive the answer repeats the exchange. A machine with another key pair, or one that has connected, cannot.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	db := database(t)
	token, err := enroll.Offer(t.Context(), db.Pool, "gangnam", "", "cli:root", keys, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	machine, thief := bytes.Repeat([]byte{1}, ed25519.PublicKeySize), bytes.Repeat([]byte{2}, ed25519.PublicKeySize)
	exchange := func(key ed25519.PublicKey) (enroll.Credential, error) {
		return enroll.Exchange(t.Context(), db, token, ring(db), key, "")
	}
	lost, err := exchange(machine)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []ed25519.PublicKey{thief, nil} {
		if _, err := exchange(key); !errors.Is(err, enroll.ErrToken) {
			t.Errorf("another machine: got %v, want ErrToken", err)
		}
	}
	again, err := exchange(machine)
	if err != nil || again.Username != lost.Username || again.Branch != "gangnam" || again.Password == lost.Password || !slices.Equal(again.GrantPublicKeys, lost.GrantPublicKeys) {
		t.Errorf("got %+v, %v, want %s with another password", again, err, lost.Username)
	}
	want := sha256.Sum256([]byte(again.Password))
	err = postgres.FindAgents(t.Context(), db.Pool, []string{again.Username}, func(_, _ string, hash, _ []byte) {
		if string(hash) != string(want[:]) {
			t.Error("the new password is not stored")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool.Exec(t.Context(), `update agent_credential set seen_at = now() where username = $1`, again.Username); err != nil {
		t.Fatal(err)
	}
	if _, err := exchange(machine); !errors.Is(err, enroll.ErrToken) {
		t.Errorf("after the machine has connected: got %v, want ErrToken", err)
	}
}

func TestTokenLife(t *testing.T) {
	t.Parallel()
	db := database(t)
	for age, want := range map[time.Duration]error{enroll.TokenLife - time.Minute: nil, enroll.TokenLife + time.Minute: enroll.ErrToken} {
		token, err := enroll.Offer(t.Context(), db.Pool, "gangnam", "", "cli:root", keys, time.Now().Add(-age))
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
	if _, err := enroll.Offer(t.Context(), db.Pool, "busan", "", "cli:root", keys, time.Now()); !errors.Is(err, postgres.ErrNoBranch) {
		t.Errorf("no such branch: %v", err)
	}
}

// TestTokenIsAnArgument checks that no command takes a token for a flag: none begins with a hyphen.
func TestTokenIsAnArgument(t *testing.T) {
	t.Parallel()
	db := database(t)
	for range 500 {
		token, err := enroll.Offer(t.Context(), db.Pool, "gangnam", "", "cli:root", keys, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(token, "-") {
			t.Fatalf("a command takes the token for a flag: %s", token)
		}
	}
}

// TestScript runs the script with replacements of the system's commands that log their calls. curl copies from a folder. Only a
// package that a release key of the server has signed reaches dpkg.
func TestScript(t *testing.T) {
	t.Parallel()
	release, other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)), ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, ed25519.SeedSize))
	key := base64.StdEncoding.EncodeToString(release.Public().(ed25519.PublicKey))
	elder := base64.StdEncoding.EncodeToString(other.Public().(ed25519.PublicKey))
	content := []byte("a package\x00\n")
	signature := func(key ed25519.PrivateKey, version, architecture string) string {
		sum := sha256.Sum256(content)
		return version + " " + protocol.SignPackage(key, version, protocol.Package{Architecture: architecture, SHA256: hex.EncodeToString(sum[:])}).Signature + "\n"
	}
	good := signature(release, "1.2.0~3.gab", "arm64")
	for name, tt := range map[string]struct {
		keys      []string
		content   []byte
		signature string // empty: there is none
		address   string // empty: https
		problem   string // empty: it is installed
	}{
		"good":                   {[]string{key}, content, good, "", ""},
		"good, the second key":   {[]string{elder, key}, content, good, "", ""},
		"changed":                {[]string{key}, []byte("another package"), good, "", "no release key has signed"},
		"unsigned":               {[]string{key}, content, "", "", "is not signed"},
		"empty signature":        {[]string{key}, content, "\n", "", "no release key has signed"},
		"signed by another key":  {[]string{key}, content, signature(other, "1.2.0", "arm64"), "", "no release key has signed"},
		"of another machine":     {[]string{key}, content, signature(release, "1.2.0", "amd64"), "", "no release key has signed"},
		"with another version":   {[]string{key}, content, strings.Replace(good, "1.2.0", "1.3.0", 1), "", "no release key has signed"},
		"commands in the file":   {[]string{key}, content, "$(touch${IFS}x) `id`\n", "", "no release key has signed"},
		"no key of the server":   {nil, content, good, "", "names no release key"},
		"without TLS":            {[]string{key}, content, good, "http://packages.example/agent.deb", "over https://"},
		"a file of the operator": {nil, content, "", "FILE", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			log := "#!/bin/sh\necho \"$(basename \"$0\") $*\" >>" + dir + "/done\n"
			files := map[string]string{
				"yeolda-agent": log, "chown": log, "systemctl": log, "id": "#!/bin/sh\necho 0\n",
				"dpkg":   log + "[ \"$1\" != --print-architecture ] || echo arm64\n[ \"$1\" != --install ] || cp \"$2\" " + dir + "/installed\n",
				"curl":   log + "for last; do :; done\nwhile [ \"$1\" != -o ]; do shift; done\ncp \"" + dir + "/site/${last##*/}\" \"$2\" 2>/dev/null || exit 22\n",
				"script": enroll.Script("https://yeolda.example", tt.keys), "site/agent.deb": string(tt.content),
			}
			if tt.signature != "" {
				files["site/agent.deb.sig"] = tt.signature
			}
			if err := os.Mkdir(filepath.Join(dir, "site"), 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			address := strings.Replace(cmp.Or(tt.address, "https://packages.example/agent.deb"), "FILE", dir+"/site/agent.deb", 1)
			run := func(args ...string) (string, error) {
				c := exec.Command("sh", append([]string{filepath.Join(dir, "script")}, args...)...)
				c.Dir, c.Env = dir, []string{"PATH=" + dir + ":/usr/bin:/bin", "YEOLDA_AGENT_PACKAGE=" + address}
				out, err := c.CombinedOutput()
				return string(out), err
			}
			if out, err := run(); err == nil {
				t.Errorf("without a token: %s", out)
			}
			out, err := run("TOKEN")
			installed, _ := os.ReadFile(filepath.Join(dir, "installed"))
			done, _ := os.ReadFile(filepath.Join(dir, "done"))
			if tt.problem != "" {
				if err == nil || !strings.Contains(out, tt.problem) || installed != nil || strings.Contains(string(done), "yeolda-agent enroll") {
					t.Errorf("got %v and %q, want a failure with %q and no installation; calls:\n%s", err, out, tt.problem, done)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if !bytes.Equal(installed, tt.content) {
				t.Errorf("installed %q, want the package", installed)
			}
			for _, want := range []string{
				"dpkg --install", "yeolda-agent enroll --server https://yeolda.example TOKEN\n",
				"chown yeolda-agent: /etc/yeolda-agent/credentials", "systemctl enable --quiet yeolda-agent.service", "yeolda-agent doctor",
			} {
				if !strings.Contains(string(done), want) {
					t.Errorf("not done: %s\n%s", want, done)
				}
			}
		})
	}
}

// TestScriptInstallsThePackageOfTheServer runs the script on a machine without an agent.
func TestScriptInstallsThePackageOfTheServer(t *testing.T) {
	t.Parallel()
	release := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	key := base64.StdEncoding.EncodeToString(release.Public().(ed25519.PublicKey))
	content := []byte("the package that fits")
	sum := sha256.Sum256(content)
	signature := "1.2.0 " + protocol.SignPackage(release, "1.2.0", protocol.Package{Architecture: "armhf", SHA256: hex.EncodeToString(sum[:])}).Signature + "\n"
	for name, served := range map[string]bool{"served": true, "missing": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			const log = "#!/bin/sh\necho \"$(basename \"$0\") $*\" >>done\n"
			files := map[string]string{
				"chown": log, "systemctl": log, "id": "#!/bin/sh\necho 0\n", "agent": log,
				"dpkg":   log + "[ \"$1\" != --print-architecture ] || echo armhf\n[ \"$1\" != --install ] || { cp \"$2\" installed; cp agent yeolda-agent; }\n",
				"curl":   log + "for last; do :; done\nwhile [ \"$1\" != -o ]; do shift; done\ncp \"${last##*/}\" \"$2\" 2>/dev/null || exit 22\n",
				"script": enroll.Script("https://yeolda.example", []string{key}),
			}
			if served {
				files["yeolda-agent_armhf.deb"], files["yeolda-agent_armhf.deb.sig"] = string(content), signature
			}
			for name, text := range files {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.Command("sh", filepath.Join(dir, "script"), "TOKEN")
			c.Dir, c.Env = dir, []string{"PATH=" + dir + ":/usr/bin:/bin"}
			out, err := c.CombinedOutput()
			done, _ := os.ReadFile(filepath.Join(dir, "done"))
			if !strings.Contains(string(done), "https://yeolda.example/packages/yeolda-agent_armhf.deb\n") {
				t.Errorf("the server was not asked for its package:\n%s", done)
			}
			if !served {
				if err == nil || !strings.Contains(string(out), "The server needs the signed package of its version for armhf") {
					t.Errorf("got %v and %q, want a failure that names the remedy", err, out)
				}
				return
			}
			if installed, _ := os.ReadFile(filepath.Join(dir, "installed")); err != nil || !bytes.Equal(installed, content) || !strings.Contains(string(done), "yeolda-agent enroll") {
				t.Errorf("%v: installed %q\n%s%s", err, installed, out, done)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	t.Parallel()
	if got, want := enroll.Command("https://yeolda.example", "T"), "curl --proto =https --tlsv1.2 -fsS https://yeolda.example/install.sh | sudo sh -s -- T"; got != want {
		t.Errorf("%s", got)
	}
}

// TestSettingsOfTheReplacedMachine checks which settings a new machine gets: those in use on the machine that it replaces, or on the
// active one of the branch.
func TestSettingsOfTheReplacedMachine(t *testing.T) {
	t.Parallel()
	db := database(t)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Pool.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`insert into branch (code) values ('hongdae')`)
	for _, a := range []struct {
		branch, name string
		active       bool
	}{{"gangnam", "a", true}, {"gangnam", "b", false}, {"hongdae", "c", true}} {
		exec(`insert into agent_credential (username, branch_id, secret_hash, active, seen_at) select $2, id, 'x', $3, now() from branch where code = $1`, a.branch, a.name, a.active)
		for version, state := range []string{"replaced", "in-use", "rolled-back"} {
			exec(`insert into agent_settings (username, version, settings, created_by, created_at, state, state_at) values ($1, $2, $3, 'x', now(), $4, now())`,
				a.name, version+1, a.name+" "+state, state)
		}
	}
	for replaces, want := range map[string]string{"": "a in-use", "a": "a in-use", "b": "b in-use"} {
		token, err := enroll.Offer(t.Context(), db.Pool, "gangnam", replaces, "cli:root", keys, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		c, err := enroll.Exchange(t.Context(), db, token, ring(db), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		got, err := postgres.SettingsVersion(t.Context(), db.Pool, c.Username, 0)
		if err != nil || got.Text != want || got.Version != 1 || got.State != "asked" || got.CreatedBy != "agent:"+want[:1] {
			t.Errorf("a machine that replaces %q: got %+v, %v, want %q", replaces, got, err, want)
		}
	}
	for _, replaces := range []string{"c", "nobody"} {
		if _, err := enroll.Offer(t.Context(), db.Pool, "gangnam", replaces, "cli:root", keys, time.Now()); !errors.Is(err, postgres.ErrNoAgent) {
			t.Errorf("a machine that replaces %q: got %v, want ErrNoAgent", replaces, err)
		}
	}
}
