package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// floor answers the requests of an unlock and of its announcement with constants, in its own process.
type floor struct {
	process *exec.Cmd
	url     string
}

// startFloor runs this program again, as serveFloor.
func startFloor(ctx context.Context) (*floor, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &floor{process: exec.CommandContext(ctx, program, "-floor")}
	f.process.Stderr = os.Stderr
	out, err := f.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := f.process.Start(); err != nil {
		return nil, err
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("floor: %w", err)
	}
	f.url = "http://" + strings.TrimSpace(address)
	return f, nil
}

// Close ends the floor's process.
func (f *floor) Close() {
	_ = f.process.Process.Kill()
	_ = f.process.Wait() // it was killed
}

func (f *floor) press(ctx context.Context, _ int64) (bool, error) {
	if err := post(ctx, f.url+"/unlock", `{"branch":"gangnam","doorlockType":"room","key":"0b0e1f5c-0000-4000-8000-000000000000"}`, nil); err != nil {
		return false, err
	}
	return result(ctx, f.url+"/subscribe")
}

func (f *floor) announce(ctx context.Context, _ int64) error {
	return post(ctx, f.url+"/announcements", `{"branch":"gangnam","door":"room"}`, nil)
}

// serveFloor prints its address and serves until it is killed.
func serveFloor() error {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /unlock", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"success","errorType":null,"errorCode":null,"message":null,"data":{"requestId":"0b0e1f5c-0000-4000-8000-000000000000"}}`)
	})
	mux.HandleFunc("POST /announcements", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"success","errorType":null,"errorCode":null,"message":null,"data":null}`)
	})
	mux.HandleFunc("GET /subscribe", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: door-result\ndata: {\"status\":\"SUCCESS\",\"device\":\"room_1\",\"failoverKey\":null}\n\n")
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return (&http.Server{Handler: mux, ReadHeaderTimeout: time.Second}).Serve(listener)
}
