package world

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// StartPostgres starts a PostgreSQL server with its data below dir. It returns the URL of its database.
func StartPostgres(ctx context.Context, dir, address string, log io.Writer) (database string, server *Process, err error) {
	database, server, err = newPostgres(dir, address, log)
	if err != nil {
		return "", nil, err
	}
	return database, server, server.Start(ctx)
}

// newPostgres creates the data of a server that is not started yet.
func newPostgres(dir, address string, log io.Writer) (database string, server *Process, err error) {
	programs, err := PostgresPrograms()
	if err != nil {
		return "", nil, err
	}
	data := filepath.Join(dir, "postgres")
	if err := os.Mkdir(data, 0o700); err != nil {
		return "", nil, err
	}
	as, err := PostgresAccount(data)
	if err != nil {
		return "", nil, err
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(programs, name), args...) //nolint:noctx // Close ends the server, in its order
		cmd.Dir, cmd.SysProcAttr = data, &syscall.SysProcAttr{Credential: as}
		return cmd
	}
	if out, err := command("initdb", "-D", data, "-A", "trust", "-U", "yeolda", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, err
	}
	database = "postgres://yeolda@" + address + "/postgres?sslmode=disable"
	server = &Process{Name: "postgres", log: &prefixed{name: "postgres", out: log},
		command: func() *exec.Cmd {
			return command("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=500", "-c", "track_commit_timestamp=on")
		},
		ready: func() bool {
			return exec.Command(filepath.Join(programs, "psql"), database, "-c", "select 1").Run() == nil //nolint:noctx // also called after later starts
		},
	}
	return database, server, nil
}
