// Package panel gives users and tests access to the simulated branches: the JSON of docs/specification.md, Simulator, a
// WebSocket with every change, and a page that shows it.
//
//	GET POST            /sim/branches                                  POST {command, rooms}: a new Pi with the command of an enrolment
//	GET                 /sim/branches/{branch}
//	GET                 /sim/branches/{branch}/actuations
//	GET PUT DELETE      /sim/branches/{branch}/faults    DELETE: all, or the one of ?kind=&device=
//	POST                /sim/branches/{branch}/doors/{device}/contact  {open}
//	POST                /sim/branches/{branch}/doors/{device}/exit
//	POST                /sim/branches/{branch}/doors/{device}/keypad   {pin}
//	POST                /sim/branches/{branch}/keypads/{device}        {digits}, for example "48291377#"
//	POST                /sim/branches/{branch}/sensors/{location}      {thermometer?, hygrometer?, held?}
//	GET PUT DELETE      /sim/branches/{branch}/recording               PUT: begins a recording; GET, DELETE: the recording, DELETE ends it
//	GET PUT DELETE      /sim/branches/{branch}/replay                  PUT {tape or scenario, speed?}
//	GET                 /sim/branches/{branch}/scenarios
//	GET                 /sim/ws[?branch=...]
//
// Errors are JSON {"error": "..."}.
package panel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/firmware-sim/internal/branch"
	"github.com/yeolda/yeolda/firmware-sim/internal/fault"
	"github.com/yeolda/yeolda/firmware-sim/internal/hardware"
	"github.com/yeolda/yeolda/firmware-sim/internal/recording"
)

// maxBody bounds a request body, in bytes.
const maxBody = 4 << 10

// Panel serves its branches.
type Panel struct {
	// Enroll starts a simulated Pi with a number of rooms as the agent that an enrolment command of the service makes. nil: the
	// panel refuses. Errors match ErrEnroll.
	Enroll func(ctx context.Context, command string, rooms int) (*branch.Branch, error)

	feed *Feed

	mu       sync.RWMutex
	branches []*branch.Branch
	byName   map[string]*branch.Branch
}

// ErrEnroll is returned for an enrolment that failed.
var ErrEnroll = errors.New("not enrolled")

// New returns a panel. feed must be the feed to which the branches publish.
func New(branches []*branch.Branch, feed *Feed) *Panel {
	p := &Panel{byName: make(map[string]*branch.Branch), feed: feed}
	for _, b := range branches {
		p.add(b)
	}
	return p
}

func (p *Panel) add(b *branch.Branch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.branches = append(p.branches, b)
	p.byName[b.Name()] = b
}

// all returns the branches in the order they were added.
func (p *Panel) all() []*branch.Branch {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.branches[:len(p.branches):len(p.branches)]
}

// Named returns a branch, or nil.
func (p *Panel) Named(name string) *branch.Branch {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.byName[name]
}

// Handler returns the handler for all paths.
func (p *Panel) Handler() http.Handler {
	r := chi.NewRouter()
	r.NotFound(handle(func(http.ResponseWriter, *http.Request) (any, error) { return nil, errNotFound }))
	r.MethodNotAllowed(handle(func(http.ResponseWriter, *http.Request) (any, error) { return nil, errMethod }))
	page(r)
	r.Get("/sim/ws", p.stream)
	r.Get("/sim/branches", handle(p.list))
	r.Post("/sim/branches", handle(p.enroll))
	r.Route("/sim/branches/{branch}", func(r chi.Router) {
		r.Get("/", handle(p.state))
		r.Get("/actuations", handle(p.actuations))
		r.Get("/faults", handle(p.faults))
		r.Put("/faults", handle(p.setFault))
		r.Delete("/faults", handle(p.clearFaults))
		r.Post("/doors/{device}/contact", handle(p.contact))
		r.Post("/doors/{device}/exit", handle(p.exit))
		r.Post("/doors/{device}/keypad", handle(p.keypad))
		r.Post("/keypads/{device}", handle(p.typeKeys))
		r.Post("/sensors/{location}", handle(p.air))
		r.Get("/recording", handle(p.recording))
		r.Put("/recording", handle(p.record))
		r.Delete("/recording", handle(p.endRecording))
		r.Get("/replay", handle(p.playback))
		r.Put("/replay", handle(p.replay))
		r.Delete("/replay", handle(p.stopReplay))
		r.Get("/scenarios", handle(p.scenarios))
	})
	// A page of another origin must not open doors, not even simulated ones.
	return http.NewCrossOriginProtection().Handler(r)
}

// Errors of the panel itself.
var (
	errNotFound = errors.New("no such path")
	errNoBranch = errors.New("no such branch")
	errMethod   = errors.New("method not allowed here")
	errBody     = errors.New("bad body")
)

