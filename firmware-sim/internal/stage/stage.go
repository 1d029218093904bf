// Package stage tells what the product does on one page: the guest's phone, the console, the floor plan and the messages side by
// side, and scenes that play on the running service, simulator and sandbox.
//
//	GET   /stage                  the page
//	POST  /stage/scenes/{scene}   plays a scene; the answer is one [Step] in JSON a line, as it happens
//
// It is for demos: the service allows the frames only in demo mode (YEOLDA_STAGE_ORIGIN).
package stage

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
)

//go:embed page
var files embed.FS

// Stage plays scenes. One is played at a time.
type Stage struct {
	Service, Sandbox, Simulator string        // origins
	Pace                        time.Duration // time to read a step

	playing sync.Mutex
	stays   []string // keys of the stays of earlier scenes that have not ended
}

// Step is one sentence of a scene, in both languages, and what the frames show with it.
type Step struct {
	Ko     string            `json:"ko"`
	En     string            `json:"en"`
	Frames map[string]string `json:"frames,omitempty"` // addresses by frame: phone, console, plan, messages
	Failed bool              `json:"failed,omitempty"` // the scene ends without its ending
}

// Names of the frames.
const (
	phone    = "phone"
	console  = "console"
	plan     = "plan"
	messages = "messages"
)

// Handler returns the handler for all paths.
func (s *Stage) Handler() http.Handler {
	r := chi.NewRouter()
	for path, mediaType := range map[string]string{"": "text/html; charset=utf-8", "/stage.css": "text/css; charset=utf-8", "/stage.js": "text/javascript; charset=utf-8"} {
		r.Get("/stage"+path, s.file(path, mediaType))
	}
	r.Get("/stage/frames", s.frames)
	r.Post("/stage/scenes/{scene}", s.play)
	return r
}

func (s *Stage) file(path, mediaType string) http.HandlerFunc {
	name := "page" + path
	if path == "" {
		name = "page/stage.html"
	}
	policy := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
		"frame-ancestors 'none'; frame-src 'self' " + s.Service + " " + s.Sandbox
	return func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("Content-Type", mediaType)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, files, name)
	}
}

// frames returns what the frames show before the first scene.
func (s *Stage) frames(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{
		phone: s.Service + "/", console: s.Service + "/console", plan: "/?branch=" + branch, messages: s.Sandbox + "/#messages",
	})
}

// play streams the steps of a scene.
func (s *Stage) play(w http.ResponseWriter, r *http.Request) {
	scene := scenes[chi.URLParam(r, "scene")]
	if scene == nil {
		http.Error(w, "no such scene", http.StatusNotFound)
		return
	}
	// A page of another origin must not play: the scenes change the demo.
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
		http.Error(w, "from another origin", http.StatusForbidden)
		return
	}
	if !s.playing.TryLock() {
		http.Error(w, "another scene is played", http.StatusConflict)
		return
	}
	defer s.playing.Unlock()
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	t := &telling{Stage: s, ctx: r.Context(), step: func(step Step) error {
		if err := lines.Encode(step); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}}
	t.prepare()
	scene(t)
	if err := t.err; err != nil {
		_ = t.step(Step{Ko: fmt.Sprintf("장면이 끊겼어요: %v", err), En: fmt.Sprintf("The scene broke off: %v", err), Failed: true})
	}
	// A visitor who closes the page leaves no fault behind.
	t.ctx, t.err = context.WithoutCancel(r.Context()), nil
	t.restore()
}

// telling is a scene in progress. After an error its methods do nothing.
type telling struct {
	*Stage
	ctx  context.Context // of the request
	step func(Step) error
	err  error
}

// do runs a part of the scene unless an earlier one has failed.
func (t *telling) do(part func() error) {
	if t.err == nil {
		t.err = part()
	}
}

// tell sends a step and waits as long as a person needs to read it.
func (t *telling) tell(ko, en string, frames map[string]string) {
	t.do(func() error {
		if err := t.step(Step{Ko: ko, En: en, Frames: frames}); err != nil {
			return err
		}
		select {
		case <-t.ctx.Done():
			return t.ctx.Err()
		case <-time.After(t.Pace):
			return nil
		}
	})
}

// prepare ends the stays of earlier scenes, so that rooms are free, and repairs what a visitor may have left broken.
func (t *telling) prepare() {
	t.restore()
	for _, key := range t.stays {
		t.do(func() error {
			return unlessRefused(t.newPerson().call(t.ctx, http.MethodPost, "/v2/keys/"+key+"/end", nil, nil))
		})
	}
	t.stays = nil
}

// restore removes the faults of a scene.
func (t *telling) restore() {
	t.do(func() error { return t.newPerson().ask(t.ctx, http.MethodDelete, t.faults(), nil, nil) })
}

// breaks sets a fault of the branch, or of a device in it.
func (t *telling) breaks(kind, device string) {
	t.do(func() error {
		return t.newPerson().ask(t.ctx, http.MethodPut, t.faults(), map[string]string{"kind": kind, "device": device}, nil)
	})
}

func (t *telling) faults() string { return t.Simulator + "/sim/branches/" + branch + "/faults" }
