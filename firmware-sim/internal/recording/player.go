package recording

import (
	"sync"
	"time"
)

// The range of replay speeds; 1 is real time.
const MinSpeed, MaxSpeed = 0.1, 100.0

// Player replays a recording. It is safe for concurrent use.
//
//	silent ── Play ──► playing ── last step, length passed ──► silent
//	                    │   ▲                                    ▲
//	                    │   └── Play: the other recording ends        │
//	                    └────────────── Stop ────────────────────┘
type Player struct {
	act   func(Step)      // applies one step
	ended func(Recording) // the recording has ended or was stopped

	// turn is held during a step: after Stop returns, no step runs.
	turn sync.Mutex

	mu        sync.Mutex
	timer     *time.Timer // nil: silent
	recording Recording
	speed     float64
	began     time.Time
	next      int
	plays     int // number of recordings so far
}

// NewPlayer returns a player. act and ended must call neither Play nor Stop.
func NewPlayer(act func(Step), ended func(Recording)) *Player {
	return &Player{act: act, ended: ended}
}

// Play starts a valid recording and replaces one that is playing.
func (p *Player) Play(t Recording, speed float64) {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.recording, p.speed, p.began, p.next = t, speed, time.Now(), 0
	p.plays++
	play := p.plays
	p.timer = time.AfterFunc(p.untilNext(), func() { p.step(play) })
}

// untilNext returns the time until the next step, or the end. mu is held.
func (p *Player) untilNext() time.Duration {
	at := p.recording.LengthMs
	if p.next < len(p.recording.Steps) {
		at = p.recording.Steps[p.next].AtMs
	}
	return time.Until(p.began.Add(time.Duration(float64(at) / p.speed * float64(time.Millisecond))))
}

// step applies every step that is due.
func (p *Player) step(play int) {
	p.turn.Lock()
	defer p.turn.Unlock()
	for {
		p.mu.Lock()
		if p.timer == nil || p.plays != play { // stopped, or another recording plays
			p.mu.Unlock()
			return
		}
		if wait := p.untilNext(); wait > 0 {
			p.timer.Reset(wait)
			p.mu.Unlock()
			return
		}
		if p.next == len(p.recording.Steps) {
			over := p.silence()
			p.mu.Unlock()
			p.ended(over)
			return
		}
		s := p.recording.Steps[p.next]
		p.next++
		p.mu.Unlock()
		p.act(s)
	}
}

// silence removes the recording and returns it. mu is held.
func (p *Player) silence() Recording {
	over := p.recording
	p.recording, p.timer = Recording{}, nil
	return over
}

// Stop ends the recording that is playing, if any. After it returns, no step runs.
func (p *Player) Stop() {
	p.turn.Lock()
	defer p.turn.Unlock()
	p.stop()
}

// stop is Stop. turn is held.
func (p *Player) stop() {
	p.mu.Lock()
	if p.timer == nil {
		p.mu.Unlock()
		return
	}
	p.timer.Stop()
	over := p.silence()
	p.mu.Unlock()
	p.ended(over)
}

// Progress is the position of a player.
type Progress struct {
	Title    map[string]string `json:"title,omitempty"`
	AtMs     int64             `json:"atMs"`
	LengthMs int64             `json:"lengthMs"`
	Speed    float64           `json:"speed"`
	Step     int               `json:"step"` // number of steps applied
	Steps    int               `json:"steps"`
}

// Progress returns the player's position, or nil if nothing is playing.
func (p *Player) Progress() *Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timer == nil {
		return nil
	}
	at := int64(time.Since(p.began).Seconds() * p.speed * 1000)
	return &Progress{
		Title: p.recording.Title, AtMs: min(at, p.recording.LengthMs), LengthMs: p.recording.LengthMs,
		Speed: p.speed, Step: p.next, Steps: len(p.recording.Steps),
	}
}