// handle writes the value as JSON, or the error.
func handle(f func(http.ResponseWriter, *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, err := f(w, r)
		status := http.StatusOK
		if err != nil {
			status, v = statusOf(err), map[string]string{"error": err.Error()}
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(status)
		// Errors of disconnected clients are not logged.
		_ = json.NewEncoder(w).Encode(v)
	}
}

func statusOf(err error) int {
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, errNotFound), errors.Is(err, errNoBranch), errors.Is(err, hardware.ErrNoDevice), errors.Is(err, branch.ErrNoRecording):
		return http.StatusNotFound
	case errors.Is(err, errMethod):
		return http.StatusMethodNotAllowed
	case errors.Is(err, errBody), errors.Is(err, ErrEnroll), errors.Is(err, branch.ErrFault), errors.Is(err, hardware.ErrValue), errors.Is(err, recording.ErrInvalid):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// read decodes a body with one JSON object and no unknown fields.
func read(w http.ResponseWriter, r *http.Request, into any) error {
	return readUpTo(maxBody, w, r, into)
}

func readUpTo(limit int64, w http.ResponseWriter, r *http.Request, into any) error {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("%w: %w", errBody, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more than one value", errBody)
	}
	return nil
}

func (p *Panel) branch(r *http.Request) (*branch.Branch, error) {
	name := param(r, "branch")
	if b := p.Named(name); b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("%w: %q", errNoBranch, name)
}

// param returns a decoded path segment: locations are Korean.
func param(r *http.Request, name string) string {
	value := chi.URLParam(r, name)
	if decoded, err := url.PathUnescape(value); err == nil {
		return decoded
	}
	return value
}

func (p *Panel) list(http.ResponseWriter, *http.Request) (any, error) {
	type row struct {
		Branch  string     `json:"branch"`
		Online  bool       `json:"online"`
		Powered bool       `json:"powered"`
		Faults  fault.List `json:"faults"`
	}
	branches := p.all()
	rows := make([]row, 0, len(branches))
	for _, b := range branches {
		presence := b.Presence()
		rows = append(rows, row{b.Name(), presence.Online, presence.Powered, presence.Faults})
	}
	return map[string]any{"branches": rows}, nil
}

// maxRooms bounds the rooms of an enrolled Pi.
const maxRooms = 40

// enroll starts a simulated Pi.
func (p *Panel) enroll(w http.ResponseWriter, r *http.Request) (any, error) {
	var body struct {
		Command string `json:"command"`
		Rooms   int    `json:"rooms"`
	}
	if err := read(w, r, &body); err != nil {
		return nil, err
	}
	if body.Rooms < 1 || body.Rooms > maxRooms {
		return nil, fmt.Errorf("%w: %d rooms; expected 1 to %d", errBody, body.Rooms, maxRooms)
	}
	if p.Enroll == nil {
		return nil, errNotFound
	}
	b, err := p.Enroll(r.Context(), body.Command, body.Rooms)
	if err != nil {
		return nil, err
	}
	p.add(b)
	return map[string]string{"branch": b.Name()}, nil
}

func (p *Panel) state(_ http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	return struct {
		hardware.State
		branch.Playback
	}{b.State(), b.Playback()}, nil
}

func (p *Panel) actuations(_ http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"actuations": b.Hardware().Actuations()}, nil
}

func (p *Panel) faults(_ http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"faults": b.Presence().Faults}, nil
}

func (p *Panel) setFault(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	var f fault.Fault
	if err := read(w, r, &f); err != nil {
		return nil, err
	}
	if err := b.SetFault(f); err != nil {
		return nil, err
	}
	return p.faults(w, r)
}

func (p *Panel) clearFaults(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	query := r.URL.Query()
	if kind := query.Get("kind"); kind != "" {
		b.ClearFault(fault.Kind(kind), query.Get("device"))
	} else {
		b.ClearFaults()
	}
	return p.faults(w, r)
}

func (p *Panel) contact(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		Open *bool `json:"open"`
	}
	if err := read(w, r, &body); err != nil {
		return nil, err
	}
	if body.Open == nil {
		return nil, fmt.Errorf("%w: open is missing", errBody)
	}
	return b.Hardware().OpenLeaf(param(r, "device"), *body.Open)
}

func (p *Panel) exit(_ http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	return b.Hardware().PressExit(param(r, "device"))
}

func (p *Panel) keypad(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		PIN string `json:"pin"`
	}
	if err := read(w, r, &body); err != nil {
		return nil, err
	}
	opened, err := b.Hardware().EnterPIN(param(r, "device"), body.PIN)
	if err != nil {
		return nil, err
	}
	return map[string]bool{"opened": opened}, nil
}

func (p *Panel) typeKeys(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		Digits string `json:"digits"`
	}
	if err := read(w, r, &body); err != nil {
		return nil, err
	}
	v, err := b.Hardware().Type(r.Context(), param(r, "device"), body.Digits)
	if err != nil {
		return nil, err
	}
	return map[string]any{"accepted": v.Accepted, "reason": v.Reason}, nil
}

func (p *Panel) air(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		Thermometer *float64 `json:"thermometer"`
		Hygrometer  *float64 `json:"hygrometer"`
		Held        *bool    `json:"held"`
	}
	if err := read(w, r, &body); err != nil {
		return nil, err
	}
	hold := body.Held == nil || *body.Held
	return b.Hardware().SetAir(param(r, "location"), body.Thermometer, body.Hygrometer, hold)
}
