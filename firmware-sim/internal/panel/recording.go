package panel

import (
	"fmt"
	"net/http"

	"github.com/yeolda/yeolda/firmware-sim/internal/recording"
)

func (p *Panel) recording(_ http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	return b.Recording()
}

func (p *Panel) record(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	b.Record()
	return p.playback(w, r)
}

func (p *Panel) endRecording(_ http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	return b.EndRecording()
}

// playback returns the state of a branch's recorder and player.
func (p *Panel) playback(_ http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	return b.Playback(), nil
}

func (p *Panel) replay(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	var body struct {
		Tape     *recording.Recording `json:"tape"`
		Scenario string               `json:"scenario"`
		Speed    *float64             `json:"speed"`
	}
	if err := readUpTo(recording.MaxBytes, w, r, &body); err != nil {
		return nil, err
	}
	scenario, known := recording.Scenarios[body.Scenario]
	switch {
	case (body.Tape == nil) == (body.Scenario == ""):
		return nil, fmt.Errorf("%w: either tape or scenario", errBody)
	case body.Tape != nil:
		scenario = *body.Tape
	case !known:
		return nil, fmt.Errorf("%w: there is no scenario %q", errBody, body.Scenario)
	}
	speed := 1.0
	if body.Speed != nil {
		speed = *body.Speed
	}
	if err := b.Replay(scenario, speed); err != nil {
		return nil, err
	}
	return p.playback(w, r)
}

func (p *Panel) stopReplay(w http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	b.StopReplay()
	return p.playback(w, r)
}

func (p *Panel) scenarios(_ http.ResponseWriter, r *http.Request) (any, error) {
	b, err := p.branch(r)
	if err != nil {
		return nil, err
	}
	return map[string]any{"scenarios": b.Scenarios()}, nil
}
