// Package stage tells what the product does on one page: the guest's phone, the console, the floor plan and the messages side by
// side, and scenes that play on the running service, simulator and sandbox.
//
//	GET   /stage                  the page
//	POST  /stage/scenes/{scene}   plays a scene; the answer is one [Step] in JSON a line, as it happens
//	POST  /stage/login            logs the visitor's browser in to the console
//
// It is for demos: the service allows the frames only in demo mode (YEOLDA_STAGE_ORIGIN).
package stage

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
)

//go:embed page
var files embed.FS

// restoreTimeout limits the removal of faults after a scene. It is shorter than the program's shutdown may take.
const restoreTimeout = 2 * time.Second

// Stage plays scenes. One is played at a time.
type Stage struct {
	Service, Sandbox, Simulator string        // origins
	Origin                      string        // at which browsers open the stage and the pages allow frames
	Pace                        time.Duration // time to read a step
	Log                         *slog.Logger

	playing sync.Mutex
	guests  []*booking // of earlier scenes, whose rooms are not released yet
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
	r.With(sameOrigin).Post("/stage/scenes/{scene}", s.play)
	r.With(sameOrigin).Post("/stage/login", s.login)
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

// sameOrigin rejects requests of pages of other origins: scenes change the demo, and a login ends another session.
func sameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" {
			http.Error(w, "from another origin", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// frames returns the origin of the stage and what the frames show before the first scene.
func (s *Stage) frames(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"origin": s.Origin, "frames": map[string]string{
		phone: s.Service + "/", console: s.Service + "/console", plan: "/?branch=" + branch, messages: s.Sandbox + "/#messages",
	}})
}

// login passes on the cookies of a login as hq. Cookies apply to all ports of a host, so they log in the frame of the console.
func (s *Stage) login(w http.ResponseWriter, r *http.Request) {
	answer, err := s.newPerson().send(r.Context(), http.MethodPost, s.Service+"/api/admin/login", administrator)
	if err != nil {
		s.Log.Warn("stage: login failed", "error", err)
		http.Error(w, "the service does not respond", http.StatusBadGateway)
		return
	}
	defer answer.Body.Close()
	for _, cookie := range answer.Header.Values("Set-Cookie") {
		w.Header().Add("Set-Cookie", cookie)
	}
	w.WriteHeader(answer.StatusCode)
}

// play streams the steps of a scene.
func (s *Stage) play(w http.ResponseWriter, r *http.Request) {
	name := chi.URLParam(r, "scene")
	scene := scenes[name]
	if scene == nil {
		http.Error(w, "no such scene", http.StatusNotFound)
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
	t.restore()
	t.releaseRooms()
	scene(t)
	if err := t.err; err != nil && r.Context().Err() == nil {
		s.Log.Warn("stage: a scene broke off", "scene", name, "error", err)
		_ = t.step(lastStep(err))
	}
	// A visitor who closes the page and a program that ends leave no fault behind.
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.Context()), restoreTimeout)
	defer stop()
	t.ctx, t.err = ctx, nil
	t.restore()
}

// obstacle is a reason to break off that a visitor can remove.
type obstacle struct{ ko, en string }

func (o *obstacle) Error() string { return o.en }

// lastStep returns the step of a scene that broke off.
func lastStep(err error) Step {
	if o := (*obstacle)(nil); errors.As(err, &o) {
		return Step{Ko: o.ko, En: o.en, Failed: true}
	}
	return Step{Ko: "장면이 끊겼어요. 이유는 시뮬레이터의 로그에 있어요.", En: "The scene broke off. The simulator's log has the reason.", Failed: true}
}

// telling is a scene in progress. After an error its methods do nothing.
type telling struct {
	*Stage
	ctx  context.Context // of the request
	step func(Step) error
	hq   *person // the administrator, once logged in
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

// restore removes the faults of the branch and of the sandbox.
func (t *telling) restore() {
	t.do(func() error {
		operator := t.newPerson()
		return errors.Join(operator.ask(t.ctx, http.MethodDelete, t.faults(), nil, nil),
			operator.ask(t.ctx, http.MethodDelete, t.sandboxFaults(), nil, nil))
	})
}

// breaks sets a fault of the branch, or of a device in it.
func (t *telling) breaks(kind, device string) {
	t.do(func() error {
		return t.newPerson().ask(t.ctx, http.MethodPut, t.faults(), map[string]string{"kind": kind, "device": device}, nil)
	})
}

func (t *telling) faults() string { return t.Simulator + "/sim/branches/" + branch + "/faults" }

func (t *telling) sandboxFaults() string { return t.Sandbox + "/sandbox/faults" }
